"""Tight loops of the work that movement, sensors and observations cannot do without; `floors` times them.

Each kernel takes the tables, a `State` whose columns come flattened, (B, Y * X), and a `Work`. It passes over all
battles that are not over, five times where the work is that of a tick, and returns how many units it did and a sum of
results, so that the compiler can leave nothing out. It writes into copies. Every kernel writes its loops out, alike as
they are: Numba takes no body of a loop as an argument, and pairs listed beforehand would be more memory to read.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine.bits import bit_length
from echelon_env.engine.geometry import CONTACT_TOLERANCE, cosine_sine, wrap_angle
from echelon_env.engine.kernels import entry_point, integer, kernel
from echelon_env.engine.state import IN_SIGHT
from echelon_env.layout.observations import CONTACT_CLASS, EGO_SIDE, STREAMS, Contact, EgoCell

NEVER = 2.0
TICKS = 5
CONTACTS_AT, CONTACT_WIDTH = STREAMS["contacts"].start, STREAMS["contacts"].row_width
EGO_MAP_AT, EGO_CELL_WIDTH = STREAMS["ego_map"].start, STREAMS["ego_map"].row_width


@kernel
def cut(value: float) -> float:
    return min(max(value, -1.0), 1.0)


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
def nothing(tables: Any, state: Any, work: Any):
    return 0, 0.0


@entry_point
def turns(tables: Any, state: Any, work: Any):
    """Mech-ticks that turn: the angle, its cosine and sine."""
    dt, units, total = tables.rules[0].dt, 0, 0.0
    for b in range(state.mechs.shape[0]):
        for _ in range(TICKS):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech = state.mechs[b, m]
                if mech.turn == 0.0 or not controls(mech):
                    continue
                mech.yaw = wrap_angle(mech.yaw + mech.turn * tables.classes[mech.mech_class].turn_rate * dt)
                mech.facing_x, mech.facing_y = cosine_sine(mech.yaw)
                units, total = units + 1, total + mech.facing_x
    return units, total


@entry_point
def moves(tables: Any, state: Any, work: Any):
    """Mech-ticks under way: displacement, map bounds, the cells that the box covers, the vertical step, velocities.

    The columns under a box that has come to cover other cells are read once for what blocks it, what bears it and
    what is hazardous in it.
    """
    rules, units, total = tables.rules[0], 0, 0
    dt, map_size, size = rules.dt, float(rules.map_size), integer(rules.map_size)
    for b in range(state.mechs.shape[0]):
        for _ in range(TICKS):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech = state.mechs[b, m]
                if not controls(mech) or (mech.throttle == 0.0 and mech.strafe == 0.0):
                    continue
                one = tables.classes[mech.mech_class]
                half, reach = one.half_length - CONTACT_TOLERANCE, one.top_speed * mech.speed_factor * dt
                x = mech.x + reach * (mech.throttle * mech.facing_x - mech.strafe * mech.facing_y)
                y = mech.y + reach * (mech.throttle * mech.facing_y + mech.strafe * mech.facing_x)
                x = min(max(x, one.half_length), map_size - one.half_length)
                y = min(max(y, one.half_length), map_size - one.half_length)
                first_x, last_x = math.floor(x - half), math.floor(x + half)
                first_y, last_y = math.floor(y - half), math.floor(y + half)
                moved = first_x != math.floor(mech.x - half) or last_x != math.floor(mech.x + half)
                if moved or first_y != math.floor(mech.y - half) or last_y != math.floor(mech.y + half):
                    level = math.floor(mech.z + CONTACT_TOLERANCE)
                    below = (1 << level) - 1
                    mask = (2 << math.floor(mech.z + one.height - CONTACT_TOLERANCE)) - (1 << level)
                    for iy in range(first_y, last_y + 1):
                        for ix in range(first_x, last_x + 1):
                            column = state.columns[b, iy * size + ix]
                            solid = integer(column.solid)
                            total += (solid & below != 0) + (solid & mask != 0) + (integer(column.hazard) & mask != 0)
                mech.vz = (mech.vz - rules.gravity * dt) * rules.vertical_keep
                if mech.z + mech.vz * dt <= mech.z:
                    mech.vz = 0.0
                mech.vx, mech.vy = (x - mech.x) / dt, (y - mech.y) / dt
                mech.x, mech.y = x, y
                units += 1
    return units, float(total)


@entry_point
def pairs(tables: Any, state: Any, work: Any):
    """Pairs of living mechs whose boxes are compared."""
    units, total = 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for m in range(mechs.shape[0] if not state.battles[b].over else 0):
            if not mechs[m].alive:
                continue
            x, y, z, one = mechs[m].x, mechs[m].y, mechs[m].z, tables.classes[mechs[m].mech_class]
            half, top = one.half_length, z + one.height
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
def senses(tables: Any, state: Any, work: Any):
    """Pairs of living enemies: distance, radar, heat and radiation both ways, noise in both's quadrants."""
    rules, units, total = tables.rules[0], 0, 0.0
    hearing, radar = rules.hearing_range**2, rules.radar_range
    for b in range(state.mechs.shape[0]):
        mechs, visible = state.mechs[b], state.visible[b]
        for m in range(mechs.shape[0] if not state.battles[b].over else 0):
            one = mechs[m]
            if one.team != 0 or not one.alive:
                continue
            a = tables.classes[one.mech_class]
            z, reach, hot = one.z + 0.5 * a.height, (radar * a.radar_factor * one.quality) ** 2, one.heat > 60.0
            loud = math.sqrt(one.vx * one.vx + one.vy * one.vy) * a.noise
            for o in range(mechs.shape[0]):
                two = mechs[o]
                if two.team == 0 or not two.alive:
                    continue
                c = tables.classes[two.mech_class]
                dx, dy, dz = two.x - one.x, two.y - one.y, two.z + 0.5 * c.height - z
                away = dx * dx + dy * dy + dz * dz
                visible[m, o] = away <= reach or two.heat > 60.0 or two.radiates
                visible[o, m] = away <= (radar * c.radar_factor * two.quality) ** 2 or hot or one.radiates
                if away <= hearing:
                    forward, left = dx * one.facing_x + dy * one.facing_y, dy * one.facing_x - dx * one.facing_y
                    noise = math.sqrt(two.vx * two.vx + two.vy * two.vy) * c.noise / (1.0 + away)
                    one.sounds[(0 if forward > 0.0 else 2) if abs(forward) >= abs(left) else 1] += noise
                    forward, left = dx * two.facing_x + dy * two.facing_y, dy * two.facing_x - dx * two.facing_y
                    two.sounds[(0 if forward < 0.0 else 2) if abs(forward) >= abs(left) else 1] += loud
                units, total = units + 1, total + away
    return units, total


