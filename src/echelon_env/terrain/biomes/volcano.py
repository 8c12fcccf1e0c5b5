"""Volcanic ridges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, LAVA, REINFORCED
from echelon_env.terrain.biomes.plot import inward, raise_columns
from echelon_env.terrain.lanes import distance_to_segment

CONE_AREA = 1200  # m2 of plot for each cone
RIDGE_AREA = 800  # m2 of plot for each ridge
MARGIN = 11.0  # m from the plot's edges, where no cone and no ridge has its middle
CONE_CREST = (5, 7)  # m, least and greatest height
RIDGE_CREST = (3, 6)  # m
FISSURE = 3.0  # m, the farthest that a crater stretches from its middle along each axis
RIDGE_REACH = 12.0  # m, the same of ridges
CRATER = 2.0  # m, radius of the lava in a crater
STREAM = 3  # m, width
STREAM_LENGTH = 40  # m, the farthest that a stream flows along its axis
BANK = 4  # m of flat ground on either side of a stream's middle
PERIOD = 21  # m along the streams, from a crossing to the next
CROSSING = 7  # m, length of a crossing, which is dry across the whole plot
BOULDERS = (0.045, 0.015)  # per m2 of flat ground beside streams and elsewhere
BESIDE = 12  # m from a stream's middle


def volcano(plot: Plot, rng: np.random.Generator) -> None:
    """Cones and ridges over burning ground: high ground is good, and the path from height to height leads past lava.

    Slopes rise in steps of 1 m, so every mech climbs them, from the craters too. Lava runs from each crater through a
    breach in its wall and over the flat ground. Every 21 m there is a dry crossing, a place for an ambush. Basalt
    boulders stand on the flat ground, most of them beside the streams.
    """
    shape = plot.shape
    outer, inner = np.zeros(shape), np.full(shape, np.inf)
    stream = np.zeros(shape, np.bool_)
    downhill = int(rng.integers(2))  # axis
    crossing = (np.indices(shape, sparse=True)[downhill] + rng.integers(PERIOD)) % PERIOD < CROSSING
    for middle, reach, crest in _features(shape, CONE_AREA, FISSURE, CONE_CREST, rng):
        distance = distance_to_segment(shape, tuple(middle - reach), tuple(middle + reach))
        outer = np.maximum(outer, np.minimum(CRATER + 2 * crest - distance, crest))
        inner = np.minimum(inner, distance - CRATER)
        stream[_stream(shape, downhill, middle, rng)] = True
    for middle, reach, crest in _features(shape, RIDGE_AREA, RIDGE_REACH, RIDGE_CREST, rng):
        outer = np.maximum(outer, crest - distance_to_segment(shape, tuple(middle - reach), tuple(middle + reach)))
    beside = ndimage.distance_transform_cdt(~stream)
    slopes = np.maximum(np.minimum(outer, inner), 0).astype(np.int64)
    slopes = np.minimum(np.minimum(slopes, np.maximum(beside - BANK, 0)), inward(shape))
    # Boulders cannot be climbed and do not stand by slopes: a mech that comes down behind one finds a way out.
    flat = (ndimage.maximum_filter(slopes, 9) == 0) & (beside > BANK) & (inner > 4)
    boulders = np.where(rng.random(shape) < np.where(beside < BESIDE, *BOULDERS), rng.integers(2, 5, shape), 0)
    boulders = np.where(flat, ndimage.maximum_filter(boulders, 2), 0)
    raise_columns(plot, np.maximum(slopes, boulders), np.where(boulders > 0, REINFORCED, CONCRETE))
    plot.voxels[0, (ndimage.maximum_filter(stream, STREAM) & ~crossing) | (inner <= 0)] = LAVA


def _features(
    shape: tuple[int, int], area: int, reach: float, crest: tuple[int, int], rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64], int]]:
    """Centres (x, y) of segments, one per `area` m2, vectors from there to their ends (x, y), and crest heights."""
    count = max(1, shape[0] * shape[1] // area)
    size = np.array(shape[::-1])
    margin = np.minimum(MARGIN, size / 2)
    middles = margin + (size - 2 * margin) * rng.random((count, 2))
    reaches = reach * (2 * rng.random((count, 2)) - 1)
    return zip(middles, reaches, rng.integers(*crest, count, endpoint=True).tolist(), strict=True)


def _stream(
    shape: tuple[int, int], axis: int, source: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of a stream's centre line from its source (x, y) to the plot's farther edge along an axis."""
    length, width = shape[axis], shape[1 - axis]
    x, y = (min(int(place), size - 1) for place, size in zip(source, shape[::-1], strict=True))
    start, sideways = (y, x) if axis == 0 else (x, y)
    ahead = np.arange(start, length) if 2 * start < length else np.arange(start, -1, -1)
    ahead = ahead[:STREAM_LENGTH]
    bends = np.repeat(rng.integers(-1, 2, len(ahead) // 4 + 1), 4)[: len(ahead)]
    aside = np.clip(sideways + np.cumsum(bends), 0, width - 1)
    return (ahead, aside) if axis == 0 else (aside, ahead)


VOLCANO = Biome(
    name="volcano",
    order=11,
    brush=volcano,
    shares={"concrete": (0.05, 0.29), "reinforced": (0.0, 0.04), "lava": (0.005, 0.1)},
)
