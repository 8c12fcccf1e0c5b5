"""Movement of mechs: axis by axis, with steps up, stopped by terrain, other mechs and the map's bounds."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.config.map import MAX_HEIGHT
from echelon_env.engine import rng
from echelon_env.engine.body import add_heat, in_control
from echelon_env.engine.footprint import body_mask, covers_same_cells, solid_under, survey
from echelon_env.engine.geometry import CONTACT_TOLERANCE, cosine_sine, wrap_angle
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import ceiling_above, surface_below
from echelon_env.engine.state import BLOCK_BITS, State
from echelon_env.engine.tables import Tables


@kernel
def _add_near(near: Any, o: int) -> None:
    near[0] += 1
    near[near[0]] = o


@kernel
def _is_harmless(blocks: Any, size: int, mech: Row, reach_x: float, reach_y: float) -> bool:
    """Whether no block within reach of a mech's centre has a hazardous voxel."""
    last_x, last_y = math.floor(min(size - 1.0, mech.x + reach_x)), math.floor(min(size - 1.0, mech.y + reach_y))
    hazard = 0
    for by in range(math.floor(max(0.0, mech.y - reach_y)) >> BLOCK_BITS, (last_y >> BLOCK_BITS) + 1):
        for bx in range(math.floor(max(0.0, mech.x - reach_x)) >> BLOCK_BITS, (last_x >> BLOCK_BITS) + 1):
            hazard |= integer(blocks[by, bx].hazard)
    return hazard == 0


@kernel
def top_speed(rules: Row, mech_class: Row, mech: Row) -> float:
    """A mech's top speed in m/s; jets add to it."""
    boost = 1.0 + rules.jet_boost * mech.jet if mech_class.jet_acceleration > 0.0 else 1.0
    return float(mech_class.top_speed * boost)


@kernel
def list_near(tables: Tables, state: State, b: int) -> None:
    """Mark the stored ground as out of date, and list the mechs that each living mech may touch in this decision.

    Note also which mechs have no hazard in reach. All mechs are inside the map; movement keeps them there.
    """
    rules, mechs, walks, near = tables.rules[0], state.mechs[b], state.walks[b], state.near[b]
    size, changes = integer(rules.map_size), integer(state.battles[b].terrain_changes)
    for m in range(mechs.shape[0]):
        mech, walk = mechs[m], walks[m]
        effort = math.sqrt(mech.throttle * mech.throttle + mech.strafe * mech.strafe)
        speed = effort * top_speed(rules, tables.classes[mech.mech_class], mech)
        walk.reach = speed * rules.decision_seconds + CONTACT_TOLERANCE
        walk.surveyed = near[m, 0] = 0
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        if not mech.alive:
            continue
        mech_class = tables.classes[mech.mech_class]
        half_length, half_width = mech_class.half_length + walks[m].reach, mech_class.half_width + walks[m].reach
        walks[m].harmless = changes + 1 if _is_harmless(state.blocks[b], size, mech, half_length, half_width) else 0
        for o in range(m + 1, mechs.shape[0]):
            other = mechs[o]
            if not other.alive:
                continue
            other_class = tables.classes[other.mech_class]
            close_x = abs(mech.x - other.x) < half_length + other_class.half_length + walks[o].reach
            close_y = abs(mech.y - other.y) < half_width + other_class.half_width + walks[o].reach
            if close_x & close_y:
                _add_near(near[m], o)
                _add_near(near[o], m)


@kernel
def _any_near(near: Any) -> bool:
    """Whether any mech may touch another one in this decision. If none may, the order of moves does not matter."""
    count = 0
    for m in range(near.shape[0]):
        count |= integer(near[m, 0])
    return count != 0


@kernel
def draw_move_order(battle: Row, order: Any, move_order: Any) -> None:
    """Shuffle the mechs (Fisher-Yates over the spawn places) into this tick's movement order."""
    count = order.shape[0]
    for place in range(count):
        move_order[place] = order[place]
    for last in range(count - 1, 0, -1):
        chosen = rng.random_below(battle.seed, integer(battle.tick), last, rng.MOVE_ORDER, last + 1)
        swapped = move_order[chosen]
        move_order[chosen] = move_order[last]
        move_order[last] = swapped


@kernel
def overlaps_in_plane(mech_class: Row, x: float, y: float, other: Row, other_class: Row) -> bool:
    """Whether the footprint of a class at (x, y) overlaps another mech's."""
    return bool(
        abs(x - other.x) < mech_class.half_length + other_class.half_length - CONTACT_TOLERANCE
        and abs(y - other.y) < mech_class.half_width + other_class.half_width - CONTACT_TOLERANCE
    )


