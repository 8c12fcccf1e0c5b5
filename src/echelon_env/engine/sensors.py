"""Sight and the contact tables."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.body import radiation
from echelon_env.engine.electronics import measure_quality
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.rosters import places_of
from echelon_env.engine.state import BY_DAMAGE, BY_DANGER, IN_SIGHT, NO_MECH, RED, SEEN, SILENT, UNSEEN, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import has_paint_lock, smoke_between, squared_distance, terrain_is_clear


@kernel
def _radar_or_heat(tables: Tables, mech: Row, other: Row, away: float) -> bool:
    """Whether an enemy is in a mech's radar range, hot or radiating, whatever lies between them."""
    rules = tables.rules[0]
    radar = rules.radar_range * tables.classes[mech.mech_class].radar_factor * mech.quality
    return bool(
        away <= radar**2
        or other.heat > rules.bloom_heat * tables.classes[other.mech_class].heat_capacity
        or radiation(other) != SILENT
    )


@kernel
def perceives(tables: Tables, state: State, b: int, m: int, o: int, away: float, clear: bool) -> int:
    """How a living mech sees a living enemy: UNSEEN, SEEN or IN_SIGHT.

    `away`: the squared distance in m2 between them. `clear`: no terrain lies between them. Smoke hides an enemy from
    sight, radar and heat; it is looked for last, because that costs most.
    """
    rules, mech, other = tables.rules[0], state.mechs[b, m], state.mechs[b, o]
    if mech.shutdown:
        return UNSEEN
    if (clear or _radar_or_heat(tables, mech, other, away)) and not smoke_between(tables, state, b, m, o):
        return IN_SIGHT if clear else SEEN
    if rules.full_observability or has_paint_lock(tables, state, b, m, o):
        return SEEN
    return UNSEEN


@kernel
def update_visibility(tables: Tables, state: State, b: int) -> None:
    """Update sensor quality and the `visible` matrix of a battle's mechs.

    Entries of `visible` between team-mates and with the dead are UNSEEN.
    """
    mechs, order, visible = state.mechs[b], state.order[b], state.visible[b]
    visible[:, :] = UNSEEN
    first, stop = places_of(tables.rules[0], state.battles[b], mechs.shape[0], RED)
    measure_quality(tables, state, b)
    for m in range(tables.rules[0].num_blue):
        if not mechs[m].alive:
            continue
        for place in range(first, stop):
            o = integer(order[place])
            if not mechs[o].alive:
                continue
            clear = terrain_is_clear(tables, state, b, m, o)
            away = squared_distance(tables, mechs[m], mechs[o])
            visible[m, o] = perceives(tables, state, b, m, o, away, clear)
            visible[o, m] = perceives(tables, state, b, o, m, away, clear)


@kernel
def danger(tables: Tables, mech: Row, other: Row) -> float:
    """Hit points per second that an enemy's weapons could deal at its distance, by their ranges alone."""
    if other.shutdown or other.fallen > 0:
        return 0.0
    distance, rate = squared_distance(tables, mech, other), 0.0
    mounted = tables.classes[other.mech_class].weapon
    for mount in range(mounted.shape[0]):
        if mounted[mount] >= 0 and distance <= tables.weapons[mounted[mount]].range ** 2:
            rate += tables.weapons[mounted[mount]].damage_rate
    return rate


@kernel
def rank(tables: Tables, mech: Row, other: Row) -> float:
    """An enemy's place in a mech's contact table, in the order that its display selects: low values come first."""
    if mech.display == BY_DANGER:
        return -danger(tables, mech, other)
    if mech.display == BY_DAMAGE:
        return float(other.armour / tables.classes[other.mech_class].armour)
    return 0.0


@kernel
def list_contacts(
    tables: Tables, battle: Row, mechs: Any, order: Any, visible: Any, ranks: Any, m: int
) -> None:  # fmt: skip
    """Fill mech m's contact rows with visible enemies in the order of its display, up to its suite's slots.

    Enemies of the same rank are in the order of their distance, those at the same distance in that of their places.
    """
    mech = mechs[m]
    contacts = mech.contacts
    contacts[:] = NO_MECH
    if not mech.alive:
        return
    slots = tables.classes[mech.mech_class].contact_slots
    count = 0
    first, stop = places_of(tables.rules[0], battle, mechs.shape[0], 1 - mech.team)
    for place in range(first, stop):
        o = integer(order[place])
        if visible[m, o] == UNSEEN:
            continue
        first_rank, distance = rank(tables, mech, mechs[o]), squared_distance(tables, mech, mechs[o])
        row = count
        while row > 0 and (
            first_rank < ranks[0, row - 1] or (first_rank == ranks[0, row - 1] and distance < ranks[1, row - 1])
        ):
            row -= 1
            if row + 1 < slots:
                ranks[0, row + 1], ranks[1, row + 1] = ranks[0, row], ranks[1, row]
                contacts[row + 1] = contacts[row]
        if row < slots:
            ranks[0, row], ranks[1, row], contacts[row] = first_rank, distance, o
        count = min(count + 1, slots)


@kernel
def nearest_visible(tables: Tables, state: State, b: int, m: int) -> int:
    """The nearest enemy that a mech sees, of equally near ones that of the lowest place, or NO_MECH."""
    mechs, order, nearest = state.mechs[b], state.order[b], math.inf
    found: int = integer(NO_MECH)
    first, stop = places_of(tables.rules[0], state.battles[b], order.shape[0], 1 - mechs[m].team)
    for place in range(first, stop):
        o = integer(order[place])
        distance = squared_distance(tables, mechs[m], mechs[o])
        if state.visible[b, m, o] != UNSEEN and distance < nearest:
            found, nearest = o, distance
    return found


@kernel
def keep_targets(tables: Tables, state: State, b: int) -> None:
    """Replace the targets that mechs no longer see, or that they did not choose, by the nearest visible enemies."""
    for m in range(state.mechs.shape[1]):
        mech = state.mechs[b, m]
        seen = mech.target != NO_MECH and state.visible[b, m, mech.target] != UNSEEN
        if not seen or not tables.rules[0].target_choice:
            mech.target = nearest_visible(tables, state, b, m)


@kernel
def list_all_contacts(tables: Tables, state: State, b: int) -> None:
    """Fill the contact rows of a battle's mechs."""
    for m in range(state.mechs.shape[1]):
        list_contacts(tables, state.battles[b], state.mechs[b], state.order[b], state.visible[b], state.ranks[b], m)