@entry_point
def lines(tables: Any, state: Any, work: Any):
    """Columns read for the lines between living enemies.

    That is one where the column that blocked the line at the last decision still does, else all until it is blocked.
    """
    size, units, total = integer(tables.rules[0].map_size), 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
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
                at, seen = integer(work.blockers[b, m, o]), 1
                if at < 0 or not still_blocks(state.columns[b], size, at, mech.x, mech.y, z, other.x, other.y, high):
                    at, seen = walk(state.columns[b], size, mech.x, mech.y, z, other.x, other.y, high)
                    work.blockers[b, m, o] = at
                units, total = units + seen, total + at
    return units, float(total)


@entry_point
def listings(tables: Any, state: Any, work: Any):
    """Enemies put into a mech's tables, of contacts and of what its pack knows, in the order of their distance."""
    units, total = 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for m in range(mechs.shape[0] if not state.battles[b].over else 0):
            mech = mechs[m]
            for table in range(work.listed.shape[1] if mech.alive else 0):
                count = 0
                for o in range(mechs.shape[0]):
                    if not work.listed[b, table, m, o]:
                        continue
                    away = (mechs[o].x - mech.x) ** 2 + (mechs[o].y - mech.y) ** 2 + (mechs[o].z - mech.z) ** 2
                    row = count
                    while row > 0 and work.distances[row - 1] > away:
                        work.distances[row], mech.contacts[row] = work.distances[row - 1], mech.contacts[row - 1]
                        row -= 1
                    work.distances[row], mech.contacts[row] = away, o
                    count = min(count + 1, mech.contacts.shape[0] - 1)
                    units += 1
                total += count
    return units, float(total)


