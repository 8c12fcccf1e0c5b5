"""Tight loops of what follows the movement of a decision: senses and observations.

See `floor_kernels` for what each returns and how its loops are laid out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine._jit import bit_length, entry_point, kernel
from echelon_env.layout.observations import CONTACT_CLASS, EGO_SIDE, SELF_CLASS, STREAMS, Contact, EgoCell, Self

CONTACTS_AT, CONTACT_WIDTH = STREAMS["contacts"].start, STREAMS["contacts"].row_width
SELF_WIDTH = STREAMS["self"].row_width
COMM_AT, COMM_WIDTH = STREAMS["comm"].start, STREAMS["comm"].row_width
EGO_MAP_AT, EGO_CELL_WIDTH = STREAMS["ego_map"].start, STREAMS["ego_map"].row_width


@kernel
def cut(value: float) -> float:
    return min(max(value, -1.0), 1.0)


@entry_point
def senses(tables: Any, state: Any, work: Any, repeats: int):
    """Pairs of living enemies: distance, radar, heat and radiation both ways, noise in both's quadrants."""
    rules, units, total = tables.rules[0], 0, 0.0
    hearing, radar = rules.hearing_range**2, rules.radar_range
    for b in range(state.mechs.shape[0]):
        mechs, visible = state.mechs[b], state.visible[b]
        for _ in range(repeats):
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
def listings(tables: Any, state: Any, work: Any, repeats: int):
    """Enemies put into a table of a mech in the order of their distance."""
    units, total = 0, 0
    for b in range(state.mechs.shape[0]):
        mechs = state.mechs[b]
        for _ in range(repeats):
            for m in range(mechs.shape[0] if not state.battles[b].over else 0):
                mech, count = mechs[m], 0
                if not mech.alive:
                    continue
                for o in range(mechs.shape[0]):
                    if not work.visible[b, m, o]:
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
def sightings(tables: Any, state: Any, work: Any, repeats: int):
    """What a pack knows of an enemy brought up to date."""
    units, total = 0, 0.0
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for pack in range(state.sightings.shape[1] if not state.battles[b].over else 0):
                for o in range(state.mechs.shape[1]):
                    known, other = state.sightings[b, pack, o], state.mechs[b, o]
                    known.x, known.y, known.z = other.x, other.y, other.z
                    known.vx, known.vy, known.armour, known.age, known.known = other.vx, other.vy, other.armour, 0, 1
                    units, total = units + 1, total + other.x
    return units, total


@entry_point
def own_rows(tables: Any, state: Any, work: Any, repeats: int):
    """Features of the streams that describe the mech itself: shares of the own record, some turned into its frame."""
    rules, units, total = tables.rules[0], 0, 0.0
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech, row = state.mechs[b, m], work.observations[b, m]
                if not mech.alive:
                    continue
                one, half = tables.classes[mech.mech_class], 0.5 * rules.map_size
                row[Self.ALIVE], row[Self.ARMOUR], row[Self.LEGS] = 1.0, mech.armour / one.armour, mech.legs / one.legs
                row[Self.STABILITY], row[Self.HEAT] = mech.stability / 100.0, mech.heat / one.heat_capacity
                row[Self.FALLEN], row[Self.SUPPRESSED] = mech.fallen / rules.fall_ticks, mech.suppressed > 0
                row[Self.SHUTDOWN], row[Self.ON_GROUND] = mech.shutdown, mech.on_ground
                for i in range(4):
                    if one.weapon[i] >= 0:
                        weapon = tables.weapons[one.weapon[i]]
                        row[Self.HAS_PRIMARY + i] = weapon.charges == 0 or mech.charges[i] > 0
                        row[Self.COOLDOWN_PRIMARY + i] = mech.cooldown[i] / weapon.cooldown
                    row[Self.SOUND_AHEAD + i] = mech.sounds[i]
                c, s = mech.facing_x, mech.facing_y
                row[Self.VELOCITY_FORWARD] = cut((mech.vx * c + mech.vy * s) / rules.speed_scale)
                row[Self.VELOCITY_LEFT] = cut((mech.vy * c - mech.vx * s) / rules.speed_scale)
                row[Self.VELOCITY_UP], row[Self.HEIGHT] = cut(mech.vz / rules.speed_scale), mech.z / rules.map_height
                row[Self.POSITION_X], row[Self.POSITION_Y] = (mech.x - half) / half, (mech.y - half) / half
                row[Self.HEADING_COS], row[Self.HEADING_SIN] = cut(c), cut(s)
                row[Self.HURT_FORWARD] = cut((mech.hurt_x * c + mech.hurt_y * s) / one.armour)
                row[Self.HURT_LEFT] = cut((mech.hurt_y * c - mech.hurt_x * s) / one.armour)
                row[Self.SENSOR_QUALITY], row[Self.JAMMED] = mech.quality / rules.max_quality, mech.jam
                row[Self.CONTACT_SLOTS], row[Self.HAS_ELECTRONICS] = one.contact_slots / 12.0, one.electronics
                row[Self.SENSOR_RANGE] = (one.radar_factor - rules.least_radar) / rules.radar_span
                row[Self.ECM], row[Self.ECCM] = mech.radiates == 1, mech.radiates == 2
                row[Self.PAINTED], row[Self.MISSILE] = work.painted[b, m], work.painted[b, m]
                row[Self.BY_DISTANCE + mech.display], row[Self.HAS_TARGET] = 1.0, mech.target >= 0
                row[SELF_CLASS + one.one_hot] = 1.0
                units, total = units + SELF_WIDTH, total + row[Self.ARMOUR]
    return units, total


