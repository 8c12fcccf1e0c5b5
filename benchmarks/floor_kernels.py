"""Tight loops of the primitives of movement and of lines of sight; `floors` times and multiplies them.

Each kernel passes `repeats` times over a battle's records before it turns to the next battle, as the ticks of a
decision do, and returns how many units it did and a sum of results, so that the compiler can leave nothing out. They
write into copies. Columns come flattened, (B, Y * X). Every kernel writes its loops out, alike as they are: Numba
takes no body of a loop as an argument, and pairs listed beforehand would be more memory to read.
"""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine import rng
from echelon_env.engine._jit import entry_point, integer, kernel
from echelon_env.engine.geometry import CONTACT_TOLERANCE, cosine_sine, wrap_angle

NEVER = 2.0


@kernel
def controls(mech: Any) -> bool:
    return bool(mech.alive and not mech.shutdown and mech.fallen == 0)


@kernel
def walk(columns: Any, size: int, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float):
    """The column that blocks a segment, or -1, and how many were looked at; steps are sums, not divisions."""
    ix, iy = math.floor(x0), math.floor(y0)
    dx, dy, dz = x1 - x0, y1 - y0, z1 - z0
    in_x, in_y = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
    left_x, left_y = abs(math.floor(x1) - ix), abs(math.floor(y1) - iy)
    step_x, step_y = (abs(1.0 / dx) if left_x else 0.0), (abs(1.0 / dy) if left_y else 0.0)
    t_x = (ix + (in_x > 0) - x0) / dx if left_x else NEVER
    t_y = (iy + (in_y > 0) - y0) / dy if left_y else NEVER
    at, stride = iy * size + ix, in_y * size
    low, end_bit = math.floor(min(z0, z1)), 1 << math.floor(z1)
    ignored, z_in, seen = 1 << math.floor(z0), z0, 0
    while True:
        seen += 1
        last = left_x == 0 and left_y == 0
        z_out = z1 if last else z0 + dz * min(t_x, t_y)
        bits = integer(columns[at].opaque)
        if bits >> low:
            bits &= ~(ignored | (end_bit if last else 0))
            bottom, top = math.floor(min(z_in, z_out)), math.floor(max(z_in, z_out))
            if bits & ((2 << top) - (1 << bottom)):
                return at, seen
        if last:
            return -1, seen
        if t_x < t_y:
            at, left_x = at + in_x, left_x - 1
            t_x = t_x + step_x if left_x else NEVER
        else:
            at, left_y = at + stride, left_y - 1
            t_y = t_y + step_y if left_y else NEVER
        z_in, ignored = z_out, 0


@kernel
def still_blocks(columns: Any, size: int, at: int, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float):
    """Whether a column blocks a segment, wherever on it: one look instead of a walk."""
    x, y = at % size, at // size
    over_x, over_y = 1.0 / (x1 - x0), 1.0 / (y1 - y0)
    t_x, u_x, t_y, u_y = (x - x0) * over_x, (x + 1 - x0) * over_x, (y - y0) * over_y, (y + 1 - y0) * over_y
    enter, leave = max(0.0, min(t_x, u_x), min(t_y, u_y)), min(1.0, max(t_x, u_x), max(t_y, u_y))
    if enter >= leave:
        return False
    one, two = z0 + (z1 - z0) * enter, z0 + (z1 - z0) * leave
    mask = (2 << math.floor(max(one, two))) - (1 << math.floor(min(one, two)))
    return integer(columns[at].opaque) & mask != 0


@entry_point
def nothing(tables: Any, state: Any, work: Any, repeats: int):
    return 0, 0.0


@entry_point
def turns(tables: Any, state: Any, work: Any, repeats: int):
    """Mech-ticks that turn: the angle, its cosine and sine."""
    dt, units, total = tables.rules[0].dt, 0, 0.0
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech = state.mechs[b, m]
                if mech.turn == 0.0 or not controls(mech):
                    continue
                mech.yaw = wrap_angle(mech.yaw + mech.turn * tables.classes[mech.mech_class].turn_rate * dt)
                mech.facing_x, mech.facing_y = cosine_sine(mech.yaw)
                units, total = units + 1, total + mech.facing_x
    return units, total


@entry_point
def moves(tables: Any, state: Any, work: Any, repeats: int):
    """Mech-ticks under way: displacement, map bounds, the cells that the box covers, the vertical step, velocities."""
    rules, units, total = tables.rules[0], 0, 0
    dt, size = rules.dt, float(rules.map_size)
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech = state.mechs[b, m]
                if not controls(mech) or (mech.throttle == 0.0 and mech.strafe == 0.0):
                    continue
                one = tables.classes[mech.mech_class]
                half, reach = one.half_length - CONTACT_TOLERANCE, one.top_speed * mech.speed_factor * dt
                x = mech.x + reach * (mech.throttle * mech.facing_x - mech.strafe * mech.facing_y)
                y = mech.y + reach * (mech.throttle * mech.facing_y + mech.strafe * mech.facing_x)
                x, y = min(max(x, one.half_length), size - half), min(max(y, one.half_length), size - half)
                moved = math.floor(x - half) != math.floor(mech.x - half)
                moved |= math.floor(x + half) != math.floor(mech.x + half)
                moved |= math.floor(y - half) != math.floor(mech.y - half)
                moved |= math.floor(y + half) != math.floor(mech.y + half)
                mech.vz = (mech.vz - rules.gravity * dt) * rules.vertical_keep
                if mech.z + mech.vz * dt <= mech.z:
                    mech.vz = 0.0
                mech.vx, mech.vy = (x - mech.x) / dt, (y - mech.y) / dt
                mech.x, mech.y = x, y
                units, total = units + 1, total + moved
    return units, float(total)


