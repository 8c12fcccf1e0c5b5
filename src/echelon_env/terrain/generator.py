"""Maps, and their generation from seeds."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.catalog import AIR, CONCRETE, DIRT, FOLIAGE, MATERIALS, REINFORCED
from echelon_env.config.map import MapConfig
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.schema import ConfigError, check_seed
from echelon_env.terrain.biomes import BIOMES, Plot
from echelon_env.terrain.connectivity import connected, obstacles, open_pockets
from echelon_env.terrain.lanes import Point, disc, lanes
from echelon_env.terrain.placement import place_spawns, place_zone, spawn_areas
from echelon_env.terrain.recipe import GENERATOR_VERSION, Recipe, RecipeError

COVER_DENSITY = 0.85  # share of the grid's cells in the zone and on its ring with a block
COVER_EDGES = (2, 3)  # m, drawn for each edge of a block
COVER_HEIGHTS = (1, 2, 2, 3)  # m; a mech on foot steps up 1 m
MIN_ZONE_RADIUS_WITH_COVER = 5.0  # m, radius; a smaller zone has room for mechs only
MIN_SKY = 1  # m above the tallest mech on the highest roof

Scalar = TypeVar("Scalar", bound=np.generic)


class Lane(IntFlag):
    """Why a column was kept open."""

    DIRECT = 1  # the short path from a spawn area to the zone, bare
    FLANK = 2  # the long path around, with foliage
    RING = 4  # the zone and what is around it, with some cover


@dataclass(frozen=True, eq=False, kw_only=True)
class Terrain:
    """A generated map. `generate` returns it."""

    config: MapConfig
    seed: int
    voxels: NDArray[np.uint8]  # (Z, Y, X) codes of `catalog.MATERIALS`, C-contiguous
    spawns: NDArray[np.float64]  # (2, K, 2) m, centres (x, y) of both areas' spawn places
    zone_x: float  # m
    zone_y: float  # m
    zone_radius: float  # m
    lanes: NDArray[np.uint8]  # (Y, X) `Lane` flags
    biomes: tuple[str, ...]  # of the quadrants: south-west, south-east, north-west, north-east

    def __repr__(self) -> str:
        return f"Terrain(seed {self.seed}, {self.config.terrain.size} m, {', '.join(self.biomes)})"

    @cached_property
    def top(self) -> int:
        """Height in metres of the highest voxel's upper face above the ground."""
        return 1 + int(np.flatnonzero(self.voxels.any(axis=(1, 2)))[-1])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything that a battle uses of the map: voxels, spawn places and zone."""
        digest = hashlib.sha256(np.array(self.voxels.shape, "<i8").tobytes())
        digest.update(np.ascontiguousarray(self.voxels).data)
        digest.update(self.spawns.astype("<f8").tobytes())
        digest.update(np.array([self.zone_x, self.zone_y, self.zone_radius], "<f8").tobytes())
        return digest.hexdigest()

    @property
    def recipe(self) -> Recipe:
        """The recipe that generates the map again."""
        return Recipe(config=self.config, seed=self.seed, generator=GENERATOR_VERSION, content_hash=self.content_hash)

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> Terrain:
        """The map of a recipe, bit for bit.

        Raises `RecipeError` if another version of the generator wrote the recipe, or if the map has another content
        hash.
        """
        recipe.check_version()
        terrain = generate(recipe.config, recipe.seed)
        terrain.check_content(recipe.content_hash)
        return terrain

    def check_content(self, expected: str) -> None:
        """Raise `RecipeError` unless the map has the expected content hash."""
        if self.content_hash != expected:
            raise RecipeError(
                f"recipe of seed {self.seed}: the map that it makes here has the content hash {self.content_hash}, "
                f"expected {expected}"
            )


def generate(config: ScenarioLike | MapConfig, seed: int) -> Terrain:
    """The map of a seed, 0 <= seed < 2**64. The same configuration and seed give the same bytes.

    Its arrays are read-only. Raises ValueError for a seed that is not an integer in range, and `ConfigError` for an
    invalid configuration.
    """
    seed = check_seed(seed)
    if not isinstance(config, MapConfig):
        config = make_config(config).map_config
    terrain = config.terrain
    rng = np.random.Generator(np.random.PCG64(seed))
    spawns = place_spawns(config, rng)
    zone, zone_radius = place_zone(config, spawns, rng)
    direct, flank = lanes(config, spawns, zone, rng)
    ring = disc(terrain.size, zone, zone_radius + terrain.ring_width)
    places = spawn_areas(config, spawns) | disc(terrain.size, zone, zone_radius)
    bare = direct | ring | places

    max_height = max(1, terrain.height - math.ceil(config.mech_height) - MIN_SKY)
    voxels, biomes = _paint(config, bare | flank, max_height, rng)
    thickets = (voxels == FOLIAGE) & (flank & ~bare & (voxels[0] == FOLIAGE))
    _clear(voxels, bare | flank)
    voxels[thickets] = FOLIAGE  # the long path has hiding places
    _add_cover(config, voxels, zone, zone_radius, direct | flank | places, max_height, rng)
    if terrain.mirrored:
        _mirror(voxels)  # at this point only the cover is asymmetric
    points = np.concatenate(([zone], *spawns))
    if not connected(obstacles(voxels, config.mech_height), points, config.mech_width):
        raise RuntimeError(f"terrain of seed {seed}: a mech cannot walk from its spawn place to the zone ({terrain})")
    pockets = open_pockets(voxels, zone, config.walker_widths, config.mech_height)
    _clear(voxels, pockets | pockets[::-1, ::-1] if terrain.mirrored else pockets)
    lane_flags = (Lane.DIRECT * direct + Lane.FLANK * flank + Lane.RING * ring).astype(np.uint8)
    for array in (voxels, spawns, lane_flags):
        array.setflags(write=False)
    return Terrain(
        config=config,
        seed=seed,
        voxels=voxels,
        spawns=spawns,
        zone_x=zone[0],
        zone_y=zone[1],
        zone_radius=zone_radius,
        lanes=lane_flags,
        biomes=biomes,
    )


def _clear(voxels: NDArray[np.uint8], columns: NDArray[np.bool_]) -> None:
    """Leave only dirt in columns (Y, X)."""
    voxels[:, columns] = AIR
    voxels[0, columns] = DIRT


def _paint(
    config: MapConfig, open_ground: NDArray[np.bool_], max_height: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Voxels (Z, Y, X) of four quadrants about a jittered centre, each painted by the brush of a random biome.

    The brushes paint under a random symmetry of the square, so that regularities of a brush favour no side. On a
    mirrored map two of the quadrants are the images of the other two. Also returns the biomes' names.
    """
    terrain = config.terrain
    size = terrain.size
    voxels = np.zeros((terrain.height, size, size), np.uint8)
    symmetry = int(rng.integers(8))
    canvas, kept_open = _under_symmetry(voxels, symmetry), _under_symmetry(open_ground, symmetry)
    jitter = terrain.centre_jitter * (2 * rng.random(2) - 1)
    if terrain.mirrored:
        jitter[0] = 0.0  # plots end at the axis of symmetry, so that no feature is cut in two
    middle_y, middle_x = (int(middle) for middle in size * (0.5 + jitter))
    drawn = []
    for rows in (slice(0, middle_y), slice(middle_y, size)):
        for columns in (slice(0, middle_x), slice(middle_x, size)):
            drawn.append(terrain.biomes[int(rng.integers(len(terrain.biomes)))])
            plot = Plot(voxels=canvas[:, rows, columns], open_ground=kept_open[rows, columns], max_height=max_height)
            BIOMES[drawn[-1]].brush(plot, rng)
            _check_plot(plot, drawn[-1])
    if terrain.mirrored:
        _mirror(canvas)
        drawn[2:] = drawn[1::-1]
    return voxels, tuple(_under_symmetry_of_quadrants(drawn, symmetry))