@entry_point
def entity_rows(tables: Any, state: Any, work: Any, repeats: int):
    """Features of others as a mech sees them: contacts and team-mates, each a contact's row."""
    rules, units, total = tables.rules[0], 0, 0.0
    for b in range(state.mechs.shape[0]):
        battle, mechs = state.battles[b], state.mechs[b]
        for _ in range(repeats):
            for m in range(mechs.shape[0] if not battle.over else 0):
                mech, row, at, first, count = mechs[m], work.observations[b, m], CONTACTS_AT, work.others[b, m], 0
                c, s = mech.facing_x, mech.facing_y
                z = mech.z + 0.5 * tables.classes[mech.mech_class].height
                while first[count] >= 0:
                    other = mechs[first[count]]
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
                    row[at + Contact.LINE_OF_SIGHT] = work.visible[b, m, first[count]] == 2
                    row[at + Contact.PAINTED] = state.paint[b, mech.pack, first[count]].ticks > 0
                    near = (other.x - battle.zone_x) ** 2 + (other.y - battle.zone_y) ** 2 <= battle.zone_radius**2
                    row[at + Contact.IN_ZONE], row[at + Contact.IS_TARGET] = near, first[count] == mech.target
                    row[at + CONTACT_CLASS + two.one_hot] = 1.0
                    at, count = at + CONTACT_WIDTH, count + 1
                    units, total = units + CONTACT_WIDTH, total + away
    return units, total


@entry_point
def copies(tables: Any, state: Any, work: Any, repeats: int):
    """Features that are copied: the pack's messages."""
    units, total = 0, 0.0
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech, row, at = state.mechs[b, m], work.observations[b, m], COMM_AT
                for o in range(state.mechs.shape[1]):
                    other = state.mechs[b, o]
                    if other.pack == mech.pack and other.alive and mech.alive:
                        for i in range(other.message.shape[0]):
                            row[at + i] = other.message[i]
                        row[at + 9 + tables.classes[other.mech_class].one_hot] = 1.0
                        at, units, total = at + COMM_WIDTH, units + COMM_WIDTH, total + other.message[0]
    return units, total


@entry_point
def cells(tables: Any, state: Any, work: Any, repeats: int):
    """Cells of the map around a living mech: all places first, then the columns' heights over its feet and hazards.

    One look at the bounds does for all cells; who stands nearer to the edge than that is taken as if it stood inside.
    """
    rules, units, total = tables.rules[0], 0, 0
    size, half, places = np.int32(rules.map_size), EGO_SIDE // 2, work.places
    for b in range(state.mechs.shape[0]):
        columns = state.columns[b]
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                mech, row = state.mechs[b, m], work.observations[b, m]
                if not mech.alive:
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


@entry_point
def clears(tables: Any, state: Any, work: Any, repeats: int):
    """Bytes of observations set to 0."""
    units = 0
    for b in range(state.mechs.shape[0]):
        for _ in range(repeats):
            for m in range(state.mechs.shape[1] if not state.battles[b].over else 0):
                work.observations[b, m, :] = 0.0
                units += 4 * work.observations.shape[2]
    return units, float(work.observations[0, 0, 0])
