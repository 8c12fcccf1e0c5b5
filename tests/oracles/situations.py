"""Random situations for comparisons: terrain with overhangs, and mechs that stand close to it and to each other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.actions import ACTION_DIM, Action
from echelon_env.catalog import (
    AIR,
    AUTOCANNON,
    CONCRETE,
    DIRT,
    FOLIAGE,
    GLASS,
    HEAVY,
    LASER,
    LIGHT,
    MEDIUM,
    MOUNTS,
    REINFORCED,
    SCOUT,
    Catalog,
)
from echelon_env.config import BattleConfig, make_config
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import COLUMN, State
from oracles.movement import highest_floor, is_free
from oracles.world import Mech, World, load, material_mask

Random = np.random.Generator

ODD_CATALOG = Catalog(
    weapons=(
        replace(LASER, damage=13.7, target_heat=31.0, arc=200.0, cooldown=0.17, range=9.3),
        replace(AUTOCANNON, damage=7.3, target_heat=5.5, arc=60.0, cooldown=0.05, speed=5.3, range=4.9),
        replace(AUTOCANNON, name="railgun", damage=31.9, heat=17.3, arc=360.0, cooldown=0.7, speed=777.0, range=31.0),
        replace(LASER, name="heater", damage=0.0, target_heat=9.0, arc=360.0, cooldown=0.1, range=11.0, heat=1.0),
    ),
    mech_classes=(
        replace(SCOUT, length=1.9, width=0.9, height=1.45, top_speed=17.0, tertiary="heater", contact_slots=1),
        replace(LIGHT, length=1.1, width=2.3, jet_acceleration=29.0, primary="railgun", turn_rate=7.0),
        replace(MEDIUM, length=2.5, width=1.3, height=2.2, jet_acceleration=13.0, turn_rate=3.0),
        replace(HEAVY, length=2.2, width=3.6, height=3.3, secondary="railgun", tertiary="autocannon", turn_rate=2.0),
        replace(MEDIUM, name="digger", length=0.7, width=0.7, height=0.9, armour=9.5, primary=None, secondary="heater"),
    ),
)
"""Classes with unequal edges and crooked numbers; weapons that are slow, fast, harmless or fire every tick."""


def small_config(**overrides: Any) -> BattleConfig:
    """Five against five with the game's numbers, on a small low map."""
    return make_config("skirmish", **{"terrain": {"size": 64, "height": 12}, **overrides})


def odd_config(**overrides: Any) -> BattleConfig:
    """Uneven teams of the odd catalogue, with other physics and every switch turned over."""
    odd = {
        "blue": ("heavy", "medium", "digger", "light", "scout", "light", "digger"),
        "red": ("scout", "heavy", "light", "medium", "digger"),
        "catalog": ODD_CATALOG,
        "decision_repeat": 3,
        "dt": 0.04,
        "max_steps": 60,
        "time_limit": "terminate",
        "observability": "full",
        "dead_agents": "persist",
        "terrain": {"size": 64, "height": 9},
        "zone": {"contested_share": 0.1, "max_feet_height": 1.0, "score_to_win": 5.0},
        "physics": {
            "gravity": 17.0,
            "vertical_damping": 0.05,
            "restart_heat": 0.9,
            "max_heat": 1.3,
            "vent_factor": 3.0,
            "max_heat_from_enemies": 0.85,
            "rear_arc": 200.0,
            "rear_damage": 1.9,
        },
        "sensors": {"radar_range": 9.0, "bloom_heat": 0.5, "terrain_cell": 2.3},
        "rewards": {"death": -3.0, "overheat": -0.7, "gamma": 0.9},
    }
    return make_config("skirmish", **{**odd, **overrides})


def rough_voxels(rng: Random, size: int, height: int, density: float = 0.06) -> NDArray[np.uint8]:
    """Voxels (Z, Y, X) with low steps, walls, floating slabs, windows and trees."""
    voxels = np.full((height, size, size), AIR, np.uint8)
    voxels[0] = np.where(rng.random((size, size)) < 0.5, DIRT, AIR)
    materials = np.array([CONCRETE, REINFORCED, GLASS, FOLIAGE], np.uint8)
    for _ in range(int(density * size * size)):
        x, y = rng.integers(0, size, 2)
        width, depth = rng.integers(1, 5, 2)
        kind = rng.integers(4)
        bottom = 0 if kind < 3 else int(rng.integers(1, height - 1))  # every fourth floats
        top = bottom + (int(rng.integers(1, 3)) if kind != 2 else int(rng.integers(2, 7)))
        voxels[bottom:top, y : y + depth, x : x + width] = rng.choice(materials)
    return voxels


def columns_of(voxels: NDArray[np.uint8]) -> NDArray[Any]:
    """The columns (Y, X) COLUMN that go with voxels (Z, Y, X)."""
    columns = np.zeros(voxels.shape[1:], COLUMN)
    bits = 2 ** np.arange(voxels.shape[0], dtype=np.int64)[:, None, None]
    solid = material_mask(voxels, "blocks_movement")
    columns["solid"] = (solid * bits).sum(axis=0)
    columns["opaque"] = (material_mask(voxels, "blocks_sight") * bits).sum(axis=0)
    columns["top"] = (solid * np.arange(1, voxels.shape[0] + 1)[:, None, None]).max(axis=0)
    return columns


