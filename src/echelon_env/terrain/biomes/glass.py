"""Glass desert."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE
from echelon_env.config.catalog import GLASS as GLASS_VOXEL
from echelon_env.terrain.biomes.plot import inward, raise_columns

PITCH = 18  # m, between the middles of neighbouring plates of fused sand
CRACK = 6.0  # m, least width of the cracks between plates: a heavy passes in any direction
FIN = 1.4  # m, thickness of a fin: no mech slips through, however the fin runs
SHARD_DENSITY = 0.4  # of the columns of a field of shards
SHARDS, FINS, DUNE = range(3)
PLATE_KINDS = (SHARDS, SHARDS, SHARDS, SHARDS, FINS, FINS, FINS, DUNE)  # drawn from with equal weight


def glass(plot: Plot, rng: np.random.Generator) -> None:
    """Glass desert: all mechs see each other, and no straight path is open until one is shot through the glass.

    The fused sand has cracked into plates. Some bristle with shards, some lie within a fin that is open to one side.
    Both let beams pass and stop shells, which shatter them. The cracks between are wide enough for heavies. The only
    place out of sight is behind a dark dune, which every mech can climb.
    """
    shape = plot.shape
    inside, plate, (dy, dx) = _plates(shape, rng)
    plates = plate.max() + 1
    kind = rng.choice(PLATE_KINDS, plates)[plate]
    fin_height = rng.integers(2, 5, plates)[plate]
    facing_y, facing_x = (2 * rng.random((2, plates)) - 1)[:, plate]
    ahead, aside = dy * facing_y + dx * facing_x, dy * facing_x - dx * facing_y
    open_side = (ahead < 0) & (ahead + aside < 0)  # three eighths of the border
    fin = (inside < FIN) & ~open_side
    shard = rng.random(shape) < np.where(kind == FINS, SHARD_DENSITY / 8, SHARD_DENSITY)

    tops = np.where(shard, rng.integers(2, 5, shape), 0)  # too high to step on: between shards there is no way out
    tops = np.where((kind == FINS) & fin, fin_height, tops)
    dune = np.minimum(np.minimum(inside.astype(np.int64), inward(shape)) + 1, 4)  # steps of 1 m, the plot's edge too
    tops = np.where(kind == DUNE, dune, tops)
    tops[inside < 0] = 0
    raise_columns(plot, tops, np.where(kind == DUNE, CONCRETE, GLASS_VOXEL))


def _plates(
    shape: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split the ground into plates: the columns nearest to a centre, of which each square has a random one.

    Returns the metres (H, W) from a plate's border to the crack around it, less than 0 in the crack, the plate's number
    (H, W), and (y, x) in metres from the plate's centre (H, W).
    """
    rows, columns = (np.arange(length) for length in shape)
    grid = (shape[0] // PITCH + 3, shape[1] // PITCH + 3)  # a square more on each side
    middle_y = PITCH * np.arange(-1, grid[0] - 1)[:, None] + rng.integers(5, PITCH - 5, grid)
    middle_x = PITCH * np.arange(-1, grid[1] - 1) + rng.integers(5, PITCH - 5, grid)
    near_y, near_x = (offset.reshape(9, 1, 1) for offset in np.indices((3, 3)))
    number = (rows // PITCH)[:, None] * grid[1] + columns // PITCH + near_y * grid[1] + near_x  # the nine that are near
    dy, dx = rows[:, None] - middle_y.ravel()[number], columns - middle_x.ravel()[number]
    squared = dy * dy + dx * dx
    nearest = squared.argmin(axis=0)[None]
    first, second = np.sqrt(np.partition(squared, 1, axis=0)[:2])
    plate, dy, dx = (np.take_along_axis(values, nearest, axis=0)[0] for values in (number, dy, dx))
    return (second - first - CRACK) / 2, plate, (dy, dx)


GLASS = Biome(name="glass", order=12, brush=glass, shares={"glass": (0.03, 0.14), "concrete": (0.0, 0.16)})
