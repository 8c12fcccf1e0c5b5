"""The observation of a mech, feature by feature, from each feature's documented meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.catalog import Material, MechClass
from echelon_env.engine.state import BY_DAMAGE, BY_DANGER, BY_DISTANCE, ECCM, ECM, IN_SIGHT, NO_MECH, SILENT
from echelon_env.layout.observations import (
    COMM_ROWS,
    CONTACT_ROWS,
    EGO_SIDE,
    OBSERVATION_DIM,
    SQUAD_ROWS,
    STREAMS,
    Comm,
    Contact,
    EgoCell,
    Feature,
    Intel,
    Objective,
    Self,
    Squad,
)
from oracles.combat import minus
from oracles.electronics import carries_electronics, radiation
from oracles.paint import has_painted
from oracles.world import Mech, World
from oracles.zone import is_inside_zone

Features = Mapping[Feature, float]
ONE_HOT = {"scout": 0, "light": 1, "medium": 2, "heavy": 3}


def observe(world: World, mech: Mech, seen: Mapping[tuple[int, int], int]) -> NDArray[np.float64]:
    """The observation row of a mech. `seen`: how each mech sees each enemy."""
    row = np.zeros(OBSERVATION_DIM)
    _write(row, "objective", 0, objective_features(world, mech))
    if not mech.alive:
        return row
    _write(row, "self", 0, self_features(world, mech))
    for number, index in enumerate(mech.contacts):
        if index != NO_MECH:
            enemy = world.mechs[index]
            _write(row, "contacts", number, contact_features(world, mech, enemy, seen[mech.index, index] == IN_SIGHT))
            row[STREAMS["contacts_mask"].start + number] = 1
    for number, mate in enumerate(squad_of(world, mech)[:SQUAD_ROWS]):
        _write(row, "squad", number, squad_features(world, mech, mate))
        row[STREAMS["squad_mask"].start + number] = 1
    for number, index in enumerate(mech.intel):
        if index != NO_MECH:
            _write(row, "intel", number, intel_features(world, mech, world.mechs[index]))
            row[STREAMS["intel_mask"].start + number] = 1
    for number, sender in enumerate(senders(world, mech)):
        if sender.alive and sender.transmits:
            _write(row, "comm", number, comm_features(mech, sender))
            row[STREAMS["comm_mask"].start + number] = 1
            world.cases["own message" if sender is mech else "message of a pack-mate"] += any(sender.message)
        world.cases["silent because it was shut down"] += sender.alive and not sender.transmits
        world.cases["silent because it is dead"] += not sender.alive and sender.transmits
    row[STREAMS["ego_map"].part] = ego_map(world, mech)
    return row


def _write(row: NDArray[np.float64], stream: str, number: int, features: Features) -> None:
    table = STREAMS[stream]
    assert set(features) == set(table.features), set(table.features) ^ set(features)
    for feature, value in features.items():
        row[table.start + number * table.row_width + feature] = value


def clip(value: float) -> float:
    return max(-1.0, min(1.0, value))


def one_hot(features: type[Feature], kind: MechClass) -> Features:
    members = (features["IS_SCOUT"], features["IS_LIGHT"], features["IS_MEDIUM"], features["IS_HEAVY"])
    return {member: float(number == ONE_HOT.get(kind.name)) for number, member in enumerate(members)}


def _in_frame(mech: Mech, x: float, y: float) -> tuple[float, float]:
    """Forward and left components of a world vector in a mech's frame."""
    cos, sin = math.cos(mech.yaw), math.sin(mech.yaw)
    return x * cos + y * sin, y * cos - x * sin


def _bearing(mech: Mech, dx: float, dy: float) -> tuple[float, float]:
    """Forward and left components of the planar unit vector along (dx, dy); zero for the zero vector."""
    length = math.hypot(dx, dy)
    return _in_frame(mech, dx / length, dy / length) if length > 0 else (0.0, 0.0)


def turn_map(world: World, team: int, x: float, y: float) -> tuple[float, float]:
    """A planar vector on the map rotated so that the team's spawn is in the corner at (0, 0)."""
    for _ in range(world.teams[team].quarter_turns % 4):
        x, y = -y, x
    return x, y


def fastest(world: World) -> float:
    return max(kind.top_speed for kind in world.config.catalog.mech_classes)


