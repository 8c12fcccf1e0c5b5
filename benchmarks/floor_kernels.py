"""Tight loops of the primitives that a tick is made of, on the engine's arrays; `floor` times and multiplies them.

Each kernel passes `repeats` times over a battle's records before it turns to the next battle, as the ticks of a
decision do, and returns how many units it did and a sum of results, so that the compiler can leave nothing out. They
write into copies. Columns come flattened, (B, Y * X). Every kernel writes its loops out, alike as they are: Numba
takes no body of a loop as an argument, and pairs listed beforehand would be more memory to read.
"""

from __future__ import annotations

import math
from typing import Any

from echelon_env.config.catalog import MOUNTS
from echelon_env.engine import rng
from echelon_env.engine._jit import entry_point, integer, kernel
from echelon_env.engine.geometry import CONTACT_TOLERANCE, cosine_sine, wrap_angle
from echelon_env.engine.guidance import BALLISTIC, HOMING

NUM_MOUNTS = len(MOUNTS)
NEVER = 2.0


@kernel
def controls(mech: Any) -> bool:
    return bool(mech.alive and not mech.shutdown and mech.fallen == 0)


@kernel
def walk(columns: Any, size: int, by_sight: bool, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float):
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
        bits = integer(columns[at].opaque) if by_sight else integer(columns[at].opaque) | integer(columns[at].solid)
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
def commands(tables: Any, state: Any, work: Any, repeats: int):
    """Live mechs whose action entries are checked, cut and turned into commands."""
    units, total = 0, 0.0
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech, action = state.mechs[b, m], work.actions[b, m]
                if not mech.alive:
                    continue
                bad = 0
                for i in range(action.shape[0]):
                    value = action[i]
                    bad += not math.isfinite(value)
                    action[i] = min(max(value, -1.0), 1.0) if math.isfinite(value) else 0.0
                length = math.sqrt(action[0] * action[0] + action[1] * action[1])
                share = 1.0 / max(1.0, length)
                mech.throttle, mech.strafe = share * action[0], share * action[1]
                mech.jet, mech.turn, mech.bad_actions = max(0.0, action[2]), action[3], bad
                for mount in range(NUM_MOUNTS):
                    mech.trigger[mount] = action[4 + mount] > 0.0
                mech.vent, mech.radiates, mech.target = action[8] > 0.0, action[14] > 0.0, mech.contacts[0]
                for i in range(8):
                    mech.message[i] = action[19 + i]
                mech.hurt_x = mech.hurt_y = mech.damage_dealt = mech.friendly_damage = 0.0
                mech.kills = mech.assists = mech.loss = 0.0
                mech.died = mech.shutdown_ticks = 0
                units, total = units + 1, total + length
    return units, total