def set_voxels(state: State, battle: int, voxels: NDArray[np.uint8]) -> None:
    """Write voxels (Z, Y, X) and the columns that go with them."""
    state.voxels[battle] = voxels
    state.columns[battle] = columns_of(voxels)


def put_mech(state: State, battle: int, mech: Mech) -> None:
    """Write a mech's place and facing into the state."""
    row = state.mechs[battle, mech.index]
    row["x"], row["y"], row["z"] = mech.x, mech.y, mech.z
    row["yaw"], row["facing_x"], row["facing_y"] = mech.yaw, math.cos(mech.yaw), math.sin(mech.yaw)
    row["on_ground"] = mech.on_ground


def gather(state: State, battle: int, config: BattleConfig, rng: Random, arena: float) -> World:
    """Move all mechs to free random places of a square of edge `arena` around the zone, many of them touching.

    Half of them stand on what is below, the others hang in the air. Returns the world afterwards.
    """
    world = load(state, battle, config)
    for mech in world.mechs:
        mech.alive = False  # those that have no place yet are in nobody's way
    for mech in rng.permutation(np.array(world.mechs, dtype=object)):
        _find_place(world, mech, rng, arena)
        mech.alive = True
        put_mech(state, battle, mech)
    return load(state, battle, config)


def _find_place(world: World, mech: Mech, rng: Random, arena: float) -> None:
    size, depth, height = world.size
    half_x, half_y = mech.kind.length / 2, mech.kind.width / 2
    others = world.living()
    for attempt in range(400):
        reach = arena / 2 * (1 + attempt / 40)
        mech.x = float(np.clip(world.zone_x + rng.uniform(-reach, reach), half_x, size - half_x))
        mech.y = float(np.clip(world.zone_y + rng.uniform(-reach, reach), half_y, depth - half_y))
        mech.z = float(rng.choice([0.0, 0.0, 1.0, 2.0, rng.uniform(0, 8)]))
        if others and rng.random() < 0.3:  # flush with another mech
            other = others[rng.integers(len(others))]
            mech.x = other.box[1][0] + half_x
            mech.y = float(other.y + rng.uniform(-1, 1))
        mech.x, mech.y = min(mech.x, size - half_x), min(max(mech.y, half_y), depth - half_y)
        if mech.z + mech.kind.height <= height and is_free(world, mech, mech.box):
            break
    else:
        raise RuntimeError("no free place for a mech")
    mech.yaw = float(rng.uniform(-math.pi, math.pi))
    mech.on_ground = bool(rng.random() < 0.5)
    if mech.on_ground:
        mech.z = highest_floor(world, mech)


def stir(state: State, battle: int, config: BattleConfig, rng: Random) -> None:
    """Give mechs random heat, wear and cooldowns; some are shut down."""
    for row in state.mechs[battle]:
        kind = config.catalog.mech_classes[int(row["mech_class"])]
        row["heat"] = rng.choice([0.0, rng.uniform(0, 1.2)]) * kind.heat_capacity
        row["shutdown"] = row["heat"] > 0.8 * kind.heat_capacity and rng.random() < 0.5
        row["armour"] = rng.uniform(0.05, 1) * kind.armour
        row["cooldown"] = rng.integers(0, 5, len(MOUNTS))
        row["vz"] = 0.0 if row["on_ground"] else rng.uniform(-8, 6)


def random_actions(rng: Random, count: int) -> NDArray[np.float32]:
    """Actions (count, ACTION_DIM) float32; now and then an entry out of range or not finite."""
    actions = rng.uniform(-1, 1, (count, ACTION_DIM))
    actions = np.where(rng.random(actions.shape) < 0.1, rng.choice([-1.0, 0.0, 1.0, 3.0], actions.shape), actions)
    actions = np.where(rng.random(actions.shape) < 0.002, rng.choice([np.nan, np.inf, -np.inf], actions.shape), actions)
    actions[:, Action.VENT] -= 0.7
    return actions.astype(np.float32)


def brawling_actions(world: World, rng: Random) -> NDArray[np.float32]:
    """Actions (M, ACTION_DIM) float32 that turn towards the nearest enemy, close in and fire, with noise."""
    actions = random_actions(rng, len(world.mechs))
    for mech in world.living():
        enemies = world.enemies(mech)
        if not enemies or rng.random() < 0.2:
            continue
        enemy = min(enemies, key=lambda enemy: math.dist(mech.centre, enemy.centre))
        bearing = math.atan2(enemy.y - mech.y, enemy.x - mech.x) - mech.yaw
        actions[mech.index, Action.TURN] = np.clip(3 * math.sin(bearing), -1, 1)
        actions[mech.index, Action.THROTTLE] = math.cos(bearing)
        actions[mech.index, [Action.PRIMARY, Action.SECONDARY, Action.TERTIARY]] = rng.uniform(-0.2, 1, 3)
    return actions


def arranged_engine(config: BattleConfig, battles: int, seed: int, arena: float = 14.0) -> BattleEngine:
    """An engine whose battles were reset; those of odd numbers are rearranged on rough terrain, in close contact."""
    engine = BattleEngine(config, battles)
    engine.reset(np.arange(seed, seed + battles))
    rng = np.random.default_rng(seed)
    terrain = config.terrain
    for battle in range(1, battles, 2):
        set_voxels(engine.state, battle, rough_voxels(rng, terrain.size, terrain.height))
        gather(engine.state, battle, config, rng, arena)
        stir(engine.state, battle, config, rng)
    return engine
