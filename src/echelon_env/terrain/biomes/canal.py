"""Canals between quays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, REINFORCED, WATER
from echelon_env.terrain.biomes.cells import Cells, split
from echelon_env.terrain.biomes.plot import raise_columns

SPACING = 20  # m, least distance from one quay's middle to the next one's
HALF_CHANNEL = 3  # m
STAIR = 6  # m, width of stairs and crossings, 1 m less where the quay is an odd number of metres long
APRON = 5  # m, from a quay's edge to what is stored on it: the widest mech walks around it
STORE = 15  # m, greatest edge length of a store
WAREHOUSE, CONTAINERS, EMPTY = range(3)
SILL, FORD, NOTHING = range(3)


def canal(plot: Plot, rng: np.random.Generator) -> None:
    """Canals between quays: fast and visible to all on top, slow, cool and hidden at the bottom.

    Water slows and cools mechs that wade along the channels. The quays' walls hide them from all mechs except those at
    the edge. Stairs in the middle of each side lead up to the quays; a dry ford, or a sill at the stairs' height, leads
    to the next quay. Warehouses and containers, which small mechs slip between, block the view along the top.
    """
    rows, columns = (split(length, SPACING) for length in plot.shape)
    quays = (rows.count, columns.count)
    pick = np.ix_(rows.index, columns.index)
    y, x, edge_y, edge_x = rows.middle[:, None], columns.middle, rows.edge[:, None], columns.edge
    edge = np.minimum(edge_y, edge_x)
    crossing = np.where(edge_x < edge_y, y, x) < STAIR
    level = _crossings(rows, columns, rng)
    base = np.where(edge >= HALF_CHANNEL, rng.choice((1, 2, 2, 2), quays)[pick], crossing & (level == SILL))
    base[crossing & (edge == HALF_CHANNEL)] = 1

    kind = rng.choice((WAREHOUSE, WAREHOUSE, CONTAINERS, CONTAINERS, EMPTY), quays)[pick]
    yard = (edge >= HALF_CHANNEL + APRON) & (np.maximum(y, x) < STORE)
    row, column = rows.offset[:, None], columns.offset
    stack_top = 2 + (row // 5 + column // 6 + rng.integers(0, 3, quays)[pick]) % 3
    stacks = np.where((row % 5 < 2) & (column % 6 < 4), stack_top, 0)
    store = np.select((kind == WAREHOUSE, kind == CONTAINERS), (rng.integers(4, 8, quays)[pick], stacks), 0)
    parapet = (edge == HALF_CHANNEL) & (np.maximum(edge_y, edge_x) < HALF_CHANNEL + 4)
    parapet &= (rng.random(quays) < 0.6)[pick]
    raise_columns(plot, base + np.where(yard, store, 0) + np.where(parapet, 2, 0), CONCRETE)
    raise_columns(plot, base, REINFORCED)
    plot.voxels[0][(base == 0) & ~(crossing & (level == FORD))] = WATER


def _crossings(rows: Cells, columns: Cells, rng: np.random.Generator) -> NDArray[np.int64]:
    """Kind of crossing (H, W) over the channel that is nearest to each column.

    The channels along x and those at the plot's sides have no sills, so that mechs can wade everywhere without a step.
    """
    across_x = rng.choice((SILL, SILL, FORD, NOTHING), (rows.count, columns.count + 1))
    across_x[:, [0, -1]] = FORD
    across_y = rng.choice((FORD, FORD, NOTHING), (rows.count + 1, columns.count))
    bank_y, bank_x = (cells.index + (cells.offset > cells.edge) for cells in (rows, columns))
    nearer_x = columns.edge < rows.edge[:, None]
    return np.where(nearer_x, across_x[np.ix_(rows.index, bank_x)], across_y[np.ix_(bank_y, columns.index)])


CANAL = Biome(
    name="canal",
    order=3,
    brush=canal,
    shares={"concrete": (0.0, 0.14), "reinforced": (0.31, 0.47), "water": (0.16, 0.31)},
)
