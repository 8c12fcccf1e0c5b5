"""Random conditions of a fight: damage, heat, falls, paint, sightings, smoke, projectiles in flight, wrecks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS, WRECK
from echelon_env.engine.state import CLIMB, CRUISE, DIRECT, NO_MECH, State
from oracles.movement import overlap
from oracles.world import columns_of, load, set_columns

Random = np.random.Generator


def stir(state: State, battle: int, config: BattleConfig, rng: Random) -> None:
    """Give living mechs random damage and conditions, and the battle paint, sightings, smoke and damaged voxels."""
    for row in state.mechs[battle]:
        if row["alive"]:
            _stir_mech(row, config, rng)
    _paint(state, battle, config, rng)
    if config.abilities.intel:
        _remember(state, battle, config, rng)
    _raise_smoke(state, battle, rng)
    hit_points = np.array([material.hit_points for material in config.catalog.materials])[state.voxels[battle]]
    worn = hit_points - rng.integers(1, 30, hit_points.shape)
    damaged = (worn > 0) & (rng.random(worn.shape) < 0.5)
    state.voxel_damage[battle] = np.where(damaged, worn, 0)
    state.used["heights"][battle] = 2**32 - 1


def _stir_mech(row: Any, config: BattleConfig, rng: Random) -> None:
    kind, physics = config.catalog.mech_classes[int(row["mech_class"])], config.physics
    warm = min(1.2, physics.max_heat)
    row["heat"] = rng.choice([0.0, rng.uniform(0, warm), rng.uniform(0, warm), physics.max_heat]) * kind.heat_capacity
    row["shutdown"] = row["heat"] > 0.8 * kind.heat_capacity and rng.random() < 0.5
    row["armour"] = rng.choice([rng.uniform(0.005, 0.1), rng.uniform(0.05, 1)]) * kind.armour
    row["legs"] = rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 1)]) * kind.legs
    row["fallen"] = rng.choice([0, 0, 0, 0, int(rng.integers(1, config.ticks(physics.fall_duration) + 1))])
    row["stability"] = 0.0 if row["fallen"] else rng.uniform(0.01, 1) * physics.max_stability
    row["suppressed"] = rng.choice([0, 0, int(rng.integers(1, 60))])
    mounted = [config.catalog.weapon_index(getattr(kind, mount)) for mount in MOUNTS]
    cooldowns = [1 if index < 0 else config.ticks(config.catalog.weapons[index].cooldown) for index in mounted]
    row["cooldown"] = rng.integers(0, np.minimum(5, cooldowns))
    row["charges"] = rng.integers(0, 4, len(MOUNTS))
    row["anti_missile_cooldown"] = rng.choice([0, 0, int(rng.integers(1, 5))])
    row["quality"] = rng.uniform(config.sensors.min_quality, config.sensors.max_quality)
    row["vz"] = 0.0 if row["on_ground"] else rng.uniform(-8, 6)
    row["vx"], row["vy"] = rng.uniform(-0.7, 0.7, 2) * kind.top_speed


def _paint(state: State, battle: int, config: BattleConfig, rng: Random) -> None:
    mechs, marks = state.mechs[battle], state.paint[battle]
    marks["ticks"] = marks["painter"] = 0
    for pack in range(marks.shape[0]):
        members = np.flatnonzero(mechs["pack"] == pack)
        for mech in np.flatnonzero(mechs["team"] != mechs["team"][members[0]]):
            if rng.random() < 0.35:
                marks["ticks"][pack, mech] = rng.choice([1, 2, int(rng.integers(1, 100))])
                marks["painter"][pack, mech] = rng.choice(members)


def _remember(state: State, battle: int, config: BattleConfig, rng: Random) -> None:
    """Add sightings of some enemies to each pack's memory, with any age and at wrong positions."""
    mechs, sightings = state.mechs[battle], state.sightings[battle]
    size, height = config.terrain.size, config.terrain.height
    sightings[:] = np.zeros((), sightings.dtype)
    for pack in range(sightings.shape[0]):
        members = np.flatnonzero(mechs["pack"] == pack)
        for mech in np.flatnonzero(mechs["team"] != mechs["team"][members[0]]):
            if rng.random() < 0.6:
                row = sightings[pack, mech]
                row["x"], row["y"], row["z"] = np.clip(_near(mechs[mech], rng, 5.0), 0, [size, size, height])
                row["vx"], row["vy"] = rng.uniform(-2, 2, 2)
                row["armour"] = rng.uniform(0.1, 1) * config.catalog.mech_classes[mechs["mech_class"][mech]].armour
                row["age"], row["known"] = rng.integers(config.ticks(config.sensors.intel_memory)), 1


