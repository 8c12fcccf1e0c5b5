"""Woods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE
from echelon_env.terrain.biomes.plot import raise_columns

CROWN_RADIUS = 2  # m


def forest(plot: Plot, rng: np.random.Generator) -> None:
    """Woods: thickets hide mechs and stop shells but not walking mechs; radar decides which mechs are detected.

    Small mechs slip between trunks where heavies must go around. Trunks are concrete, crowns and thickets foliage.
    """
    shape = plot.shape
    trunks = _trees(shape, rng)
    trunks[plot.open_ground] = 0  # no crowns without trunks beside the lanes
    np.minimum(trunks, plot.max_height - 1, out=trunks)
    raise_columns(plot, trunks, CONCRETE)
    reach = np.arange(-CROWN_RADIUS, CROWN_RADIUS + 1) ** 2
    crown_tops = ndimage.maximum_filter(trunks, footprint=np.add.outer(reach, reach) <= CROWN_RADIUS**2 + 1)
    noise = ndimage.uniform_filter(rng.random(shape), 5)
    thickets = np.minimum(np.where(noise > 0.52, 2, 0) + (noise > 0.54), plot.max_height)
    z = np.arange(plot.voxels.shape[0])[:, None, None]
    leaves = (z < thickets) | ((crown_tops > 0) & (z >= np.maximum(crown_tops - 3, 2)) & (z <= crown_tops))
    plot.voxels[leaves & (plot.voxels == AIR)] = FOLIAGE


def _trees(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Heights (H, W) of trunks: one at a random place of most cells of a 5 m grid, some of them 2 m thick."""
    pitch = 5
    rows, columns = (range(0, length, pitch) for length in shape)
    grid = (len(rows), len(columns))
    y = np.array(rows)[:, None] + rng.integers(0, pitch - 1, grid)
    x = np.array(columns) + rng.integers(0, pitch - 1, grid)
    tops = rng.integers(5, 10, grid) * (rng.random(grid) < 0.75)
    thick = rng.random(grid) < 0.4
    trunks = np.zeros((shape[0] + pitch, shape[1] + pitch), np.int64)
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        trunks[y + dy, x + dx] = np.where(thick | (dy + dx == 0), tops, 0)
    return trunks[: shape[0], : shape[1]]


FOREST = Biome(name="forest", order=14, brush=forest, shares={"concrete": (0.035, 0.065), "foliage": (0.47, 0.615)})