@entry_point
def footprints(tables: Any, state: Any, work: Any, repeats: int):
    """Columns under a box, looked at once for what blocks it, what bears it and what is hazardous in it."""
    size, units, total = integer(tables.rules[0].map_size), 0, 0
    for b in range(state.mechs.shape[0]):
        columns = state.columns[b]
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech = state.mechs[b, m]
                if not mech.alive:
                    continue
                one = tables.classes[mech.mech_class]
                half, level = one.half_length - CONTACT_TOLERANCE, math.floor(mech.z + CONTACT_TOLERANCE)
                mask = (1 << math.floor(mech.z + one.height - CONTACT_TOLERANCE) + 1) - (1 << level)
                first_x, stop_x = math.floor(mech.x - half), math.floor(mech.x + half) + 1
                below = (1 << level) - 1
                bearing, blocking, hazard = 0, 0, 0
                for iy in range(math.floor(mech.y - half), math.floor(mech.y + half) + 1):
                    for ix in range(first_x, stop_x):
                        column = columns[iy * size + ix]
                        bearing |= integer(column.solid) & below
                        blocking |= integer(column.solid) & mask
                        hazard |= integer(column.hazard) & mask
                        units += 1
                total += bearing ^ blocking ^ hazard
    return units, float(total)


@entry_point
def pairs(tables: Any, state: Any, work: Any, repeats: int):
    """Pairs of living mechs whose boxes are compared."""
    units, total = 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for repeat in range(repeats):
            for m in range(mechs.shape[0] if not state.battles[b].over else 0):
                if not mechs[m].alive:
                    continue
                x, y, z, one = mechs[m].x, mechs[m].y, mechs[m].z, tables.classes[mechs[m].mech_class]
                half, top = one.half_length + 0.1 * repeat, z + one.height
                for o in range(m):
                    other = mechs[o]
                    if not other.alive:
                        continue
                    two = tables.classes[other.mech_class]
                    gap = half + two.half_length
                    near = abs(x - other.x) < gap and abs(y - other.y) < gap
                    total += near and z < other.z + two.height and other.z < top
                    units += 1
    return units, float(total)


@entry_point
def draws(tables: Any, state: Any, work: Any, repeats: int):
    """Random numbers."""
    units, total = 0, 0.0
    for b in range(state.mechs.shape[0]):
        battle = state.battles[b]
        for repeat in range(repeats):
            for place in range(state.mechs.shape[1] if not battle.over else 0):
                total += rng.random_unit(battle.seed, integer(battle.tick) + repeat, place, rng.MOVE_ORDER)
                units += 1
    return units, total


@entry_point
def lines(tables: Any, state: Any, work: Any, repeats: int):
    """Columns that the lines between living enemies cross until they are blocked."""
    size, units, total = integer(tables.rules[0].map_size), 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for _ in range(repeats):
            for m in range(mechs.shape[0] if not state.battles[b].over else 0):
                mech = mechs[m]
                if mech.team != 0 or not mech.alive:
                    continue
                z = mech.z + 0.5 * tables.classes[mech.mech_class].height
                for o in range(mechs.shape[0]):
                    other = mechs[o]
                    if other.team == 0 or not other.alive:
                        continue
                    high = other.z + 0.5 * tables.classes[other.mech_class].height
                    blocker, seen = walk(state.columns[b], size, mech.x, mech.y, z, other.x, other.y, high)
                    work.blockers[b, m, o] = blocker
                    units, total = units + seen, total + blocker
    return units, float(total)


@entry_point
def blockers(tables: Any, state: Any, work: Any, repeats: int):
    """Lines that were blocked when they were last walked, compared with the column that blocked them."""
    size, units, total = integer(tables.rules[0].map_size), 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for _ in range(repeats):
            for m in range(mechs.shape[0] if not state.battles[b].over else 0):
                mech = mechs[m]
                if mech.team != 0 or not mech.alive:
                    continue
                z = mech.z + 0.5 * tables.classes[mech.mech_class].height
                for o in range(mechs.shape[0]):
                    other, at = mechs[o], integer(work.blockers[b, m, o])
                    if other.team == 0 or not other.alive or at < 0:
                        continue
                    high = other.z + 0.5 * tables.classes[other.mech_class].height
                    total += still_blocks(state.columns[b], size, at, mech.x, mech.y, z, other.x, other.y, high)
                    units += 1
    return units, float(total)