def diagonal(world: World) -> float:
    return math.hypot(world.config.terrain.size, world.config.terrain.size)


def cooldowns(world: World, mech: Mech) -> list[float]:
    """Remaining share of each mount's cooldown."""
    return [
        0.0 if weapon is None else ticks / world.config.ticks(weapon.cooldown)
        for weapon, ticks in zip(mech.weapons, mech.cooldown, strict=True)
    ]


def loaded(mech: Mech) -> list[float]:
    """1 for each mount that has a weapon with shots left."""
    pairs = zip(mech.weapons, mech.charges, strict=True)
    return [float(weapon is not None and (weapon.charges == 0 or charges > 0)) for weapon, charges in pairs]


def self_features(world: World, mech: Mech) -> Features:
    config = world.config
    half = config.terrain.size / 2
    position = turn_map(world, mech.team, (mech.x - half) / half, (mech.y - half) / half)
    heading = turn_map(world, mech.team, math.cos(mech.yaw), math.sin(mech.yaw))
    velocity = _in_frame(mech, mech.vx, mech.vy)
    up = mech.vz
    if mech.shutdown:
        world.cases["in motion while shut down"] += mech.vx != 0 or mech.vy != 0 or mech.vz != 0
        velocity, up = (0.0, 0.0), 0.0
    hurt = _in_frame(mech, mech.hurt_x, mech.hurt_y)
    waits = cooldowns(world, mech)
    has = loaded(mech)
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
        Self.VELOCITY_FORWARD: clip(velocity[0] / fastest(world)),
        Self.VELOCITY_LEFT: clip(velocity[1] / fastest(world)),
        Self.VELOCITY_UP: clip(up / fastest(world)),
        Self.HEIGHT: mech.z / config.terrain.height,
        Self.POSITION_X: position[0],
        Self.POSITION_Y: position[1],
        Self.HEADING_COS: heading[0],
        Self.HEADING_SIN: heading[1],
        Self.HURT_FORWARD: clip(hurt[0] / mech.kind.armour),
        Self.HURT_LEFT: clip(hurt[1] / mech.kind.armour),
        **warfare_features(world, mech),
        **one_hot(Self, mech.kind),
    }


def warfare_features(world: World, mech: Mech) -> Features:
    """A mech's sensors, and what others do to it."""
    painted = any(has_painted(world, enemy.pack, mech) for enemy in world.mechs if enemy.team != mech.team)
    homing = [shot for shot in world.projectiles if shot.weapon.flight == "homing" and shot.target == mech.index]
    world.cases["observes a missile"] += bool(homing)
    world.cases["observes its own paint"] += painted
    return {
        Self.SENSOR_QUALITY: mech.quality / world.config.sensors.max_quality,
        Self.JAMMED: mech.jam,
        Self.CONTACT_SLOTS: min(mech.kind.contact_slots, CONTACT_ROWS) / CONTACT_ROWS,
        Self.SENSOR_RANGE: sensor_range(world, mech),
        Self.HAS_ELECTRONICS: float(carries_electronics(world, mech)),
        Self.ECM: float(radiation(mech) == ECM),
        Self.ECCM: float(radiation(mech) == ECCM),
        Self.PAINTED: float(painted),
        Self.MISSILE: float(bool(homing)),
        Self.BY_DISTANCE: float(mech.display == BY_DISTANCE),
        Self.BY_DANGER: float(mech.display == BY_DANGER),
        Self.BY_DAMAGE: float(mech.display == BY_DAMAGE),
        Self.HAS_TARGET: float(mech.target != NO_MECH),
    }


def sensor_range(world: World, mech: Mech) -> float:
    """A class's sensor range between the catalogue's shortest (0) and longest (1)."""
    factors = [kind.sensor_range_factor for kind in world.config.catalog.mech_classes]
    if min(factors) == max(factors):
        return 0.0
    return (mech.kind.sensor_range_factor - min(factors)) / (max(factors) - min(factors))


def zone_is_shown(world: World, mech: Mech) -> bool:
    seconds = world.step_count * world.config.decision_seconds
    return mech.kind.observes_zone and (
        not world.config.zone.shown_seconds or seconds < world.config.zone.shown_seconds
    )


