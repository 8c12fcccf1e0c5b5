"""The ego map: the terrain on a grid around a mech, rotated to its facing.

Each pass is one plain loop over all cells, so that the compiler can vectorize it.
"""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.bits import bit_length
from echelon_env.engine.geometry import CONTACT_TOLERANCE, clip
from echelon_env.engine.hazards import ground_harm
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import surface_below
from echelon_env.engine.state import EGO_HAZARD, EGO_INSIDE, EGO_SOLID, EGO_X, EGO_Y, State
from echelon_env.engine.tables import Tables
from echelon_env.layout.observations import STREAMS, EgoCell

EGO_MAP_AT, EGO_CELL_WIDTH = STREAMS["ego_map"].start, STREAMS["ego_map"].row_width


@kernel
def obstacle_top(solid: int, level: int) -> int:
    """Height of the terrain (`solid`: bits by height) that begins below a level. What begins above does not count."""
    surface = surface_below(solid, level)
    above = solid >> surface
    return surface + bit_length(~above & (above + 1)) - 1 if surface else 0


@kernel
def _project(grid: Any, mech: Row, cell: float, size: int, ego: Any) -> None:
    """Find the column of each grid cell, `cell` metres wide. Cells off the map get the nearest column."""
    x, y, step_x, step_y = mech.x, mech.y, cell * mech.facing_x, cell * mech.facing_y
    for k in range(grid.shape[1]):
        ix = math.floor(x + grid[0, k] * step_x - grid[1, k] * step_y)
        iy = math.floor(y + grid[0, k] * step_y + grid[1, k] * step_x)
        ego[EGO_X, k] = min(max(ix, 0), size - 1)
        ego[EGO_Y, k] = min(max(iy, 0), size - 1)
        ego[EGO_INSIDE, k] = (ix >= 0) & (ix < size) & (iy >= 0) & (iy < size)


@kernel
def _gather(columns: Any, ego: Any) -> int:
    """Look up the columns. Return the heights, as bits, at which any of them is hazardous."""
    hazardous = 0
    for k in range(ego.shape[1]):
        column = columns[integer(ego[EGO_Y, k]), integer(ego[EGO_X, k])]
        ego[EGO_SOLID, k] = column.solid
        ego[EGO_HAZARD, k] = column.hazard
        hazardous |= integer(column.hazard)
    return hazardous


@kernel
def _write_obstacles(rules: Row, feet: float, head: float, ego: Any, row: Any) -> None:
    level = math.ceil(head - CONTACT_TOLERANCE)
    for k in range(ego.shape[1]):
        height = clip((obstacle_top(integer(ego[EGO_SOLID, k]), level) - feet) / rules.height_scale, -1.0, 1.0)
        row[EGO_MAP_AT + k * EGO_CELL_WIDTH + EgoCell.OBSTACLE] = height if ego[EGO_INSIDE, k] else 1.0
        row[EGO_MAP_AT + k * EGO_CELL_WIDTH + EgoCell.HAZARD] = 0.0


@kernel
def write_ego_map(tables: Tables, state: State, b: int, m: int, row: Any) -> None:
    """Write the terrain around a mech: rows from behind to ahead, columns from right to left."""
    rules, mech, columns, ego = tables.rules[0], state.mechs[b, m], state.columns[b], state.ego[b]
    head = mech.z + tables.classes[mech.mech_class].height
    _project(tables.ego_grid, mech, rules.terrain_cell, integer(rules.map_size), ego)
    hazardous = _gather(columns, ego)
    _write_obstacles(rules, mech.z, head, ego, row)
    if hazardous:
        for k in range(ego.shape[1]):
            if ego[EGO_HAZARD, k] and ego[EGO_INSIDE, k]:
                ix, iy = integer(ego[EGO_X, k]), integer(ego[EGO_Y, k])
                harm = ground_harm(tables, state.voxels[b], columns[iy, ix], ix, iy, mech.z, head)
                row[EGO_MAP_AT + k * EGO_CELL_WIDTH + EgoCell.HAZARD] = harm
