"""From a seed to a map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.catalog import AIR, CONCRETE, DIRT
from echelon_env.config import BattleConfig, TerrainConfig
from echelon_env.terrain.biomes import BIOMES, Plot
from echelon_env.terrain.connectivity import clearance, connected, obstacles
from echelon_env.terrain.lanes import disc, lanes
from echelon_env.terrain.placement import place_spawns, place_zone, spawn_areas

RING_COVER_DENSITY = 0.012  # blocks per m2 of the ring around the zone
RING_COVER_HEIGHT = 2  # m, too high to step on

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Terrain:
    """A generated map."""

    voxels: NDArray[np.uint8]  # (Z, Y, X) codes of `catalog.MATERIALS`, C-contiguous
    spawns: NDArray[np.float64]  # (2, K, 2) m, centres (x, y) of both areas' spawn places, K of the larger team
    zone_x: float  # m
    zone_y: float  # m
    zone_radius: float  # m
    seed: int


def generate(config: BattleConfig, seed: int) -> Terrain:
    """The map of a seed, 0 <= seed < 2**64. The same configuration and seed give the same bytes.

    Raises ValueError for a seed out of range.
    """
    if not 0 <= seed < 2**64:
        raise ValueError(f"expected a seed from 0 to 2**64 - 1, got {seed}")
    terrain, space = config.terrain, clearance(config)
    rng = np.random.Generator(np.random.PCG64(seed))
    spawns = place_spawns(config, rng)
    zone, zone_radius = place_zone(config, spawns, rng)

    paths = lanes(config, spawns, zone, space.walking_width, rng) | spawn_areas(config, spawns)
    zone_disc = disc(terrain.size, zone, zone_radius)
    ring = disc(terrain.size, zone, zone_radius + terrain.ring_width)
    open_ground = paths | ring | zone_disc

    max_height = max(1, terrain.height - math.ceil(space.height) - 1)  # leaves room to stand on every roof
    voxels = _paint(terrain, open_ground, max_height, rng)
    voxels[:, open_ground] = AIR
    voxels[0, open_ground] = DIRT
    _add_ring_cover(voxels, ring & ~paths & ~zone_disc, min(RING_COVER_HEIGHT, max_height), rng)
    if terrain.mirrored:
        _mirror(voxels)  # by now only the ring's cover differs

    if not connected(obstacles(voxels, space.height), np.concatenate(([zone], *spawns)), space.width):
        raise RuntimeError(f"terrain of seed {seed}: a mech cannot walk from its spawn place to the zone ({terrain})")
    return Terrain(voxels=voxels, spawns=spawns, zone_x=zone[0], zone_y=zone[1], zone_radius=zone_radius, seed=seed)


def _paint(
    terrain: TerrainConfig, open_ground: NDArray[np.bool_], max_height: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Voxels (Z, Y, X) of four quadrants about a jittered centre, each filled by the brush of a drawn biome.

    The brushes paint under a drawn symmetry of the square, so that no brush's habits favour a side. On a mirrored map
    two of the quadrants are the images of the other two.
    """
    size = terrain.size
    voxels = np.zeros((terrain.height, size, size), np.uint8)
    symmetry = int(rng.integers(8))
    canvas, kept_open = _under_symmetry(voxels, symmetry), _under_symmetry(open_ground, symmetry)
    jitter = terrain.centre_jitter * (2 * rng.random(2) - 1)
    if terrain.mirrored:
        jitter[0] = 0.0  # plots end where the map's image begins, so that nothing is cut in two
    middle_y, middle_x = (int(middle) for middle in size * (0.5 + jitter))
    for rows in (slice(0, middle_y), slice(middle_y, size)):
        for columns in (slice(0, middle_x), slice(middle_x, size)):
            biome = terrain.biomes[int(rng.integers(len(terrain.biomes)))]
            plot = Plot(voxels=canvas[:, rows, columns], open_ground=kept_open[rows, columns], max_height=max_height)
            BIOMES[biome].brush(plot, rng)
    if terrain.mirrored:
        _mirror(canvas)
    return voxels


def _under_symmetry(grid: NDArray[Scalar], symmetry: int) -> NDArray[Scalar]:
    """A view of the last two axes under one of the eight symmetries of the square."""
    if symmetry & 1:
        grid = grid.swapaxes(-1, -2)
    if symmetry & 2:
        grid = grid[..., ::-1]
    if symmetry & 4:
        grid = grid[..., ::-1, :]
    return grid


def _mirror(grid: NDArray[Scalar]) -> None:
    """Make the last two axes (Y, X) their own image under half a turn: the rows of low y decide."""
    rows, columns = (length // 2 for length in grid.shape[-2:])
    grid[..., grid.shape[-2] - rows :, :] = grid[..., :rows, :][..., ::-1, ::-1]
    if grid.shape[-2] % 2:
        grid[..., rows, grid.shape[-1] - columns :] = grid[..., rows, :columns][..., ::-1]


def _add_ring_cover(voxels: NDArray[np.uint8], ring: NDArray[np.bool_], height: int, rng: np.random.Generator) -> None:
    """A few blocks of 2 m x 2 m on the ring (Y, X): who attacks the zone has something to hide behind."""
    blocks = ndimage.maximum_filter(rng.random(ring.shape) < RING_COVER_DENSITY, 2)
    voxels[:height, ring & blocks] = CONCRETE
