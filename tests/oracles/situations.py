"""Random situations for comparisons: terrain with overhangs, and mechs close to it and to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import (
    AIR,
    CONCRETE,
    DEBRIS,
    DIRT,
    FOLIAGE,
    GLASS,
    LAVA,
    MATERIALS,
    REINFORCED,
    WATER,
    WRECK,
    Material,
)
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import State
from echelon_env.layout.actions import ACTION_DIM, Action
from oracles.movement import highest_floor, is_free
from oracles.stirring import stir
from oracles.world import Mech, World, columns_of, load, set_columns

Random = np.random.Generator


def rough_voxels(rng: Random, size: int, height: int, density: float = 0.06) -> NDArray[np.uint8]:
    """Voxels (Z, Y, X) with low steps, walls, floating slabs, windows, trees, old wrecks, pools and rubble."""
    voxels = np.full((height, size, size), AIR, np.uint8)
    voxels[0] = np.where(rng.random((size, size)) < 0.5, DIRT, AIR)
    filling = np.array([CONCRETE, REINFORCED, GLASS, FOLIAGE, WRECK], np.uint8)
    for _ in range(int(density * size * size)):
        x, y = rng.integers(0, size, 2)
        width, depth = rng.integers(1, 5, 2)
        kind = rng.integers(5)
        bottom = 0 if kind != 3 else int(rng.integers(1, height - 1))  # every fifth floats
        top = bottom + (int(rng.integers(1, 3)) if kind != 2 else int(rng.integers(2, 7)))
        material = rng.choice(filling) if kind != 4 else rng.choice([WATER, LAVA, DEBRIS])
        voxels[bottom:top, y : y + depth, x : x + width] = material
    return voxels


def set_voxels(state: State, battle: int, voxels: NDArray[np.uint8], materials: Sequence[Material] = MATERIALS) -> None:
    """Write undamaged voxels (Z, Y, X), their columns and blocks."""
    state.voxels[battle] = voxels
    state.voxel_damage[battle] = 0
    set_columns(state, battle, columns_of(voxels, materials))


def put_mech(state: State, battle: int, mech: Mech) -> None:
    """Write a mech's position and facing into the state."""
    row = state.mechs[battle, mech.index]
    row["x"], row["y"], row["z"] = mech.x, mech.y, mech.z
    row["yaw"], row["facing_x"], row["facing_y"] = mech.yaw, math.cos(mech.yaw), math.sin(mech.yaw)
    row["on_ground"] = mech.on_ground


def gather(state: State, battle: int, config: BattleConfig, rng: Random, arena: float) -> World:
    """Move all mechs to random free positions in a square of edge `arena` around the zone, many of them touching.

    Half of them stand on what is below, the others are in the air. Returns the world afterwards.
    """
    world = load(state, battle, config)
    for mech in world.mechs:
        mech.alive = False  # mechs without a position must not block others
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


def random_actions(rng: Random, count: int) -> NDArray[np.float32]:
    """Actions (count, ACTION_DIM) float32, with rare entries that are out of range or not finite."""
    actions = rng.uniform(-1, 1, (count, ACTION_DIM))
    actions = np.where(rng.random(actions.shape) < 0.1, rng.choice([-1.0, 0.0, 1.0, 3.0], actions.shape), actions)
    actions = np.where(rng.random(actions.shape) < 0.002, rng.choice([np.nan, np.inf, -np.inf], actions.shape), actions)
    actions[:, Action.VENT] -= 0.7
    return actions.astype(np.float32)


TRIGGERS = [Action.PRIMARY, Action.SECONDARY, Action.TERTIARY, Action.SPECIAL]


def brawling_actions(world: World, rng: Random) -> NDArray[np.float32]:
    """Actions (M, ACTION_DIM) float32 with noise: turn to the nearest enemy, close in and fire."""
    actions = random_actions(rng, len(world.mechs))
    for mech in world.living():
        enemies = world.enemies(mech)
        if not enemies or rng.random() < 0.2:
            continue
        enemy = min(enemies, key=lambda enemy: math.dist(mech.centre, enemy.centre))
        bearing = math.atan2(enemy.y - mech.y, enemy.x - mech.x) - mech.yaw
        actions[mech.index, Action.TURN] = np.clip(3 * math.sin(bearing), -1, 1)
        actions[mech.index, Action.THROTTLE] = math.cos(bearing)
        actions[mech.index, TRIGGERS] = rng.uniform(-0.2, 1, 4)
    return actions


def arranged_engine(config: BattleConfig, battles: int, seed: int, arena: float = 14.0) -> BattleEngine:
    """An engine after a reset. Battles with odd numbers are rearranged on rough terrain, in close contact."""
    engine = BattleEngine(config, battles)
    engine.reset(np.arange(seed, seed + battles))
    rng = np.random.default_rng(seed)
    terrain = config.terrain
    for battle in range(1, battles, 2):
        voxels = rough_voxels(rng, terrain.size, terrain.height)
        set_voxels(engine.state, battle, voxels, config.catalog.materials)
        gather(engine.state, battle, config, rng, arena)
        stir(engine.state, battle, config, rng)
    return engine