def _raise_smoke(state: State, battle: int, rng: Random) -> None:
    clouds, mechs = state.clouds[battle], state.mechs[battle]
    count = min(len(clouds), int(rng.integers(0, 4)))
    for cloud in clouds[:count]:
        near = rng.integers(len(mechs))
        cloud["x"], cloud["y"], cloud["z"] = _near(mechs[near], rng, 4.0)
        cloud["radius"] = rng.uniform(0.3, 3.0)
        cloud["ticks"] = rng.choice([1, 2, int(rng.integers(1, 100))])
        cloud["team"] = rng.integers(2)
    state.battles["num_clouds"][battle] = count


def _near(row: Any, rng: Random, spread: float) -> Any:
    return np.array([row["x"], row["y"], row["z"] + 1]) + rng.normal(0, spread, 3)


def shoot_around(state: State, battle: int, config: BattleConfig, rng: Random, count: int) -> None:
    """Add projectiles of every kind in flight near the mechs, aimed at some of them."""
    flying = [weapon for weapon in config.catalog.weapons if weapon.flight != "hitscan"]
    mechs, size, height = state.mechs[battle], config.terrain.size, config.terrain.height
    count = min(count, state.projectiles.shape[1] // 2)
    for row in state.projectiles[battle][:count]:
        weapon = rng.choice(np.array(flying, dtype=object))
        owner, near = rng.integers(0, config.num_mechs, 2)
        enemies = np.flatnonzero(mechs["team"] != mechs["team"][owner])
        place = _near(mechs[near], rng, 1.5)
        direction = rng.normal(0, 1, 3) * [1, 1, 0.2]
        row["target"], row["aim"], row["phase"] = NO_MECH, 0.0, DIRECT
        if weapon.flight == "homing":
            row["target"], row["aim"] = rng.choice(enemies), rng.uniform(0.1, 0.9)
            if rng.random() < 0.5:  # it is about to arrive
                place[:2] = _near(mechs[row["target"]], rng, 0.5)[:2]
            row["phase"] = rng.choice([DIRECT, CLIMB, CRUISE])
            place[2] = height - 0.5 if row["phase"] == CRUISE else min(place[2], height - 0.7)
        place = np.clip(place, 0.01, [size - 0.01, size - 0.01, height - 0.01])
        row["x"], row["y"], row["z"] = place
        row["vx"], row["vy"], row["vz"] = direction / np.linalg.norm(direction) * weapon.speed
        row["reach"] = rng.uniform(0.01, max(weapon.range, weapon.speed * weapon.lifetime))
        row["owner"], row["weapon"] = owner, config.catalog.weapons.index(weapon)
    state.battles["num_projectiles"][battle] = count


def kill_some(state: State, battle: int, config: BattleConfig, rng: Random, count: int) -> None:
    """Kill some mechs; hard wrecks of some of them are about to soften."""
    mechs = state.mechs[battle]
    for mech in rng.choice(len(mechs), count, replace=False):
        row = mechs[mech]
        row["alive"] = row["armour"] = row["potential"] = 0
        state.teams["mechs_alive"][battle, row["team"]] -= 1
        x, y, z = math.floor(row["x"]), math.floor(row["y"]), math.ceil(row["z"])
        if z + 1 > config.terrain.height or state.voxels[battle, z, y, x] == WRECK:
            continue
        world = load(state, battle, config)
        if any(overlap(other.box, ((x, y, z), (x + 1, y + 1, z + 1))) for other in world.living()):
            continue
        row["wreck_low"], row["wreck_high"] = z, z + 1
        row["wreck_ticks"] = rng.choice([1, 2, int(rng.integers(1, 50))])
        state.voxels[battle, z, y, x] = WRECK
        state.voxel_damage[battle, z, y, x] = 0
        set_columns(state, battle, columns_of(state.voxels[battle], config.catalog.materials))
