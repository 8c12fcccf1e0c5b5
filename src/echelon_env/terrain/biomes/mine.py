"""Open mining pits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, REINFORCED
from echelon_env.terrain.biomes.plot import raise_columns

CELL = 48  # m, about the distance between the middles of two pits
FOOT = 2.0  # m of flat ground between a hill and its cell's edge
CORNER = 0.62  # cuts the corners of hills: 0.5 is a square, 1 a square that stands on its tip
FLOOR = (0.34, 0.44)  # least and greatest radius of a floor, as a share of the hill's
RIM = (5, 7)  # m, least and greatest height of a rim where there is room for it
BENCH = (2.0, 4.0)  # m, least and greatest width of a terrace
FACES = 2  # straight walls of a pit
ROAD = 3.0  # m, half the width of a haul road
SLANT = 0.4  # m, the farthest that a haul road goes aside in a metre
HEAPS = 0.035  # per m2


def mine(plot: Plot, rng: np.random.Generator) -> None:
    """Open pits in terraces: the rim commands the floor, and a mech that climbs the benches is visible from all around.

    Benches are steps of 1 m, outside too, so every mech climbs to the rim. Haul roads cut through it at ground level,
    between cliffs that are good for an ambush. On the floor only heaps of ore give cover, which can be climbed too.
    """
    shape = plot.shape
    counts = (max(1, (shape[0] + CELL // 2) // CELL), max(1, (shape[1] + CELL // 2) // CELL))
    (row, y, half_y), (column, x, half_x) = _cells(shape[0], counts[0]), _cells(shape[1], counts[1])
    pick = np.ix_(row, column)
    radius = max(min(half_y, half_x), 1.0)
    y, x = y[:, None] * (radius / max(half_y, 1.0)), x * (radius / max(half_x, 1.0))  # long cells hold long pits
    roads = _roads(y, x, pick, counts, rng)

    floor = radius * (FLOOR[0] + (FLOOR[1] - FLOOR[0]) * rng.random(counts))
    rim = rng.integers(RIM[0], RIM[1] + 1, counts)
    bench = np.clip((radius - floor - rim) / rim - 0.5, *BENCH)
    pit = np.sqrt(y * y + x * x)
    for _ in range(FACES):
        towards = rng.random((*counts, 2)) - 0.5
        towards /= np.sqrt((towards**2).sum(axis=2, keepdims=True))
        nearer = floor * 0.25 * rng.random(counts)  # m, than a round wall
        pit = np.maximum(pit, y * towards[..., 0][pick] + x * towards[..., 1][pick] + nearer[pick])
    terrace = np.ceil((pit - floor[pick]) / bench[pick])
    outside = np.ceil(radius - np.maximum(np.maximum(np.abs(y), np.abs(x)), CORNER * (np.abs(y) + np.abs(x))))
    tops = np.maximum(np.minimum(np.minimum(terrace, rim[pick]), outside), 0).astype(np.int64)

    heaps = (rng.random(shape) < HEAPS) & ((pit < floor[pick]) | (outside < 0)) & ~ndimage.maximum_filter(roads, 7)
    ore = heaps.astype(np.int64)
    for size in (3, 5):
        ore += ndimage.maximum_filter(heaps, size)
    raise_columns(plot, np.where(roads, 0, np.maximum(tops, ore)), np.where(ore > tops, REINFORCED, CONCRETE))


def _cells(length: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Split an axis into cells: their indices and the metres from their centres (length,), and half a hill's length."""
    index = np.arange(length) * count // length
    middle = (index + 0.5) * length / count
    return index, np.arange(length) + 0.5 - middle, length / count / 2 - FOOT


def _roads(
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    pick: tuple[NDArray[np.int64], ...],
    counts: tuple[int, int],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Columns (H, W) of the haul roads: two lead from each pit's centre along one axis, sometimes more."""
    main = rng.integers(0, 2, counts)
    more = rng.random((4, *counts)) < 0.1
    slants = SLANT * (2 * rng.random((4, *counts)) - 1)
    roads = np.zeros((y.shape[0], x.shape[0]), np.bool_)
    for arm, (ahead, aside) in enumerate(((y, x), (x, y), (-y, x), (-x, y))):
        slant = slants[arm][pick]
        width = ROAD * np.sqrt(1 + slant * slant)
        roads |= ((main == arm % 2) | more[arm])[pick] & (ahead >= -ROAD) & (np.abs(aside - slant * ahead) <= width)
    return roads


MINE = Biome(name="mine", order=10, brush=mine, shares={"concrete": (0.33, 0.49), "reinforced": (0.01, 0.09)})