def _check_plot(plot: Plot, biome: str) -> None:
    """Raise ConfigError if a brush has painted too high, or with unknown materials."""
    if plot.voxels[plot.max_height :].any():
        raise ConfigError(f"biome {biome!r}: its brush painted above plot.max_height, {plot.max_height} m")
    if plot.voxels.size and plot.voxels.max() >= len(MATERIALS):
        raise ConfigError(
            f"biome {biome!r}: expected materials below {len(MATERIALS)}, its brush painted {plot.voxels.max()}"
        )


def _under_symmetry(grid: NDArray[Scalar], symmetry: int) -> NDArray[Scalar]:
    """A view of the last two axes under one of the eight symmetries of the square."""
    if symmetry & 1:
        grid = grid.swapaxes(-1, -2)
    if symmetry & 2:
        grid = grid[..., ::-1]
    if symmetry & 4:
        grid = grid[..., ::-1, :]
    return grid


def _under_symmetry_of_quadrants(drawn: list[str], symmetry: int) -> list[str]:
    """Entries of the quadrants in the map's order: south-west, south-east, north-west, north-east."""
    places = np.arange(4).reshape(2, 2)
    entries = np.empty(4, object)
    entries[_under_symmetry(places, symmetry).ravel()] = drawn
    return entries.tolist()