@entry_point
def entity_rows(tables: Any, state: Any, work: Any):
    """Features of a living mech's contacts as it sees them."""
    rules, units, total = tables.rules[0], 0, 0.0
    for b in range(state.mechs.shape[0]):
        battle, mechs = state.battles[b], state.mechs[b]
        for m in range(mechs.shape[0] if not battle.over else 0):
            mech, row, at = mechs[m], work.observations[b, m], CONTACTS_AT
            if not mech.alive:
                continue
            c, s = mech.facing_x, mech.facing_y
            z = mech.z + 0.5 * tables.classes[mech.mech_class].height
            for o in mech.contacts:
                if o < 0:
                    break
                other = mechs[o]
                two = tables.classes[other.mech_class]
                dx, dy, dz = other.x - mech.x, other.y - mech.y, other.z + 0.5 * two.height - z
                plane = dx * dx + dy * dy
                away, flat = math.sqrt(plane + dz * dz), math.sqrt(plane)
                row[at + Contact.DIRECTION_FORWARD] = cut((dx * c + dy * s) / flat)
                row[at + Contact.DIRECTION_LEFT] = cut((dy * c - dx * s) / flat)
                row[at + Contact.DISTANCE] = min(1.0, away / rules.map_diagonal)
                row[at + Contact.RANGE] = min(1.0, away / rules.range_scale)
                row[at + Contact.ELEVATION] = dz / rules.map_height
                dx, dy = 0.5 * (other.vx - mech.vx), 0.5 * (other.vy - mech.vy)
                row[at + Contact.VELOCITY_FORWARD] = cut((dx * c + dy * s) / rules.speed_scale)
                row[at + Contact.VELOCITY_LEFT] = cut((dy * c - dx * s) / rules.speed_scale)
                row[at + Contact.FACING_FORWARD] = cut(other.facing_x * c + other.facing_y * s)
                row[at + Contact.FACING_LEFT] = cut(other.facing_y * c - other.facing_x * s)
                row[at + Contact.ARMOUR] = other.armour / two.armour
                row[at + Contact.HEAT] = other.heat / two.heat_capacity
                row[at + Contact.SHUTDOWN], row[at + Contact.FALLEN] = other.shutdown, other.fallen > 0
                row[at + Contact.LEGGED], row[at + Contact.RADIATING] = other.legs <= 0.0, other.radiates > 0
                row[at + Contact.LINE_OF_SIGHT] = state.visible[b, m, o] == IN_SIGHT
                row[at + Contact.PAINTED] = state.paint[b, mech.pack, o].ticks > 0
                near = (other.x - battle.zone_x) ** 2 + (other.y - battle.zone_y) ** 2 <= battle.zone_radius**2
                row[at + Contact.IN_ZONE], row[at + Contact.IS_TARGET] = near, o == mech.target
                row[at + CONTACT_CLASS + two.one_hot] = 1.0
                at, units, total = at + CONTACT_WIDTH, units + CONTACT_WIDTH, total + away
    return units, total


@entry_point
def cells(tables: Any, state: Any, work: Any):
    """Cells of the map around a mech that moved or turned: all places first, then heights over its feet and hazards.

    One test of the bounds does for all cells; a mech that stands nearer to the edge is taken as if it stood inside.
    """
    rules, units, total = tables.rules[0], 0, 0
    size, half, places = np.int32(rules.map_size), EGO_SIDE // 2, work.places
    for b in range(state.mechs.shape[0]):
        columns = state.columns[b]
        for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
            mech, row = state.mechs[b, m], work.observations[b, m]
            if not work.moved[b, m]:
                continue
            z, step_x, step_y = mech.z, rules.terrain_cell * mech.facing_x, rules.terrain_cell * mech.facing_y
            reach = half * (abs(step_x) + abs(step_y))
            x0, y0 = min(max(mech.x, reach), size - 1 - reach), min(max(mech.y, reach), size - 1 - reach)
            for forward in range(EGO_SIDE):
                for left in range(EGO_SIDE):
                    x = x0 + (forward - half) * step_x - (left - half) * step_y
                    y = y0 + (forward - half) * step_y + (left - half) * step_x
                    places[forward * EGO_SIDE + left] = np.int32(y) * size + np.int32(x)
            for cell in range(EGO_SIDE * EGO_SIDE):
                column = columns[places[cell]]
                at = EGO_MAP_AT + EGO_CELL_WIDTH * cell
                row[at + EgoCell.OBSTACLE] = cut((bit_length(column.solid) - z) / rules.height_scale)
                total += column.hazard != 0
            units += EGO_SIDE * EGO_SIDE
    return units, float(total)