@entry_point
def bodies(tables: Any, state: Any, work: Any, repeats: int):
    """Mech-ticks of timers, balance, heat and the look at triggers."""
    rules, units, total = tables.rules[0], 0, 0.0
    gain, still = rules.stability_recovery * rules.dt, rules.moving_speed**2
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech = state.mechs[b, m]
                if not mech.alive:
                    continue
                one, ready = tables.classes[mech.mech_class], False
                for mount in range(NUM_MOUNTS):
                    mech.cooldown[mount] = max(mech.cooldown[mount] - 1, 0)
                    ready |= mech.trigger[mount] and mech.cooldown[mount] == 0
                mech.anti_missile_cooldown = max(mech.anti_missile_cooldown - 1, 0)
                mech.suppressed = max(mech.suppressed - 1, 0)
                if mech.fallen > 0:
                    mech.fallen -= 1
                elif mech.stability < rules.max_stability:
                    slow = mech.vx * mech.vx + mech.vy * mech.vy <= still and mech.suppressed == 0
                    mech.stability = min(rules.max_stability, mech.stability + (gain if slow else 0.5 * gain))
                if mech.heat > 0.0 or mech.radiates:
                    cooled = mech.heat - one.heat_dissipation * (2.0 if mech.vent else 1.0) * rules.dt
                    mech.heat = max(0.0, cooled) + (rules.ecm_heat * rules.dt if mech.radiates else 0.0)
                    if mech.heat > one.heat_capacity:
                        total += 1.0
                units, total = units + 1, total + ready
    return units, total


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
def targets(tables: Any, state: Any, work: Any, repeats: int):
    """Enemies compared with the range and the arc of a mount."""
    units, total = 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for repeat in range(repeats):
            for m in range(mechs.shape[0] if not state.battles[b].over else 0):
                mech = mechs[m]
                if not mech.alive:
                    continue
                one = tables.classes[mech.mech_class]
                z = mech.z + 0.5 * one.height + 0.1 * repeat
                for mount in range(NUM_MOUNTS):
                    if one.weapon[mount] < 0:
                        continue
                    weapon = tables.weapons[one.weapon[mount]]
                    reach, arc = weapon.range * weapon.range, weapon.arc_cos
                    for o in range(mechs.shape[0]):
                        other = mechs[o]
                        if other.team == mech.team or not other.alive:
                            continue
                        dx, dy = other.x - mech.x, other.y - mech.y
                        dz = other.z + 0.5 * tables.classes[other.mech_class].height - z
                        plane = dx * dx + dy * dy
                        if plane + dz * dz <= reach:
                            total += dx * mech.facing_x + dy * mech.facing_y >= arc * math.sqrt(plane)
                        units += 1
    return units, float(total)


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
                    blocker, seen = walk(state.columns[b], size, True, mech.x, mech.y, z, other.x, other.y, high)
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


@entry_point
def flights(tables: Any, state: Any, work: Any, repeats: int):
    """Projectile-ticks: guidance, the columns under the step, and the step's bounds against the enemies' boxes."""
    rules, units, total = tables.rules[0], 0, 0.0
    dt, size, height = rules.dt, integer(rules.map_size), rules.map_height
    for b in range(state.mechs.shape[0]):
        mechs, count = state.mechs[b], integer(state.battles[b].num_projectiles)
        for _ in range(repeats):
            for p in range(count if not state.battles[b].over else 0):
                shell = state.projectiles[b, p]
                dx, dy, dz = shell.vx * dt, shell.vy * dt, shell.vz * dt
                weapon = tables.weapons[shell.weapon]
                if weapon.flight == HOMING:
                    aim = mechs[shell.target]
                    dx, dy, dz = aim.x - shell.x, aim.y - shell.y, aim.z + shell.aim - shell.z
                    share = weapon.speed * dt / max(1.0, math.sqrt(dx * dx + dy * dy + dz * dz))
                    dx, dy, dz = share * dx, share * dy, share * dz
                    shell.vx, shell.vy, shell.vz = dx / dt, dy / dt, dz / dt
                elif weapon.flight == BALLISTIC:
                    dz -= 0.5 * rules.gravity * dt * dt
                shell.reach = shell.reach - math.sqrt(dx * dx + dy * dy + dz * dz)
                x, y, z = shell.x + dx, shell.y + dy, shell.z + dz
                middle_x, middle_y, team = x - 0.5 * dx, y - 0.5 * dy, mechs[shell.owner].team
                room_x, room_y = 0.5 * abs(dx), 0.5 * abs(dy)
                for m in range(mechs.shape[0]):
                    mech = mechs[m]
                    half = tables.classes[mech.mech_class].half_length
                    if abs(mech.x - middle_x) <= half + room_x and abs(mech.y - middle_y) <= half + room_y:
                        total += mech.alive and mech.team != team
                if (
                    min(middle_x - room_x, middle_y - room_y, z) > 0.0
                    and max(x, y, shell.x, shell.y) < size
                    and z < height
                ):
                    struck, seen = walk(state.columns[b], size, False, shell.x, shell.y, shell.z, x, y, z)
                    total += struck + seen
                units += 1
    return units, total