def objective_features(world: World, mech: Mech) -> Features:
    config = world.config
    time_left = {Objective.TIME_LEFT: 1 - world.step_count / config.max_steps}
    if not zone_is_shown(world, mech):
        return dict.fromkeys(Objective, 0.0) | time_left
    dx, dy = world.zone_x - mech.x, world.zone_y - mech.y
    distance = math.hypot(dx, dy)
    direction = _bearing(mech, dx, dy)
    own, enemy = world.teams[mech.team], world.teams[1 - mech.team]
    largest = config.zone.max_radius * math.sqrt(max(5, len(config.blue), len(config.red)) / 5)
    return {
        Objective.IN_ZONE: float(is_inside_zone(world, mech)),
        Objective.DIRECTION_FORWARD: direction[0],
        Objective.DIRECTION_LEFT: direction[1],
        Objective.DISTANCE: max(0.0, distance - world.zone_radius) / diagonal(world),
        Objective.DISTANCE_NEAR: clip(distance / largest),
        Objective.RADIUS: world.zone_radius / largest,
        Objective.OWN_SHARE: own.share,
        Objective.ENEMY_SHARE: enemy.share,
        Objective.OWN_SCORE: clip(own.score / config.zone.score_to_win),
        Objective.ENEMY_SCORE: clip(enemy.score / config.zone.score_to_win),
        **time_left,
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
        Contact.DISTANCE: clip(distance / diagonal(world)),
        Contact.RANGE: clip(distance / longest),
        Contact.ELEVATION: clip(dz / world.config.terrain.height),
        Contact.LINE_OF_SIGHT: float(in_sight),
        Contact.VELOCITY_FORWARD: clip(velocity[0] / (2 * fastest(world))),
        Contact.VELOCITY_LEFT: clip(velocity[1] / (2 * fastest(world))),
        Contact.FACING_FORWARD: facing[0],
        Contact.FACING_LEFT: facing[1],
        Contact.ARMOUR: enemy.armour / enemy.kind.armour,
        Contact.HEAT: enemy.heat / enemy.kind.heat_capacity,
        Contact.SHUTDOWN: float(enemy.shutdown),
        Contact.FALLEN: float(enemy.fallen > 0),
        Contact.LEGGED: float(enemy.legs <= 0),
        Contact.PAINTED: float(has_painted(world, mech.pack, enemy)),
        Contact.RADIATING: float(radiation(enemy) != SILENT),
        Contact.IN_ZONE: float(zone_is_shown(world, mech) and is_inside_zone(world, enemy)),
        Contact.IS_TARGET: float(mech.target == enemy.index),
        **one_hot(Contact, enemy.kind),
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
        Squad.DISTANCE: clip(math.sqrt(dx * dx + dy * dy + dz * dz) / diagonal(world)),
        Squad.ELEVATION: clip(dz / world.config.terrain.height),
        Squad.ARMOUR: mate.armour / mate.kind.armour,
        Squad.HEAT: mate.heat / mate.kind.heat_capacity,
        Squad.SHUTDOWN: float(mate.shutdown),
        Squad.FALLEN: float(mate.fallen > 0),
        Squad.IN_ZONE: float(zone_is_shown(world, mech) and is_inside_zone(world, mate)),
        Squad.SAME_PACK: float(mate.pack == mech.pack),
        **one_hot(Squad, mate.kind),
    }


def intel_features(world: World, mech: Mech, enemy: Mech) -> Features:
    sighting = world.sightings[mech.pack, enemy.index]
    dx, dy, dz = minus(sighting.centre, mech.centre)
    direction = _bearing(mech, dx, dy)
    velocity = _in_frame(mech, *sighting.velocity)
    return {
        Intel.DIRECTION_FORWARD: direction[0],
        Intel.DIRECTION_LEFT: direction[1],
        Intel.DISTANCE: clip(math.sqrt(dx * dx + dy * dy + dz * dz) / diagonal(world)),
        Intel.ELEVATION: clip(dz / world.config.terrain.height),
        Intel.VELOCITY_FORWARD: clip(velocity[0] / fastest(world)),
        Intel.VELOCITY_LEFT: clip(velocity[1] / fastest(world)),
        Intel.ARMOUR: sighting.armour / enemy.kind.armour,
        Intel.AGE: sighting.age / world.config.ticks(world.config.sensors.intel_memory),
        Intel.PAINTED: float(has_painted(world, mech.pack, enemy)),
        **one_hot(Intel, enemy.kind),
    }


