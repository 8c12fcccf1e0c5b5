"""Lines of sight, locks and valid targets."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.paint import is_painted
from echelon_env.engine.raycast import blocking_column, blocks
from echelon_env.engine.smoke import crosses_smoke
from echelon_env.engine.state import NO_MECH, State
from echelon_env.engine.tables import Tables


@kernel
def centre_height(tables: Tables, mech: Row) -> float:
    """Height in metres of a mech's centre."""
    return float(mech.z + 0.5 * tables.classes[mech.mech_class].height)


@kernel
def squared_distance(tables: Tables, a: Row, b: Row) -> float:
    """Squared distance in m2 between the centres of two mechs."""
    dz = centre_height(tables, a) - centre_height(tables, b)
    return float((a.x - b.x) ** 2 + (a.y - b.y) ** 2 + dz**2)


@kernel
def _by_place(mechs: Any, m: int, o: int) -> tuple[int, int]:
    """Two mechs in the order of their spawn places, so that a line between them is the same from both ends."""
    return (o, m) if mechs[o].place < mechs[m].place else (m, o)


@kernel
def smoke_between(tables: Tables, state: State, b: int, m: int, o: int) -> bool:
    """Whether smoke of the enemy lies on the line between a mech's centre and another's."""
    count = state.battles[b].num_clouds
    if count == 0:
        return False
    enemy = 1 - integer(state.mechs[b, m].team)
    m, o = _by_place(state.mechs[b], m, o)
    one, two = state.mechs[b, m], state.mechs[b, o]
    z0, z1 = centre_height(tables, one), centre_height(tables, two)
    return crosses_smoke(state.clouds[b], count, enemy, one.x, one.y, z0, two.x, two.y, z1)


@kernel
def terrain_is_clear(tables: Tables, state: State, b: int, m: int, o: int) -> bool:
    """Whether no terrain blocks the line between two mechs' centres. The last blocker is tested first."""
    m, o = _by_place(state.mechs[b], m, o)
    opaque, blocker, one, two = state.opaque[b], state.blockers[b, m, o], state.mechs[b, m], state.mechs[b, o]
    z0, z1 = centre_height(tables, one), centre_height(tables, two)
    iy, ix = integer(blocker[0]), integer(blocker[1])
    if blocks(integer(opaque[iy, ix]), ix, iy, one.x, one.y, z0, two.x, two.y, z1):
        return False
    iy, ix = blocking_column(opaque, state.blocks[b], one.x, one.y, z0, two.x, two.y, z1)
    if iy < 0:
        return True
    blocker[0], blocker[1] = iy, ix
    return False


@kernel
def in_line_of_sight(tables: Tables, state: State, b: int, m: int, o: int) -> bool:
    """Whether neither terrain nor smoke of the enemy blocks the line between a mech's centre and another's."""
    return not smoke_between(tables, state, b, m, o) and terrain_is_clear(tables, state, b, m, o)


@kernel
def has_paint_lock(tables: Tables, state: State, b: int, m: int, o: int) -> bool:
    """Whether a mech can see and aim at another through its pack's paint."""
    mech = state.mechs[b, m]
    return is_painted(state, b, integer(mech.pack), o) and bool(mech.quality >= tables.rules[0].link_quality)


@kernel
def has_direct_lock(tables: Tables, state: State, b: int, m: int, o: int, weapon: Row) -> bool:
    """Whether a weapon can be aimed by line of sight."""
    distance = squared_distance(tables, state.mechs[b, m], state.mechs[b, o])
    return bool(distance <= weapon.unaided_range**2) and in_line_of_sight(tables, state, b, m, o)


@kernel
def is_valid_target(tables: Tables, state: State, b: int, m: int, o: int, weapon: Row) -> bool:
    """Whether a weapon can fire at a target: a living enemy in range, in the arc, and in sight or locked on."""
    mech, target = state.mechs[b, m], state.mechs[b, o]
    if not target.alive or target.team == mech.team:
        return False
    if squared_distance(tables, mech, target) > weapon.range**2:
        return False
    dx, dy = target.x - mech.x, target.y - mech.y
    if dx * mech.facing_x + dy * mech.facing_y < weapon.arc_cos * math.sqrt(dx * dx + dy * dy):
        return False
    if weapon.guided and has_paint_lock(tables, state, b, m, o):
        return True
    return has_direct_lock(tables, state, b, m, o, weapon)


@kernel
def valid_target(tables: Tables, state: State, b: int, m: int, weapon: Row) -> int:
    """A mech's target if a weapon can fire at it, else NO_MECH."""
    chosen: int = integer(state.mechs[b, m].target)
    valid = chosen != NO_MECH and is_valid_target(tables, state, b, m, chosen, weapon)
    return chosen if valid else NO_MECH
