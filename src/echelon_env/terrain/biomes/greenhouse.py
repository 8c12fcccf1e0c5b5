"""Greenhouses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, FOLIAGE, GLASS
from echelon_env.terrain.biomes.cells import lots
from echelon_env.terrain.biomes.plot import raise_columns

HALL, FIELD, BOILER = range(3)
LOT_KINDS = (HALL, HALL, HALL, HALL, HALL, HALL, HALL, FIELD, BOILER)  # drawn from with equal weight
WIDTHS = (10, 20)  # m, of lots, the latter excluded: halls hold one to three beds
LENGTHS = (14, 24)  # m, of lots, the latter excluded
BED = 3  # m, width
PATCH = 9  # m, from one gap in a bed to the next, including 2 m of gap
AISLE = 5  # m
DOOR = 5  # m, width, 1 m more where the wall is an even number of metres long
EAVES = 5  # m, height of the roof's underside at the walls
RIDGE = 8  # m, greatest height of the roof's underside


def greenhouse(plot: Plot, rng: np.random.Generator) -> None:
    """Greenhouses: glass halls show mechs that cannot be reached on foot; beds hide mechs that can.

    Beams and sight pass through the walls, shells shatter them, walking mechs use the doors; pitched roofs keep
    missiles off. Beds of 2 m hide all but heavies, beds of 3 m all mechs. Boiler houses are the only hard cover.
    """
    row, near_y, far_y = _lots(plot.shape[0], WIDTHS, rng)
    column, near_x, far_x = _lots(plot.shape[1], LENGTHS, rng)
    counts = (row[-1] + 1, column[-1] + 1)
    pick = np.ix_(row, column)
    side_y, side_x = np.minimum(near_y, far_y), np.minimum(near_x, far_x)
    edge = np.minimum(side_y[:, None], side_x)  # m from the edge of the lot, negative on the paths
    kind = rng.choice(LOT_KINDS, counts)[pick]
    large = (near_y + far_y >= WIDTHS[0] - 1)[:, None] & (near_x + far_x >= WIDTHS[0] - 1)  # not cut short
    hall = (kind == HALL) & large & (edge >= 0)
    field = ((kind == FIELD) | ~large) & (edge >= 0)
    boiler = (kind == BOILER) & large & (edge >= 2)

    cut = np.zeros(counts, np.bool_)  # lots crossed by a lane: their roofs would lack walls
    cut[tuple(np.broadcast_arrays(*pick)[axis][plot.open_ground] for axis in (0, 1))] = True
    roofed = ((rng.random(counts) < 0.6) & ~cut)[pick] & hall & (plot.max_height > RIDGE)
    roof = np.minimum(EAVES + side_y // 2, RIDGE)[:, None]
    end_door = (side_x == 0) & (np.abs(near_y - far_y) <= DOOR)[:, None]
    side_door = (side_y == 0)[:, None] & (np.abs(near_x - far_x) <= DOOR) & (rng.random(counts) < 0.3)[pick]
    wall = hall & (edge == 0) & ~end_door & ~side_door
    wall_tops = np.where(roofed, EAVES, rng.integers(3, 6, counts)[pick])
    tops = np.where(wall, wall_tops, np.where(boiler, rng.integers(4, 7, counts)[pick], 0))
    raise_columns(plot, tops, np.where(boiler, CONCRETE, GLASS))
    for level in range(EAVES, min(RIDGE + 1, plot.max_height)):
        plot.voxels[level][roofed & ((roof == level) | ((edge == 0) & (roof > level)))] = GLASS

    beds = (near_y - 1) % (BED + AISLE) < BED
    rows = hall & (edge > 0) & beds[:, None] & (near_x % PATCH > 1)  # with gaps to see across
    furrows = field & (near_x % (BED + AISLE) < BED)
    z = np.arange(plot.max_height)[:, None, None]
    leaves = (z < rng.integers(2, 4, counts)[pick]) & (rows | furrows)
    plot.voxels[: plot.max_height][leaves] = FOLIAGE


def _lots(
    length: int, sizes: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split an axis into lots of sizes[0] to sizes[1] - 1 metres and paths of 5 or 6 m, see `lots`."""
    count = (length + AISLE) // (sizes[0] + AISLE) + 1
    lot = rng.integers(*sizes, count)
    ends = np.cumsum(lot + rng.integers(AISLE, AISLE + 2, count)) - rng.integers(0, AISLE + 1)
    return lots(length, ends, lot)


GREENHOUSE = Biome(
    name="greenhouse",
    order=6,
    brush=greenhouse,
    shares={"glass": (0.01, 0.33), "foliage": (0.05, 0.17), "concrete": (0.0, 0.12)},
)
