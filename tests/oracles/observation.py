"""The observation of a mech, feature by feature, from each feature's documented meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from echelon_env.catalog import MechClass
from echelon_env.engine.state import ECCM, ECM, IN_SIGHT, NO_MECH, SILENT
from echelon_env.observations import (
    EGO_SIDE,
    MAP_SIDE,
    OBSERVATION_DIM,
    SQUAD_ROWS,
    STREAMS,
    Contact,
    Feature,
    Objective,
    Self,
    Squad,
)
from oracles.battle import is_inside_zone
from oracles.combat import minus
from oracles.electronics import radiation
from oracles.paint import has_painted
from oracles.world import Mech, World

Features = Mapping[Feature, float]
ONE_HOT = {"scout": 0, "light": 1, "medium": 2, "heavy": 3}


def observe(
    world: World, mech: Mech, seen: Mapping[tuple[int, int], int], team_map: Sequence[float]
) -> NDArray[np.float64]:
    """The whole row of a mech. `seen` says how each mech sees each enemy, `team_map` is its team's `battle_map`."""
    row = np.zeros(OBSERVATION_DIM)
    if not mech.alive:
        return row
    _write(row, "self", 0, self_features(world, mech))
    _write(row, "objective", 0, objective_features(world, mech))
    for number, index in enumerate(mech.contacts):
        if index != NO_MECH:
            enemy = world.mechs[index]
            _write(row, "contacts", number, contact_features(world, mech, enemy, seen[mech.index, index] == IN_SIGHT))
            row[STREAMS["contacts_mask"].start + number] = 1
    for number, mate in enumerate(squad_of(world, mech)[:SQUAD_ROWS]):
        _write(row, "squad", number, squad_features(world, mech, mate))
        row[STREAMS["squad_mask"].start + number] = 1
    row[STREAMS["ego_map"].part] = ego_map(world, mech)
    row[STREAMS["battle_map"].part] = team_map
    return row


def _write(row: NDArray[np.float64], stream: str, number: int, features: Features) -> None:
    table = STREAMS[stream]
    assert set(features) == set(table.features), set(table.features) ^ set(features)
    for feature, value in features.items():
        row[table.start + number * table.row_width + feature] = value


def _clip(value: float) -> float:
    return max(-1.0, min(1.0, value))


def _one_hot(features: type[Feature], kind: MechClass) -> Features:
    members = (features["IS_SCOUT"], features["IS_LIGHT"], features["IS_MEDIUM"], features["IS_HEAVY"])
    return {member: float(number == ONE_HOT.get(kind.name)) for number, member in enumerate(members)}


def _in_frame(mech: Mech, x: float, y: float) -> tuple[float, float]:
    """A world vector's parts forward and to the left of a mech."""
    cos, sin = math.cos(mech.yaw), math.sin(mech.yaw)
    return x * cos + y * sin, y * cos - x * sin


def _bearing(mech: Mech, dx: float, dy: float) -> tuple[float, float]:
    """Forward and left part of the planar unit vector along (dx, dy), zero where that is zero."""
    length = math.hypot(dx, dy)
    return _in_frame(mech, dx / length, dy / length) if length > 0 else (0.0, 0.0)


def _turn_map(world: World, team: int, x: float, y: float) -> tuple[float, float]:
    """A planar vector on the map turned so that the team's spawn is in the corner at (0, 0)."""
    for _ in range(world.teams[team].quarter_turns % 4):
        x, y = -y, x
    return x, y


def fastest(world: World) -> float:
    return max(kind.top_speed for kind in world.config.catalog.mech_classes)


def diagonal(world: World) -> float:
    return math.hypot(world.config.terrain.size, world.config.terrain.size)