@kernel
def _count_near(tables: Tables, mechs: Any, near: Any, m: int, dx: float, dy: float) -> int:
    """Number of the mechs near mech m, or 0 if it can touch none of them on its way by (dx, dy), up or down."""
    mech = mechs[m]
    mech_class = tables.classes[mech.mech_class]
    half_length, half_width = mech_class.half_length + abs(dx), mech_class.half_width + abs(dy)
    for i in range(1, near[0] + 1):
        other = mechs[near[i]]
        other_class = tables.classes[other.mech_class]
        close_x = abs(mech.x - other.x) < half_length + other_class.half_length
        close_y = abs(mech.y - other.y) < half_width + other_class.half_width
        if close_x & close_y:
            return int(near[0])
    return 0


@kernel
def hits_mech(tables: Tables, mechs: Any, near: Any, count: int, mech: Row, x: float, y: float, z: float) -> bool:
    """Whether a mech, with its feet at (x, y, z), would overlap one of the `count` mechs near it, if alive."""
    mech_class = tables.classes[mech.mech_class]
    for i in range(1, count + 1):
        other = mechs[near[i]]
        if not other.alive:
            continue
        other_class = tables.classes[other.mech_class]
        if (
            overlaps_in_plane(mech_class, x, y, other, other_class)
            and z < other.z + other_class.height - CONTACT_TOLERANCE
            and other.z < z + mech_class.height - CONTACT_TOLERANCE
        ):
            return True
    return False


@kernel
def _try_step_up(
    tables: Tables, mechs: Any, near: Any, count: int, m: int, x: float, y: float, here: int, there: int
) -> bool:  # fmt: skip
    """Lift a standing mech by one voxel onto (x, y) if there is room; return whether it was lifted.

    `here` and `there` are the solid heights under its position and under (x, y), see `solid_under`.
    """
    mech = mechs[m]
    mech_class = tables.classes[mech.mech_class]
    z = math.floor(mech.z + CONTACT_TOLERANCE) + 1.0
    if (
        not mech.on_ground
        or z + mech_class.height > tables.rules[0].map_height
        or (here | there) & body_mask(mech_class, z)
        or hits_mech(tables, mechs, near, count, mech, mech.x, mech.y, z)
        or hits_mech(tables, mechs, near, count, mech, x, y, z)
    ):
        return False
    mech.x, mech.y, mech.z = x, y, z
    return True


@kernel
def _stop(position: float, moved: float, face: float) -> float:
    """End of a move from `position` towards `moved` that must not pass `face`. It never ends behind `position`."""
    if moved > position:
        return max(position, min(moved, face))
    return min(position, max(moved, face))


@kernel
def _stop_at_mechs(
    tables: Tables, mechs: Any, near: Any, count: int, m: int, x: float, y: float
) -> tuple[float, float]:  # fmt: skip
    """Where mech m stops on its way to (x, y), along one axis, when it touches one of the `count` mechs near it."""
    mech = mechs[m]
    mech_class = tables.classes[mech.mech_class]
    for i in range(1, count + 1):
        other = mechs[near[i]]
        if not other.alive:
            continue
        other_class = tables.classes[other.mech_class]
        if (
            not overlaps_in_plane(mech_class, x, y, other, other_class)
            or mech.z >= other.z + other_class.height - CONTACT_TOLERANCE
            or other.z >= mech.z + mech_class.height - CONTACT_TOLERANCE
        ):
            continue
        if x != mech.x:
            gap = mech_class.half_length + other_class.half_length
            x = _stop(mech.x, x, other.x - gap if x > mech.x else other.x + gap)
        else:
            gap = mech_class.half_width + other_class.half_width
            y = _stop(mech.y, y, other.y - gap if y > mech.y else other.y + gap)
    return x, y


@kernel
def _terrain_face(position: float, moved: float, half: float) -> float:
    """Centre of a box that touches the voxel layer which its leading side has just entered."""
    if moved > position:
        return math.floor(moved + half - CONTACT_TOLERANCE) - half
    return math.floor(moved - half + CONTACT_TOLERANCE) + 1.0 + half


@kernel
def move_along(
    tables: Tables, solid: Any, mechs: Any, near: Any, count: int, m: int, dx: float, dy: float, here: int, body: int
) -> int:  # fmt: skip
    """Move mech m by (dx, dy), one of which is 0, as far as terrain, mechs and the map's edge allow.

    `here` are the solid heights under it, see `solid_under`; returns those at its new position. `body` are the heights
    that it occupies. `count`: see `_count_near`.
    """
    mech = mechs[m]
    mech_class = tables.classes[mech.mech_class]
    size = tables.rules[0].map_size
    x = min(max(mech.x + dx, mech_class.half_length), size - mech_class.half_length)
    y = min(max(mech.y + dy, mech_class.half_width), size - mech_class.half_width)
    if x == mech.x and y == mech.y:
        return here
    there = here if covers_same_cells(mech_class, mech, x, y) else solid_under(solid, mech_class, x, y)
    if there & body:
        if _try_step_up(tables, mechs, near, count, m, x, y, here, there):
            return there
        if x != mech.x:
            x = _stop(mech.x, x, _terrain_face(mech.x, x, mech_class.half_length))
        else:
            y = _stop(mech.y, y, _terrain_face(mech.y, y, mech_class.half_width))
        there = solid_under(solid, mech_class, x, y)
    free_x, free_y = _stop_at_mechs(tables, mechs, near, count, m, x, y)
    if free_x != x or free_y != y:
        there = solid_under(solid, mech_class, free_x, free_y)
    mech.x, mech.y = free_x, free_y
    return there


