"""The ego map: the terrain on a grid around a mech, rotated to its facing.

Each pass is one plain loop over all cells, so that the compiler can vectorize it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine.geometry import CONTACT_TOLERANCE, clip
from echelon_env.engine.hazards import ground_harm
from echelon_env.engine.intrinsics import bit_length
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import surface_below
from echelon_env.engine.state import EGO_AT, EGO_INSIDE, EGO_LISTED, EGO_SOLID, State
from echelon_env.engine.tables import Tables
from echelon_env.layout.observations import STREAMS, EgoCell

BELOW_ONE = 1.0 - 2.0**-53
"""The largest float below 1; times a size, the largest below the size."""

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
    x0, y0, step_x, step_y = mech.x, mech.y, cell * mech.facing_x, cell * mech.facing_y
    below, width = size * BELOW_ONE, np.int32(size)
    for k in range(grid.shape[1]):
        x = x0 + grid[0, k] * step_x - grid[1, k] * step_y
        y = y0 + grid[0, k] * step_y + grid[1, k] * step_x
        inside_x, inside_y = min(max(x, 0.0), below), min(max(y, 0.0), below)
        ego[EGO_AT, k] = np.int32(inside_y) * width + np.int32(inside_x)
        ego[EGO_INSIDE, k] = (x == inside_x) & (y == inside_y)


@kernel
def _gather(solid: Any, hazard: Any, ego: Any) -> int:
    """Look up the columns. Return the heights, as bits, at which any of them is hazardous."""
    hazardous, solids, hazards = 0, solid.flat, hazard.flat
    for k in range(ego.shape[1]):
        at = integer(ego[EGO_AT, k])
        ego[EGO_SOLID, k] = solids[at]
        hazardous |= integer(hazards[at])
    return hazardous


@kernel
def _list_hazards(hazard: Any, ego: Any) -> int:
    """List the cells of the map whose columns are hazardous, without a branch. Return how many they are."""
    count, hazards = 0, hazard.flat
    for k in range(ego.shape[1]):
        ego[EGO_LISTED, count] = k
        count += integer(hazards[integer(ego[EGO_AT, k])] != 0) & integer(ego[EGO_INSIDE, k])
    return count


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
    rules, mech, solid, hazard = tables.rules[0], state.mechs[b, m], state.solid[b], state.hazard[b]
    ego, size, head = state.ego[b], integer(rules.map_size), mech.z + tables.classes[mech.mech_class].height
    _project(tables.ego_grid, mech, rules.terrain_cell, size, ego)
    hazardous = _gather(solid, hazard, ego)
    _write_obstacles(rules, mech.z, head, ego, row)
    if hazardous:
        for i in range(_list_hazards(hazard, ego)):
            k = integer(ego[EGO_LISTED, i])
            at = integer(ego[EGO_AT, k])
            bits, harmful = integer(solid.flat[at]), integer(hazard.flat[at])
            harm = ground_harm(tables, state.voxels[b], bits, harmful, at % size, at // size, mech.z, head)
            row[EGO_MAP_AT + k * EGO_CELL_WIDTH + EgoCell.HAZARD] = harm