def self_features(world: World, mech: Mech) -> Features:
    config = world.config
    half = config.terrain.size / 2
    position = _turn_map(world, mech.team, (mech.x - half) / half, (mech.y - half) / half)
    heading = _turn_map(world, mech.team, math.cos(mech.yaw), math.sin(mech.yaw))
    velocity = _in_frame(mech, mech.vx, mech.vy)
    hurt = _in_frame(mech, mech.hurt_x, mech.hurt_y)
    waits = [
        0.0 if weapon is None else ticks / config.ticks(weapon.cooldown)
        for weapon, ticks in zip(mech.weapons, mech.cooldown, strict=True)
    ]
    has = [float(weapon is not None) for weapon in mech.weapons]
    special = mech.weapons[3]
    if special is not None and special.charges > 0 and mech.charges[3] == 0:
        has[3] = 0.0
    return {
        Self.ALIVE: 1.0,
        Self.ARMOUR: mech.armour / mech.kind.armour,
        Self.LEGS: mech.legs / mech.kind.legs,
        Self.STABILITY: mech.stability / config.physics.max_stability,
        Self.FALLEN: mech.fallen / config.ticks(config.physics.fall_duration),
        Self.SUPPRESSED: float(mech.suppressed > 0),
        Self.HEAT: mech.heat / mech.kind.heat_capacity,
        Self.SHUTDOWN: float(mech.shutdown),
        Self.ON_GROUND: float(mech.on_ground),
        Self.COOLDOWN_PRIMARY: waits[0],
        Self.COOLDOWN_SECONDARY: waits[1],
        Self.COOLDOWN_TERTIARY: waits[2],
        Self.COOLDOWN_SPECIAL: waits[3],
        Self.HAS_PRIMARY: has[0],
        Self.HAS_SECONDARY: has[1],
        Self.HAS_TERTIARY: has[2],
        Self.HAS_SPECIAL: has[3],
        Self.VELOCITY_FORWARD: _clip(velocity[0] / fastest(world)),
        Self.VELOCITY_LEFT: _clip(velocity[1] / fastest(world)),
        Self.VELOCITY_UP: _clip(mech.vz / fastest(world)),
        Self.HEIGHT: mech.z / config.terrain.height,
        Self.POSITION_X: position[0],
        Self.POSITION_Y: position[1],
        Self.HEADING_COS: heading[0],
        Self.HEADING_SIN: heading[1],
        Self.HURT_FORWARD: _clip(hurt[0] / mech.kind.armour),
        Self.HURT_LEFT: _clip(hurt[1] / mech.kind.armour),
        **warfare_features(world, mech),
        **_one_hot(Self, mech.kind),
    }


def warfare_features(world: World, mech: Mech) -> Features:
    """What a mech hears, how well it senses, and what others do to it."""
    painted = any(has_painted(world, enemy.pack, mech) for enemy in world.mechs if enemy.team != mech.team)
    homing = [shot for shot in world.projectiles if shot.weapon.flight == "homing" and shot.target == mech.index]
    world.cases["observes a missile"] += bool(homing)
    world.cases["observes its own paint"] += painted
    return {
        Self.SOUND_AHEAD: mech.sounds[0],
        Self.SOUND_LEFT: mech.sounds[1],
        Self.SOUND_BEHIND: mech.sounds[2],
        Self.SOUND_RIGHT: mech.sounds[3],
        Self.SENSOR_QUALITY: mech.quality / world.config.sensors.max_quality,
        Self.JAMMED: mech.jam,
        Self.HAS_ELECTRONICS: float(mech.kind.electronics),
        Self.ECM: float(radiation(mech) == ECM),
        Self.ECCM: float(radiation(mech) == ECCM),
        Self.PAINTED: float(painted),
        Self.MISSILE: float(bool(homing)),
    }


def objective_features(world: World, mech: Mech) -> Features:
    config = world.config
    dx, dy = world.zone_x - mech.x, world.zone_y - mech.y
    distance = math.hypot(dx, dy)
    direction = _bearing(mech, dx, dy)
    own, enemy = world.teams[mech.team], world.teams[1 - mech.team]
    largest = config.zone.max_radius * math.sqrt(max(len(config.blue), len(config.red)) / 5)
    return {
        Objective.IN_ZONE: float(is_inside_zone(world, mech)),
        Objective.DIRECTION_FORWARD: direction[0],
        Objective.DIRECTION_LEFT: direction[1],
        Objective.DISTANCE: max(0.0, distance - world.zone_radius) / diagonal(world),
        Objective.DISTANCE_NEAR: _clip(distance / largest),
        Objective.RADIUS: world.zone_radius / largest,
        Objective.OWN_SHARE: own.share,
        Objective.ENEMY_SHARE: enemy.share,
        Objective.OWN_SCORE: _clip(own.score / config.zone.score_to_win),
        Objective.ENEMY_SCORE: _clip(enemy.score / config.zone.score_to_win),
        Objective.TIME_LEFT: 1 - world.step_count / config.max_steps,
    }