def _mirror(grid: NDArray[Scalar]) -> None:
    """Make the last two axes (Y, X) symmetric under half a turn, by copying the rows of low y."""
    rows, columns = (length // 2 for length in grid.shape[-2:])
    grid[..., grid.shape[-2] - rows :, :] = grid[..., :rows, :][..., ::-1, ::-1]
    if grid.shape[-2] % 2:
        grid[..., rows, grid.shape[-1] - columns :] = grid[..., rows, :columns][..., ::-1]


def _add_cover(
    config: MapConfig,
    voxels: NDArray[np.uint8],
    zone: Point,
    zone_radius: float,
    kept_free: NDArray[np.bool_],
    max_height: int,
    rng: np.random.Generator,
) -> None:
    """Put blocks in the zone and on its ring, as cover for mechs that attack and hold the zone.

    They stand in the cells of a grid about the zone's centre, so far apart that the widest mech passes between any two.
    """
    size, ring_width = config.terrain.size, config.terrain.ring_width
    margin = math.ceil(math.ceil(config.mech_width) / 2)  # m, from the edge of a cell
    pitch = 2 * margin + max(COVER_EDGES)
    allowed = disc(size, zone, zone_radius + ring_width) & ~kept_free
    if zone_radius >= MIN_ZONE_RADIUS_WITH_COVER and ring_width >= 2 * margin:
        allowed |= disc(size, zone, zone_radius) & ~disc(size, zone, config.walking_width / 2)
    corner_y, corner_x = int(zone[1]), int(zone[0])
    reach = math.ceil((zone_radius + ring_width) / pitch)
    cells = [(y, x) for y in range(-reach, reach) for x in range(-reach, reach)]
    present = rng.random(len(cells)) < COVER_DENSITY
    edges = rng.choice(COVER_EDGES, (len(cells), 2))
    offsets = (rng.random((len(cells), 2)) * (pitch - 2 * margin + 1 - edges)).astype(np.int64)
    heights = np.minimum(rng.choice(COVER_HEIGHTS, len(cells)), max_height)
    materials = rng.choice((CONCRETE, CONCRETE, REINFORCED), len(cells))
    for k in np.flatnonzero(present):
        y = corner_y + pitch * cells[k][0] + margin + offsets[k, 0]
        x = corner_x + pitch * cells[k][1] + margin + offsets[k, 1]
        block = slice(y, y + edges[k, 0]), slice(x, x + edges[k, 1])
        if min(y, x) >= 0 and allowed[block].size == edges[k].prod() and allowed[block].all():
            voxels[: heights[k], *block] = materials[k]