def senders(world: World, mech: Mech) -> list[Mech]:
    """The mechs whose messages a mech's rows hold: itself, then its pack-mates in roster order."""
    mates = [mate for mate in world.mechs if mate.pack == mech.pack and mate is not mech]
    return [mech, *mates][:COMM_ROWS]


def comm_features(mech: Mech, sender: Mech) -> Features:
    entries = [feature for feature in Comm if feature.name.startswith("MESSAGE_")]
    return {
        **dict(zip(entries, sender.message, strict=True)),
        Comm.IS_OWN: float(sender is mech),
        **one_hot(Comm, sender.kind),
    }


def column_top(world: World, x: int, y: int) -> int:
    """1 + height of a column's highest solid voxel; 0 if there is none."""
    solid = np.flatnonzero(world.blocks_movement[:, y, x])
    return int(solid[-1]) + 1 if len(solid) else 0


def obstacle_top(world: World, mech: Mech, x: int, y: int) -> int:
    """Top of the obstacle in a column: the solids that begin below the mech's head, and what stands on them."""
    solid = world.blocks_movement[:, y, x]
    head = mech.z + mech.kind.height
    below = [z for z in range(len(solid)) if solid[z] and z < head - 1e-6]
    if not below:
        return 0
    top = below[-1] + 1
    while top < len(solid) and solid[top]:
        top += 1
    world.cases["an obstacle under a roof"] += top < column_top(world, x, y)
    return top


def harm(world: World, material: Material) -> float:
    """How much a material heats or damages as a share of the worst; below 0 how much it cools."""
    materials = world.config.catalog.materials
    shares = [
        max(0.0, getattr(material, name)) / max(getattr(other, name) for other in materials)
        for name in ("heat", "damage")
        if max(getattr(other, name) for other in materials) > 0
    ]
    if max(shares, default=0.0) > 0:
        return max(shares)
    return -material.heat / min(other.heat for other in materials) if material.heat < 0 else 0.0


def hazard_of_column(world: World, mech: Mech, x: int, y: int, harms: NDArray[np.float64]) -> float:
    """The worst hazard in which a mech would stand in a column; the strongest cooling if nothing heats or damages."""
    column = harms[world.voxels[:, y, x]]
    if not column.any():
        return 0.0
    solid = np.flatnonzero(world.blocks_movement[:, y, x])
    ground = max([0, *(int(z) + 1 for z in solid if z + 1 <= mech.z + 1)])
    within = [
        value for z, value in enumerate(column.tolist()) if ground <= z < mech.z + mech.kind.height and value != 0
    ]
    world.cases["hazard under the ground"] += bool(column[:ground].any())
    world.cases["hazard overhead"] += bool(column[ground:].any()) and not within
    bad = [value for value in within if value > 0]
    world.cases["hot cell"] += bool(bad)
    world.cases["cool cell"] += bool(within) and not bad
    return max(bad) if bad else min(within, default=0.0)


def ego_map(world: World, mech: Mech) -> list[float]:
    """The terrain around the mech: rows from behind to ahead, within a row from right to left."""
    cell, tallest = world.config.sensors.terrain_cell, max(kind.height for kind in world.config.catalog.mech_classes)
    cos, sin = math.cos(mech.yaw), math.sin(mech.yaw)
    middle = (EGO_SIDE - 1) / 2
    harms = np.array([harm(world, material) for material in world.config.catalog.materials])
    values = np.zeros((EGO_SIDE, EGO_SIDE, len(EgoCell)))
    for i in range(EGO_SIDE):
        for j in range(EGO_SIDE):
            forward, left = (i - middle) * cell, (j - middle) * cell
            x = math.floor(mech.x + forward * cos - left * sin)
            y = math.floor(mech.y + forward * sin + left * cos)
            values[i, j, EgoCell.OBSTACLE] = 1.0
            if 0 <= x < world.size[0] and 0 <= y < world.size[1]:
                values[i, j, EgoCell.OBSTACLE] = clip((obstacle_top(world, mech, x, y) - mech.z) / tallest)
                values[i, j, EgoCell.HAZARD] = hazard_of_column(world, mech, x, y, harms)
    return values.reshape(-1).tolist()
