"""Civic plazas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import AIR, CONCRETE, REINFORCED, WATER
from echelon_env.terrain.biomes.cells import Metres, split
from echelon_env.terrain.biomes.plot import raise_columns

SQUARE = 38  # m, least edge length of a plaza
BAY = 7  # m, from pillar to pillar of an arcade
ARCADE = (2, 10)  # m from the plaza's side: the outermost and the innermost metre of an arcade
PILLAR = 2  # m, thickness
GATE = 6  # m, width of the ways through stands and rims, 1 m less where a plaza's width is odd
STAND = 6  # m, depth of a stand, which begins 2 m from the plaza's end
PASSAGE = 5  # m, least, around what is in the middle
MONUMENT, FOUNTAIN, FORUM = range(3)
STATUES, POOLS, NEITHER = range(3)


def plaza(plot: Plot, rng: np.random.Generator) -> None:
    """Civic plazas: the path across the middle is visible to all mechs, the path along the arcades is slow but safe.

    Ranks of pillars under a roof line two sides: the roof keeps out missiles that climb and dive, the pillars obstruct
    aimed fire. Stands at the ends rise in steps that every mech climbs, to a firing line over the whole plaza. In the
    middle is a stepped monument, a fountain that cools, or corners of low walls; there is no cover on the way there.
    """
    rows, columns = (split(length, SQUARE) for length in plot.shape)
    plazas = (rows.count, columns.count)
    pick = np.ix_(rows.index, columns.index)
    lengthwise = (rng.random(plazas) < 0.5)[pick]  # the arcades run along x

    def along_and_across(x: Metres, y: Metres) -> tuple[Metres, Metres]:
        return np.where(lengthwise, x, y[:, None]), np.where(lengthwise, y[:, None], x)

    edge_along, edge_across = along_and_across(columns.edge, rows.edge)
    middle_along, middle_across = along_and_across(columns.middle, rows.middle)
    offset_along, _ = along_and_across(columns.offset, rows.offset)

    outermost, innermost = ARCADE
    arcade = (edge_across >= outermost) & (edge_across <= innermost) & (edge_along > outermost)
    rank = (edge_across < outermost + PILLAR) | (edge_across > innermost - PILLAR)
    pillars = arcade & rank & ((offset_along - outermost - 1) % BAY < PILLAR)
    roof = rng.integers(5, 9, plazas)[pick]  # m, its underside
    fallen = ndimage.maximum_filter(pillars & plot.open_ground, 2 * (BAY - PILLAR) + 1)  # to the next pillars
    z = np.arange(plot.max_height)[:, None, None]
    plot.voxels[: plot.max_height][(z == roof) & arcade & ~fallen] = CONCRETE

    court = edge_across > innermost
    length, width = along_and_across(columns.extent, rows.extent)
    stands = (middle_across >= GATE) & (middle_across < 26) & (edge_along >= 2) & (rng.random(plazas) < 0.8)[pick]
    steps = np.where(stands, np.clip(STAND + 2 - edge_along, 0, 3), 0)
    size = np.minimum(18, np.minimum(width - 2 * innermost, length - 2 * STAND - 4) - 2 * PASSAGE)
    middle_steps, blocks, water = _middles(middle_along, middle_across, size, rng.integers(0, 3, plazas)[pick])
    quarters = np.where((length >= 42) & (width >= 46), rng.integers(0, 3, plazas)[pick], NEITHER)
    between = (size + length - 2 * STAND - 4) // 2  # twice the m from the plaza's middle
    from_quarter = np.maximum(np.abs(middle_along - between), np.abs(middle_across - 12))
    blocks[(quarters == STATUES) & (from_quarter < 4)] = 2
    blocks[(quarters == STATUES) & (from_quarter < 2)] = 6
    water |= (quarters == POOLS) & (from_quarter < 4)
    raise_columns(plot, np.where(court, np.maximum(steps, middle_steps), 0), CONCRETE)
    raise_columns(plot, np.where(pillars, roof, np.where(court, blocks, 0)), REINFORCED)
    plot.voxels[0][court & water & (plot.voxels[0] == AIR)] = WATER


def _middles(
    along: Metres, across: Metres, size: Metres, kind: NDArray[np.int64]
) -> tuple[Metres, Metres, NDArray[np.bool_]]:
    """What stands on `size` m in the middle of the plazas: heights (H, W) of steps, of blocks, and where water is."""
    out, corner = np.maximum(along, across), np.minimum(along, across)
    steps = np.where(kind == MONUMENT, np.clip((size + 1 - out) // 2, 0, 3), 0)
    ring = (out >= size - 2) & (out < size) & (corner >= GATE)
    steps[(kind == FOUNTAIN) & ring] = 1
    steps[(kind == FORUM) & ring] = 2
    blocks = np.where((kind == MONUMENT) & (out < np.minimum(4, size - 6)), 13, 0)
    blocks[(kind == FOUNTAIN) & (out < np.minimum(6, size - 8))] = 4
    return steps, blocks, (kind == FOUNTAIN) & (blocks == 0) & (out < size - 2)


PLAZA = Biome(
    name="plaza",
    order=1,
    brush=plaza,
    shares={"concrete": (0.14, 0.38), "reinforced": (0.015, 0.06), "water": (0.0, 0.08)},
)