@kernel
def move_vertically(tables: Tables, mechs: Any, near: Any, count: int, m: int, here: int) -> None:
    """Apply gravity and jets to mech m. It falls or rises up to the nearest solid height of `here` or mech near it."""
    rules, mech = tables.rules[0], mechs[m]
    mech_class = tables.classes[mech.mech_class]
    thrust = mech.jet * mech_class.jet_acceleration if in_control(mech) else 0.0
    mech.vz = (mech.vz + (thrust - rules.gravity) * rules.dt) * rules.vertical_keep
    moved = mech.z + mech.vz * rules.dt
    rising = mech.vz > 0.0
    if rising:
        top = mech.z + mech_class.height
        ceiling = ceiling_above(here, math.ceil(top - CONTACT_TOLERANCE), integer(rules.map_height))
        limit = float(ceiling) - mech_class.height
    else:
        limit = float(surface_below(here, min(MAX_HEIGHT, math.floor(mech.z + CONTACT_TOLERANCE))))
    for i in range(1, count + 1):
        other = mechs[near[i]]
        if not other.alive:
            continue
        other_class = tables.classes[other.mech_class]
        if not overlaps_in_plane(mech_class, mech.x, mech.y, other, other_class):
            continue
        if rising and other.z >= mech.z + mech_class.height - CONTACT_TOLERANCE:
            limit = min(limit, other.z - mech_class.height)
        if not rising and other.z + other_class.height <= mech.z + CONTACT_TOLERANCE:
            limit = max(limit, other.z + other_class.height)
    stopped = moved >= limit if rising else moved <= limit
    mech.on_ground = 1 if stopped and not rising else 0
    if stopped:
        mech.z = max(mech.z, limit) if rising else limit
        mech.vz = 0.0
    else:
        mech.z = moved


@kernel
def turn_all(tables: Tables, mechs: Any) -> None:
    """One tick of the turns of a battle's mechs. They do not depend on each other, so the processor overlaps them."""
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        if mech.turn != 0.0 and in_control(mech):
            turn_rate = tables.classes[mech.mech_class].turn_rate
            mech.yaw = wrap_angle(mech.yaw + mech.turn * turn_rate * tables.rules[0].dt)
            mech.facing_x, mech.facing_y = cosine_sine(mech.yaw)


@kernel
def move_mech(tables: Tables, state: State, b: int, m: int) -> None:
    """One tick of a mech's movement after its turn: x, y and z."""
    rules, solid, mechs, near = tables.rules[0], state.solid[b], state.mechs[b], state.near[b, m]
    mech = mechs[m]
    mech_class = tables.classes[mech.mech_class]
    x, y = mech.x, mech.y
    walk = state.walks[b, m]
    survey(state.battles[b], solid, state.hazard[b], mech_class, mech, walk)
    here = integer(walk.solid)
    dx, dy = 0.0, 0.0
    if in_control(mech):
        reach = top_speed(rules, mech_class, mech) * mech.speed_factor * rules.dt
        if mech.legs <= 0.0:
            reach *= rules.legged_speed
        dx = reach * (mech.throttle * mech.facing_x - mech.strafe * mech.facing_y)
        dy = reach * (mech.throttle * mech.facing_y + mech.strafe * mech.facing_x)
        if mech.jet > 0.0 and mech_class.jet_acceleration > 0.0:
            add_heat(rules, mech_class, mech, rules.jet_heat * mech.jet * rules.dt)
    count = _count_near(tables, mechs, near, m, dx, dy)
    if dx != 0.0 or dy != 0.0:
        z, body = mech.z, body_mask(mech_class, mech.z)
        here = move_along(tables, solid, mechs, near, count, m, dx, 0.0, here, body)
        if mech.z != z:
            body = body_mask(mech_class, mech.z)
        here = move_along(tables, solid, mechs, near, count, m, 0.0, dy, here, body)
        if walk.harmless == walk.surveyed:
            walk.solid = here
        elif not covers_same_cells(mech_class, mech, x, y):
            walk.surveyed = 0
    move_vertically(tables, mechs, near, count, m, here)
    mech.vx = (mech.x - x) / rules.dt
    mech.vy = (mech.y - y) / rules.dt


@kernel
def move_all(tables: Tables, state: State, b: int) -> None:
    """One tick of movement of a battle's living mechs: all turn, then they move in random order."""
    mechs, order = state.mechs[b], state.order[b]
    turn_all(tables, mechs)
    if _any_near(state.near[b]):
        draw_move_order(state.battles[b], order, state.move_order[b])
        order = state.move_order[b]
    for place in range(order.shape[0]):
        m = integer(order[place])
        if mechs[m].alive:
            move_mech(tables, state, b, m)
