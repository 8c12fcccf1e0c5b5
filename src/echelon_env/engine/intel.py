"""What packs remember of their enemies, and which of it their mechs receive."""

from __future__ import annotations

from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.paint import is_painted
from echelon_env.engine.rosters import enemies_of, places_of
from echelon_env.engine.state import NO_MECH, UNSEEN, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import centre_height


@kernel
def _update_sighting(tables: Tables, sighting: Row, other: Row) -> None:
    sighting.x, sighting.y, sighting.z = other.x, other.y, centre_height(tables, other)
    sighting.vx, sighting.vy = other.vx, other.vy
    sighting.armour = other.armour
    sighting.age, sighting.known = 0, 1


@kernel
def _age_sighting(rules: Row, sighting: Row, other: Row) -> None:
    """Age a sighting by one decision. A dead enemy is removed at once, a living one after the memory time."""
    sighting.age += rules.decision_repeat
    if not other.alive or sighting.age > rules.intel_ticks:
        sighting.known = 0


@kernel
def remember_all(tables: Tables, state: State, b: int) -> None:
    """Update what a battle's packs remember, from what their mechs see and have painted."""
    mechs, visible, sightings = state.mechs[b], state.visible[b], state.sightings[b]
    for pack in range(sightings.shape[0]):
        first, stop = enemies_of(tables.rules[0], mechs.shape[0], pack)
        for o in range(first, stop):
            sightings[pack, o].seen = is_painted(state, b, pack, o)
    for m in range(mechs.shape[0]):
        if not mechs[m].alive:
            continue
        pack = integer(mechs[m].pack)
        first, stop = enemies_of(tables.rules[0], mechs.shape[0], pack)
        for o in range(first, stop):
            sightings[pack, o].seen |= visible[m, o] != UNSEEN
    for pack in range(sightings.shape[0]):
        first, stop = enemies_of(tables.rules[0], mechs.shape[0], pack)
        for o in range(first, stop):
            sighting, other = sightings[pack, o], mechs[o]
            if sighting.seen and other.alive:
                _update_sighting(tables, sighting, other)
            elif sighting.known:
                _age_sighting(tables.rules[0], sighting, other)


@kernel
def squared_distance_to_sighting(tables: Tables, mech: Row, sighting: Row) -> float:
    """Squared distance in m2 between a mech's centre and an enemy's last known centre."""
    dz = centre_height(tables, mech) - sighting.z
    return float((mech.x - sighting.x) ** 2 + (mech.y - sighting.y) ** 2 + dz**2)


@kernel
def _is_listed(mech: Row, o: int) -> bool:
    """Whether an enemy is in a mech's contact table."""
    listed = False
    for slot in range(mech.contacts.shape[0]):
        listed |= bool(mech.contacts[slot] == o)
    return listed


@kernel
def list_intel(tables: Tables, state: State, b: int, m: int) -> None:
    """Fill mech m's intel rows with remembered enemies that are in no contact row, nearest sighting first.

    A living mech whose sensors are too jammed for its pack's link gets none.
    """
    mech, sightings, distances = state.mechs[b, m], state.sightings[b, state.mechs[b, m].pack], state.ranks[b, 0]
    intel = mech.intel
    intel[:] = NO_MECH
    if not mech.alive or mech.quality < tables.rules[0].link_quality:
        return
    count = 0
    first, stop = places_of(tables.rules[0], state.battles[b], state.order.shape[1], 1 - mech.team)
    for place in range(first, stop):
        o = integer(state.order[b, place])
        if not sightings[o].known or (state.visible[b, m, o] != UNSEEN and _is_listed(mech, o)):
            continue
        distance = squared_distance_to_sighting(tables, mech, sightings[o])
        if count < intel.shape[0]:
            count += 1
        elif distances[count - 1] <= distance:
            continue
        row = count - 1
        while row > 0 and distances[row - 1] > distance:
            distances[row], intel[row] = distances[row - 1], intel[row - 1]
            row -= 1
        distances[row], intel[row] = distance, o


@kernel
def share_intel(tables: Tables, state: State, b: int) -> None:
    """Update what a battle's packs remember, if they do, and the intel rows of their mechs."""
    if tables.rules[0].intel:
        remember_all(tables, state, b)
    for m in range(state.mechs.shape[1]):
        list_intel(tables, state, b, m)
