"""Sight, hearing and the contact tables."""

from __future__ import annotations

from typing import Any

from echelon_env.engine.body import radiation
from echelon_env.engine.electronics import measure_quality
from echelon_env.engine.hearing import hear, scale_sounds
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.rosters import places_of
from echelon_env.engine.state import BY_DAMAGE, BY_DANGER, IN_SIGHT, NO_MECH, RED, SEEN, SILENT, UNSEEN, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import has_paint_lock, smoke_between, squared_distance, terrain_is_clear


@kernel
def perceives(tables: Tables, state: State, b: int, m: int, o: int, smoke: bool, clear: bool) -> int:
    """How a living mech sees a living enemy: UNSEEN, SEEN or IN_SIGHT.

    `smoke`: smoke lies on the line between them. `clear`: no terrain does.
    """
    rules, mech, other = tables.rules[0], state.mechs[b, m], state.mechs[b, o]
    if mech.shutdown:
        return UNSEEN
    if clear and not smoke:
        return IN_SIGHT
    if rules.full_observability or has_paint_lock(tables, state, b, m, o):
        return SEEN
    if smoke:
        return UNSEEN
    radar = rules.radar_range * tables.classes[mech.mech_class].radar_factor * mech.quality
    if (
        squared_distance(tables, mech, other) <= radar**2
        or other.heat > rules.bloom_heat * tables.classes[other.mech_class].heat_capacity
        or radiation(other) != SILENT
    ):
        return SEEN
    return UNSEEN


@kernel
def update_visibility(tables: Tables, state: State, b: int) -> None:
    """Update sensor quality, the `visible` matrix and the sounds of a battle's mechs.

    Entries of `visible` between team-mates and with the dead are UNSEEN.
    """
    mechs, order, visible = state.mechs[b], state.order[b], state.visible[b]
    visible[:, :] = UNSEEN
    first, stop = places_of(tables.rules[0], state.battles[b], mechs.shape[0], RED)
    measure_quality(tables, state, b)
    for m in range(mechs.shape[0]):
        mechs[m].sounds[:] = 0.0
    for m in range(tables.rules[0].num_blue):
        if not mechs[m].alive:
            continue
        for place in range(first, stop):
            o = integer(order[place])
            if not mechs[o].alive:
                continue
            smoke = smoke_between(tables, state, b, m, o)
            clear = terrain_is_clear(tables, state, b, m, o)
            visible[m, o] = perceives(tables, state, b, m, o, smoke, clear)
            visible[o, m] = perceives(tables, state, b, o, m, smoke, clear)
            hear(tables, mechs[m], mechs[o], clear and not smoke)
            hear(tables, mechs[o], mechs[m], clear and not smoke)
    for m in range(mechs.shape[0]):
        scale_sounds(tables.rules[0], mechs[m])


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
def comes_before(tables: Tables, mech: Row, other: Row, listed: Row) -> bool:
    """Whether an enemy precedes another in a mech's contact table, in the order that its display selects."""
    if mech.display == BY_DANGER:
        first, second = danger(tables, mech, other), danger(tables, mech, listed)
        if first != second:
            return bool(first > second)
    elif mech.display == BY_DAMAGE:
        first = other.armour / tables.classes[other.mech_class].armour
        second = listed.armour / tables.classes[listed.mech_class].armour
        if first != second:
            return bool(first < second)
    return bool(squared_distance(tables, mech, other) < squared_distance(tables, mech, listed))


@kernel
def list_contacts(tables: Tables, battle: Row, mechs: Any, order: Any, visible: Any, m: int) -> None:
    """Fill mech m's contact rows with visible enemies in the order of its display, up to its suite's slots."""
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
        row = count
        while row > 0 and comes_before(tables, mech, mechs[o], mechs[contacts[row - 1]]):
            row -= 1
        if row >= slots:
            continue
        for later in range(min(count, slots - 1), row, -1):
            contacts[later] = contacts[later - 1]
        contacts[row] = o
        count = min(count + 1, slots)


@kernel
def list_all_contacts(tables: Tables, state: State, b: int) -> None:
    """Fill the contact rows of a battle's mechs."""
    for m in range(state.mechs.shape[1]):
        list_contacts(tables, state.battles[b], state.mechs[b], state.order[b], state.visible[b], m)
