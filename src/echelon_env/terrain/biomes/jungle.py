"""Jungle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE, WATER
from echelon_env.terrain.biomes.plot import raise_columns

STREAM_SPACING = 25  # m, about, a stream in each strip of this width
STREAM_WIDTH = 3.0  # m
BENDS = 60.0  # m, how far the draws of a stream lead it aside
TRUNK_DENSITY = 0.008
CROWN_RADIUS = 2  # m
CROWN_DEPTH = 2  # m


def jungle(plot: Plot, rng: np.random.Generator) -> None:
    """Jungle: foliage nearly everywhere; radar decides, sight is a few metres.

    Bushes of 3 to 5 m hide every mech and stop shells; a few thin trunks stop walking mechs. Shallow streams wind
    through: a mech that wades in them is slow and visible, but cools its guns and can see along the stream. Clearings
    are where ambushes end.
    """
    shape = plot.shape
    stream = _streams(shape, rng) if rng.random() < 0.5 else _streams(shape[::-1], rng).T
    growth = ndimage.uniform_filter(rng.random(shape), 5)
    clearing = growth < 0.43
    trunks = np.where(rng.random(shape) < TRUNK_DENSITY, rng.integers(6, 12, shape), 0)
    trunks[plot.open_ground | stream] = 0  # no crowns without trunks beside the lanes
    np.minimum(trunks, plot.max_height - 1, out=trunks)
    raise_columns(plot, trunks, CONCRETE)
    reach = np.arange(-CROWN_RADIUS, CROWN_RADIUS + 1) ** 2
    crowns = ndimage.maximum_filter(trunks, footprint=np.add.outer(reach, reach) <= CROWN_RADIUS**2 + 1)
    leaf_tops = np.where(clearing | stream, 0, 3 + (growth > 0.5) + (growth > 0.54))
    z = np.arange(plot.max_height)[:, None, None]
    leaves = (z < leaf_tops) | ((crowns > 0) & (z > crowns - CROWN_DEPTH) & (z <= crowns))
    voxels = plot.voxels[: plot.max_height]
    voxels[leaves & (voxels == AIR)] = FOLIAGE
    voxels[0, stream] = WATER


def _streams(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Columns (H, W) of streams that wind from x = 0 to the opposite edge."""
    height, width = shape
    count = (height + STREAM_SPACING // 2) // STREAM_SPACING
    if count == 0:
        return np.zeros(shape, np.bool_)
    start = height / count * (np.arange(count) + 0.2 + 0.6 * rng.random(count))
    bends = ndimage.uniform_filter1d(rng.random((count, width + 1)) - 0.5, 9)
    middle = start[:, None] + BENDS * ndimage.uniform_filter1d(bends, 9)
    middle = height - STREAM_WIDTH - np.abs(height - STREAM_WIDTH - middle)  # turns back before the plot's edge
    middle = STREAM_WIDTH + np.abs(middle - STREAM_WIDTH)
    slope = np.diff(middle)
    reach = STREAM_WIDTH / 2 * np.sqrt(1 + slope * slope)
    apart = np.abs(np.arange(height)[:, None, None] - middle[:, :-1])
    streams: NDArray[np.bool_] = np.any(apart <= reach, axis=1)
    return streams


JUNGLE = Biome(
    name="jungle",
    order=15,
    brush=jungle,
    shares={"foliage": (0.48, 0.66), "water": (0.06, 0.16), "concrete": (0.001, 0.015)},
)
