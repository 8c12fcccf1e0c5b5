"""Changes of the terrain. Every write to a voxel also updates its column, its block and the number of hazards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.config.catalog import AIR, DEBRIS
from echelon_env.engine import rng
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import flat_index
from echelon_env.engine.state import BLOCK_BITS, BLOCK_SIDE, State
from echelon_env.engine.tables import Tables


@kernel
def _pack_block(opaque: Any, solid: Any, hazard: Any, blocks: Any, by: int, bx: int) -> None:
    blocking, harmful = 0, 0
    for iy in range(by * BLOCK_SIDE, min(solid.shape[0], (by + 1) * BLOCK_SIDE)):
        for ix in range(bx * BLOCK_SIDE, min(solid.shape[1], (bx + 1) * BLOCK_SIDE)):
            blocking |= integer(opaque[iy, ix]) | integer(solid[iy, ix])
            harmful |= integer(hazard[iy, ix])
    blocks[by, bx].obstacle, blocks[by, bx].hazard = blocking, harmful


@kernel
def pack_blocks(opaque: Any, solid: Any, hazard: Any, blocks: Any) -> None:
    """Collect the bits of columns (Y, X) in blocks, see `State.blocks`."""
    for by in range(blocks.shape[0]):
        for bx in range(blocks.shape[1]):
            _pack_block(opaque, solid, hazard, blocks, by, bx)


@kernel
def pack_columns(materials: Any, voxels: Any, top: int, opaque: Any, solid: Any, hazard: Any) -> int:
    """Pack voxels (Z, Y, X) below `top` into columns (Y, X). Returns the number of hazards."""
    count = 0
    opaque[:, :] = 0
    solid[:, :] = 0
    hazard[:, :] = 0
    for iz in range(top):
        bit = np.uint32(1 << iz)
        for iy in range(voxels.shape[1]):
            for ix in range(voxels.shape[2]):
                code = voxels[iz, iy, ix]
                if code == AIR:  # the most frequent material: skip the lookup
                    continue
                material = materials[code]
                if material.blocks_sight:
                    opaque[iy, ix] |= bit
                if material.hazard:
                    hazard[iy, ix] |= bit
                    count += 1
                if material.blocks_movement:
                    solid[iy, ix] |= bit
    return count


@kernel
def _with_bit(bits: Any, iz: int, on: bool) -> int:
    mask = 1 << iz
    return int(np.int64(bits) | mask) if on else int(np.int64(bits) & ~mask)


@kernel
def set_voxel(tables: Tables, state: State, b: int, ix: int, iy: int, iz: int, code: int) -> None:
    """Replace a voxel by an undamaged one of a material."""
    voxels, opaque, solid, hazard = state.voxels[b], state.opaque[b], state.solid[b], state.hazard[b]
    before, material = tables.materials[voxels[iz, iy, ix]], tables.materials[code]
    state.battles[b].num_hazards += material.hazard - before.hazard
    state.battles[b].terrain_changes += 1
    voxels[iz, iy, ix] = code
    state.voxel_damage[b, iz, iy, ix] = 0
    opaque[iy, ix] = _with_bit(opaque[iy, ix], iz, material.blocks_sight)
    solid[iy, ix] = _with_bit(solid[iy, ix], iz, material.blocks_movement)
    hazard[iy, ix] = _with_bit(hazard[iy, ix], iz, material.hazard)
    _pack_block(opaque, solid, hazard, state.blocks[b], iy >> BLOCK_BITS, ix >> BLOCK_BITS)


@kernel
def _damage_voxel(tables: Tables, state: State, b: int, ix: int, iy: int, iz: int, hit_points: float) -> None:
    """Take hit points, rounded to integers, from a voxel that can be destroyed."""
    whole = tables.materials[state.voxels[b, iz, iy, ix]].hit_points
    if whole > 0:
        lost = int(state.voxel_damage[b, iz, iy, ix]) + math.floor(hit_points + 0.5)
        state.voxel_damage[b, iz, iy, ix] = min(lost, whole)
        state.used[b].heights |= np.uint32(1 << iz)


@kernel
def _destroy_voxel(tables: Tables, state: State, b: int, ix: int, iy: int, iz: int) -> int:
    """Replace a voxel that has lost all its hit points; return 1 if it did, else 0."""
    material = tables.materials[state.voxels[b, iz, iy, ix]]
    if material.hit_points == 0 or state.voxel_damage[b, iz, iy, ix] < material.hit_points:
        return 0
    battle = state.battles[b]
    code = AIR
    if material.rubble > 0.0:
        index = flat_index(state.voxels.shape[2], ix, iy, iz)
        if rng.random_unit_of_voxel(battle.seed, integer(battle.tick), index, rng.RUBBLE) < material.rubble:
            code = DEBRIS
    set_voxel(tables, state, b, ix, iy, iz, code)
    return 1


@kernel
def _reach(centre: float, radius: float, limit: int) -> tuple[int, int]:
    """Cells of an axis, on the map, whose middles may lie within the radius: the first, and the one after the last."""
    return max(0, math.ceil(centre - radius - 0.5)), min(limit, math.floor(centre + radius - 0.5) + 1)


@kernel
def _apply_burst(tables: Tables, state: State, b: int, burst: Row, breaking: bool) -> int:
    """Damage the voxels that a burst reaches, or destroy the worn ones (`breaking`); return how many broke."""
    weapon = tables.weapons[burst.weapon]
    height, size = state.voxels.shape[1], state.voxels.shape[2]
    broken = 0
    struck = integer(burst.voxel)
    if struck >= 0:
        sx, sy, sz = struck % size, struck // size % size, struck // (size * size)
        if breaking:
            broken += _destroy_voxel(tables, state, b, sx, sy, sz)
        else:
            _damage_voxel(tables, state, b, sx, sy, sz, weapon.damage)
    radius = weapon.splash_radius
    if radius <= 0.0:
        return broken
    first_x, stop_x = _reach(burst.x, radius, size)
    first_y, stop_y = _reach(burst.y, radius, size)
    first_z, stop_z = _reach(burst.z, radius, height)
    for iz in range(first_z, stop_z):
        for iy in range(first_y, stop_y):
            for ix in range(first_x, stop_x):
                distance = (ix + 0.5 - burst.x) ** 2 + (iy + 0.5 - burst.y) ** 2 + (iz + 0.5 - burst.z) ** 2
                if distance > radius * radius or flat_index(size, ix, iy, iz) == struck:
                    continue
                if breaking:
                    broken += _destroy_voxel(tables, state, b, ix, iy, iz)
                else:
                    _damage_voxel(tables, state, b, ix, iy, iz, weapon.damage * weapon.splash_share)
    return broken


@kernel
def settle_bursts(tables: Tables, state: State, b: int) -> None:
    """Apply this tick's bursts to the terrain: first all damage, then all destruction, so their order is irrelevant."""
    battle, bursts = state.battles[b], state.bursts[b]
    for i in range(battle.num_bursts):
        _apply_burst(tables, state, b, bursts[i], False)
    for i in range(battle.num_bursts):
        broken = _apply_burst(tables, state, b, bursts[i], True)
        if bursts[i].event >= 0:
            state.events[b, bursts[i].event].amount = broken
    battle.num_bursts = 0