def contact_features(world: World, mech: Mech, enemy: Mech, in_sight: bool) -> Features:
    dx, dy, dz = minus(enemy.centre, mech.centre)
    direction = _bearing(mech, dx, dy)
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    velocity = _in_frame(mech, enemy.vx - mech.vx, enemy.vy - mech.vy)
    facing = _in_frame(mech, math.cos(enemy.yaw), math.sin(enemy.yaw))
    longest = max(weapon.range for weapon in world.config.catalog.weapons)
    return {
        Contact.DIRECTION_FORWARD: direction[0],
        Contact.DIRECTION_LEFT: direction[1],
        Contact.DISTANCE: _clip(distance / diagonal(world)),
        Contact.RANGE: _clip(distance / longest),
        Contact.ELEVATION: _clip(dz / world.config.terrain.height),
        Contact.LINE_OF_SIGHT: float(in_sight),
        Contact.VELOCITY_FORWARD: _clip(velocity[0] / (2 * fastest(world))),
        Contact.VELOCITY_LEFT: _clip(velocity[1] / (2 * fastest(world))),
        Contact.FACING_FORWARD: facing[0],
        Contact.FACING_LEFT: facing[1],
        Contact.ARMOUR: enemy.armour / enemy.kind.armour,
        Contact.HEAT: enemy.heat / enemy.kind.heat_capacity,
        Contact.SHUTDOWN: float(enemy.shutdown),
        Contact.FALLEN: float(enemy.fallen > 0),
        Contact.LEGGED: float(enemy.legs <= 0),
        Contact.PAINTED: float(has_painted(world, mech.pack, enemy)),
        Contact.RADIATING: float(radiation(enemy) != SILENT),
        Contact.IN_ZONE: float(is_inside_zone(world, enemy)),
        **_one_hot(Contact, enemy.kind),
    }


def squad_of(world: World, mech: Mech) -> list[Mech]:
    """Living team-mates, the own pack first, then by spawn place."""
    mates = [mate for mate in world.living() if mate.team == mech.team and mate is not mech]
    return sorted(mates, key=lambda mate: mate.pack != mech.pack)


def squad_features(world: World, mech: Mech, mate: Mech) -> Features:
    dx, dy, dz = minus(mate.centre, mech.centre)
    direction = _bearing(mech, dx, dy)
    return {
        Squad.DIRECTION_FORWARD: direction[0],
        Squad.DIRECTION_LEFT: direction[1],
        Squad.DISTANCE: _clip(math.sqrt(dx * dx + dy * dy + dz * dz) / diagonal(world)),
        Squad.ELEVATION: _clip(dz / world.config.terrain.height),
        Squad.ARMOUR: mate.armour / mate.kind.armour,
        Squad.HEAT: mate.heat / mate.kind.heat_capacity,
        Squad.SHUTDOWN: float(mate.shutdown),
        Squad.FALLEN: float(mate.fallen > 0),
        Squad.IN_ZONE: float(is_inside_zone(world, mate)),
        Squad.SAME_PACK: float(mate.pack == mech.pack),
        **_one_hot(Squad, mate.kind),
    }


def column_top(world: World, x: int, y: int) -> int:
    """1 + height of a column's highest solid voxel, 0 where there is none."""
    solid = np.flatnonzero(world.blocks_movement[:, y, x])
    return int(solid[-1]) + 1 if len(solid) else 0


def ego_map(world: World, mech: Mech) -> list[float]:
    """Heights around the mech: rows from behind to ahead, within a row from right to left."""
    cell, tallest = world.config.sensors.terrain_cell, max(kind.height for kind in world.config.catalog.mech_classes)
    cos, sin = math.cos(mech.yaw), math.sin(mech.yaw)
    middle = (EGO_SIDE - 1) / 2
    values = []
    for i in range(EGO_SIDE):
        for j in range(EGO_SIDE):
            forward, left = (i - middle) * cell, (j - middle) * cell
            x = math.floor(mech.x + forward * cos - left * sin)
            y = math.floor(mech.y + forward * sin + left * cos)
            on_map = 0 <= x < world.size[0] and 0 <= y < world.size[1]
            values.append(_clip((column_top(world, x, y) - mech.z) / tallest) if on_map else 1.0)
    return values


def battle_map(world: World, team: int) -> NDArray[np.float64]:
    """Mean height and share of the zone per cell; the row is y and the column x of the turned map."""
    size = world.config.terrain.size
    samples = 8 * size // math.gcd(size, 8)  # along an edge: whole samples per voxel and per cell
    step = size / samples
    per_cell = samples // MAP_SIDE
    cells = np.zeros((MAP_SIDE, MAP_SIDE, 2))
    tops = [[column_top(world, x, y) for x in range(size)] for y in range(size)]
    for i in range(samples):
        for j in range(samples):
            x, y = (j + 0.5) * step, (i + 0.5) * step
            turned = _turn_map(world, team, x - size / 2, y - size / 2)
            column, row = (int((part + size / 2) / size * MAP_SIDE) for part in turned)
            cells[row, column, 0] += tops[int(y)][int(x)] / world.config.terrain.height
            cells[row, column, 1] += math.hypot(x - world.zone_x, y - world.zone_y) <= world.zone_radius
    return (cells / per_cell**2).reshape(-1)
