"""Who sees whom, and the contact tables."""

from __future__ import annotations

from typing import Any

from echelon_env.engine._jit import Row, kernel
from echelon_env.engine.state import BLUE, IN_SIGHT, NO_MECH, SEEN, UNSEEN, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.weapons import mechs_see_each_other, squared_distance


@kernel
def perceives(tables: Tables, mech: Row, other: Row, in_sight: bool) -> int:
    """How a living mech sees a living enemy: UNSEEN, SEEN or IN_SIGHT."""
    rules = tables.rules[0]
    if mech.shutdown:
        return UNSEEN
    if in_sight:
        return IN_SIGHT
    radar = rules.radar_range * tables.classes[mech.mech_class].radar_factor
    if (
        rules.full_observability
        or squared_distance(tables, mech, other) <= radar**2
        or other.heat > rules.bloom_heat * tables.classes[other.mech_class].heat_capacity
    ):
        return SEEN
    return UNSEEN


@kernel
def look_around(tables: Tables, state: State, b: int) -> None:
    """Fill a battle's `visible` matrix; entries between team-mates and with the dead are UNSEEN."""
    mechs, visible, columns = state.mechs[b], state.visible[b], state.columns[b]
    visible[:, :] = UNSEEN
    for m in range(mechs.shape[0]):
        if mechs[m].team != BLUE or not mechs[m].alive:
            continue
        for o in range(mechs.shape[0]):
            if mechs[o].team == BLUE or not mechs[o].alive:
                continue
            in_sight = mechs_see_each_other(tables, columns, mechs[m], mechs[o])
            visible[m, o] = perceives(tables, mechs[m], mechs[o], in_sight)
            visible[o, m] = perceives(tables, mechs[o], mechs[m], in_sight)


@kernel
def list_contacts(tables: Tables, mechs: Any, order: Any, visible: Any, m: int) -> None:
    """Fill mech m's contact rows with the enemies it sees, nearest first, as many as its suite has slots."""
    mech = mechs[m]
    contacts = mech.contacts
    contacts[:] = NO_MECH
    slots = tables.classes[mech.mech_class].contact_slots
    count = 0
    for place in range(order.shape[0]):
        o = order[place]
        if visible[m, o] == UNSEEN:
            continue
        distance = squared_distance(tables, mech, mechs[o])
        row = count
        while row > 0 and squared_distance(tables, mech, mechs[contacts[row - 1]]) > distance:
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
        list_contacts(tables, state.mechs[b], state.order[b], state.visible[b], m)
