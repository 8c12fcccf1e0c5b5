"""Server racks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, REINFORCED, WATER
from echelon_env.terrain.biomes.cells import lots
from echelon_env.terrain.biomes.plot import raise_columns

RACK = 2  # m, thickness of a row of racks
AISLES = (5, 6)  # m, width between rows, one for a plot
ROWS = (3, 4)  # of a block
AVENUE = 6  # m, between blocks
GAPS = 0.1  # share of half rows that are missing
CHANNEL = 3  # m, width of a cooling channel in the middle of an aisle


def servers(plot: Plot, rng: np.random.Generator) -> None:
    """Server racks: aisles are corridors of fire, and the only ways across them are at their ends.

    Blocks of parallel rows run along x or y: a mech that looks down one aisle sees nothing of the next. Aisles are one
    heavy wide. In some a cooling channel slows and cools mechs, so that guns can keep firing.
    """
    aisle = int(rng.choice(AISLES))
    block_y, near_y, far_y = _blocks(plot.shape[0], aisle, rng)
    block_x, near_x, far_x = _blocks(plot.shape[1], aisle, rng)
    blocks = (block_y[-1] + 1, block_x[-1] + 1)
    pick = np.ix_(block_y, block_x)
    along_x = (rng.random(blocks) < 0.5)[pick]
    inside = (near_y[:, None] >= 0) & (near_x >= 0)
    row, offset = np.divmod(np.where(along_x, near_y[:, None], near_x), RACK + aisle)
    row[~inside] = 0
    half = np.where(along_x, near_x < far_x, (near_y < far_y)[:, None]).astype(np.int64)
    rack = (*pick, row, half)

    heights = rng.integers(3, 7, (*blocks, max(ROWS), 2))
    heights[rng.random(heights.shape) < GAPS] = 0
    material = rng.choice((CONCRETE, REINFORCED), heights.shape)
    raise_columns(plot, np.where(inside & (offset < RACK), heights[rack], 0), material[rack])
    wet = (rng.random(heights.shape[:3]) < 0.3)[rack[:3]]
    first = RACK + (aisle - CHANNEL) // 2
    plot.voxels[0, inside & wet & (offset >= first) & (offset < first + CHANNEL)] = WATER


def _blocks(
    length: int, aisle: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split an axis into blocks, each as long as its rows are wide, and avenues, see `lots`. None is cut."""
    shortest, longest = (rows * (RACK + aisle) - aisle for rows in ROWS)
    count = (length + longest) // (shortest + AVENUE) + 1
    block = rng.choice((shortest, longest), count)
    ends = np.cumsum(block + AVENUE) - rng.integers(0, longest)  # a plot begins somewhere in a block
    index, near, _ = lots(length, ends, block)
    return index, near, block[index] - 1 - near


SERVERS = Biome(
    name="servers",
    order=5,
    brush=servers,
    shares={"concrete": (0.02, 0.11), "reinforced": (0.02, 0.11), "water": (0.0, 0.11)},
)
