"""City blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, GLASS, REINFORCED
from echelon_env.terrain.biomes.cells import lots
from echelon_env.terrain.biomes.plot import raise_columns

STOREY = 3  # m, height of a storey of a building
TOWER, YARD, PODIUM = range(3)
LOT_KINDS = (TOWER, TOWER, TOWER, TOWER, TOWER, YARD, YARD, PODIUM)  # drawn from with equal weight
GATE = 5  # m, width of a yard's gates, 1 m less where the wall is an even number of metres long


def urban(plot: Plot, rng: np.random.Generator) -> None:
    """City blocks: streets are firing lanes and corners are ambushes.

    Towers block every long sight line. Glass ground floors show mechs that cannot be reached on foot, and let lasers
    pass. Walled yards are cover with a gate on each side; stepped podiums are firing positions that every mech can
    climb.
    """
    height, width = plot.shape
    lot_y, edge_y, middle_y = _lots(height, rng)
    lot_x, edge_x, middle_x = _lots(width, rng)
    counts = (lot_y[-1] + 1, lot_x[-1] + 1)
    pick = np.ix_(lot_y, lot_x)
    kind = rng.choice(LOT_KINDS, counts)[pick]
    storeys = rng.integers(1, 6, counts)
    material = np.where(rng.random(counts) < 0.25, REINFORCED, CONCRETE)[pick]
    glass_floor = ((rng.random(counts) < 0.3) & (storeys > 1))[pick]
    edge = np.minimum(edge_y[:, None], edge_x)  # m from the edge of the lot, negative in the streets

    tower = (kind == TOWER) & (edge >= 0)
    yard = (kind == YARD) & (edge >= 0)
    podium = (kind == PODIUM) & (edge >= 0)
    gate = np.minimum(middle_y[:, None], middle_x) < GATE
    crate = np.maximum(middle_y[:, None], middle_x) <= 1
    tops = np.where(tower, STOREY * storeys[pick], 0)
    tops[yard & (edge == 0) & ~gate] = 2
    tops[yard & crate] = 1
    tops[podium] = np.minimum(edge[podium] + 1, 3)
    tops += _front_walls(edge_y, edge_x, rng)
    raise_columns(plot, tops, material)

    post = (edge_y[:, None] == 0) & (edge_x == 0)
    plot.voxels[: min(STOREY, plot.max_height), tower & glass_floor & ~post] = GLASS
    window = tower & (edge == 0) & (np.add.outer(np.arange(height), np.arange(width)) % 2 == 1)
    for z in range(STOREY + 1, plot.max_height, STOREY):
        plot.voxels[z][window & (tops > z)] = GLASS


def _lots(length: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split an axis into lots and streets.

    Returns three arrays (length,): the index of the lot, the distance in metres to the lot's nearer edge (0 on the
    edge, negative in the street), and twice the distance to the lot's middle.
    """
    count = length // 12 + 1
    lot = rng.integers(7, 12, count)  # m
    street = rng.integers(5, 7, count)  # m
    index, near, far = lots(length, np.cumsum(lot + street), lot)  # streets come first
    return index, np.minimum(near, far), np.abs(near - far)


def _front_walls(edge_y: NDArray[np.int64], edge_x: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Heights (H, W) of low walls beside the lots: 1 m to step over, 2 m as cover. The streets stay passable."""
    shape = (len(edge_y), len(edge_x))
    drawn = np.where(rng.random(shape) < 0.04, rng.integers(1, 3, shape), 0)
    along_x = np.where((edge_y[:, None] == -1) & (edge_x >= 0), ndimage.maximum_filter1d(drawn, 3, axis=1), 0)
    along_y = np.where((edge_y[:, None] >= 0) & (edge_x == -1), ndimage.maximum_filter1d(drawn, 3, axis=0), 0)
    walls: NDArray[np.int64] = along_x + along_y
    return walls


URBAN = Biome(
    name="urban",
    order=0,
    brush=urban,
    shares={"concrete": (0.07, 0.23), "reinforced": (0.0, 0.145), "glass": (0.0, 0.14)},
)
