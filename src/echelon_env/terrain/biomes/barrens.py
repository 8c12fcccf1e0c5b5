"""Open ground."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, REINFORCED
from echelon_env.terrain.biomes.plot import inward, raise_columns
from echelon_env.terrain.lanes import distance_to_segment

RIDGE_REACH = 12.0  # m, the farthest that a ridge runs along each axis


def barrens(plot: Plot, rng: np.random.Generator) -> None:
    """Open ground: range and numbers decide, cover is rare and worth fighting for.

    Ridges rise in steps of 1 m up to 4 m, so every mech can climb them, fire down and withdraw behind the crest.
    """
    shape = plot.shape
    ridges = max(1, plot.open_ground.size // 500)
    starts = rng.random((ridges, 2)) * shape[::-1]
    ends = starts + RIDGE_REACH * (2 * rng.random((ridges, 2)) - 1)
    tops = np.zeros(shape, np.int64)
    for start, end, crest in zip(starts.tolist(), ends.tolist(), rng.integers(2, 5, ridges).tolist(), strict=True):
        tops = np.maximum(tops, crest - distance_to_segment(shape, start, end).astype(np.int64))
    tops = np.minimum(tops, inward(shape))  # no cliffs at the plot's edge
    # Boulders cannot be climbed, neither from the ground nor from a ridge: there may be no way out behind them.
    boulders = np.where(rng.random(shape) < 0.009, rng.integers(2, 5, shape), 0)
    boulders = np.where(ndimage.maximum_filter(tops, 9) > 0, 0, ndimage.maximum_filter(boulders, 2))
    raise_columns(plot, np.maximum(tops, boulders), np.where(boulders > 0, REINFORCED, CONCRETE))


BARRENS = Biome(
    name="barrens", order=13, brush=barrens, shares={"concrete": (0.01, 0.16), "reinforced": (0.001, 0.035)}
)
