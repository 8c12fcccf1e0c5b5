"""The global state of a battle, feature by feature, from each feature's documented meaning."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import ECCM, ECM
from echelon_env.layout.observations import Clock, Unit
from oracles.electronics import radiation
from oracles.observation import Features, clip, cooldowns, fastest, loaded, one_hot, turn_map
from oracles.paint import has_painted
from oracles.world import Mech, World
from oracles.zone import is_inside_zone


def global_state(world: World, team: int) -> NDArray[np.float64]:
    """The global state for a team's critic."""
    mechs = [mech for mech in world.mechs if mech.team == team] + [mech for mech in world.mechs if mech.team != team]
    rows = [clock_features(world, team), *(unit_features(world, team, mech) for mech in mechs)]
    tables = [Clock, *[Unit] * len(mechs)]
    return np.array([row.get(feature, 0.0) for table, row in zip(tables, rows, strict=True) for feature in table])


def on_map(world: World, team: int, x: float, y: float) -> tuple[float, float]:
    """A position in half map sizes from the centre of the map rotated to the team's spawn."""
    half = world.config.terrain.size / 2
    return turn_map(world, team, (x - half) / half, (y - half) / half)


def clock_features(world: World, team: int) -> Features:
    config = world.config
    own, enemy = world.teams[team], world.teams[1 - team]
    zone_x, zone_y = on_map(world, team, world.zone_x, world.zone_y)
    largest = config.zone.max_radius * math.sqrt(max(5, len(config.blue), len(config.red)) / 5)
    return {
        Clock.TIME_LEFT: 1 - world.step_count / config.max_steps,
        Clock.ZONE_X: zone_x,
        Clock.ZONE_Y: zone_y,
        Clock.ZONE_RADIUS: world.zone_radius / largest,
        Clock.OWN_SHARE: own.share,
        Clock.ENEMY_SHARE: enemy.share,
        Clock.OWN_SCORE: clip(own.score / config.zone.score_to_win),
        Clock.ENEMY_SCORE: clip(enemy.score / config.zone.score_to_win),
    }


def unit_features(world: World, team: int, mech: Mech) -> Features:
    if not mech.alive:
        return {}
    config = world.config
    x, y = on_map(world, team, mech.x, mech.y)
    heading = turn_map(world, team, math.cos(mech.yaw), math.sin(mech.yaw))
    velocity = turn_map(world, team, mech.vx / fastest(world), mech.vy / fastest(world))
    waits, has = cooldowns(world, mech), loaded(mech)
    return {
        Unit.ALIVE: 1.0,
        Unit.POSITION_X: x,
        Unit.POSITION_Y: y,
        Unit.HEIGHT: mech.z / config.terrain.height,
        Unit.HEADING_COS: heading[0],
        Unit.HEADING_SIN: heading[1],
        Unit.VELOCITY_X: clip(velocity[0]),
        Unit.VELOCITY_Y: clip(velocity[1]),
        Unit.VELOCITY_UP: clip(mech.vz / fastest(world)),
        Unit.ARMOUR: mech.armour / mech.kind.armour,
        Unit.LEGS: mech.legs / mech.kind.legs,
        Unit.STABILITY: mech.stability / config.physics.max_stability,
        Unit.HEAT: mech.heat / mech.kind.heat_capacity,
        Unit.SHUTDOWN: float(mech.shutdown),
        Unit.FALLEN: mech.fallen / config.ticks(config.physics.fall_duration),
        Unit.SUPPRESSED: float(mech.suppressed > 0),
        Unit.ON_GROUND: float(mech.on_ground),
        Unit.HAS_PRIMARY: has[0],
        Unit.HAS_SECONDARY: has[1],
        Unit.HAS_TERTIARY: has[2],
        Unit.HAS_SPECIAL: has[3],
        Unit.ANTI_MISSILE: mech.anti_missile_cooldown / config.ticks(config.combat.anti_missile_cooldown),
        Unit.MISSILE: float(any(s.weapon.flight == "homing" and s.target == mech.index for s in world.projectiles)),
        Unit.COOLDOWN_PRIMARY: waits[0],
        Unit.COOLDOWN_SECONDARY: waits[1],
        Unit.COOLDOWN_TERTIARY: waits[2],
        Unit.COOLDOWN_SPECIAL: waits[3],
        Unit.ECM: float(radiation(mech) == ECM),
        Unit.ECCM: float(radiation(mech) == ECCM),
        Unit.SENSOR_QUALITY: mech.quality / config.sensors.max_quality,
        Unit.PAINTED: float(any(has_painted(world, enemy.pack, mech) for enemy in world.mechs)),
        Unit.IN_ZONE: float(is_inside_zone(world, mech)),
        **one_hot(Unit, mech.kind),
    }
