"""Rays through voxels, on columns whose voxels are bits.

Traversal: Amanatides and Woo, "A fast voxel traversal algorithm for ray tracing", Eurographics 1987; the line of sight
walks columns in the plane and tests all voxels that the ray crosses within a column at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine._jit import Row, integer, kernel

NEVER = 2.0
"""Parameter of a crossing that lies beyond the segment, whose parameters are 0 to 1."""


BEDROCK, OUTSIDE = integer(-1), integer(-2)
"""What a segment runs into where it leaves the map: the ground under it, or its sides and top."""


@kernel
def flat_index(size: int, ix: int, iy: int, iz: int) -> int:
    """Index of a voxel in the flattened map (Z, Y, X)."""
    return (iz * size + iy) * size + ix


@kernel
def height_mask(lowest: int, highest: int) -> int:
    """Bits lowest to highest, both included."""
    return (1 << (highest + 1)) - (1 << lowest)


@kernel
def _crossing(start: float, delta: float, cell: int, last: int) -> float:
    """Parameter at which a ray leaves a cell along one axis; NEVER when it ends in this cell's slab."""
    if cell == last:
        return NEVER
    return ((cell + 1 if delta > 0.0 else cell) - start) / delta


@kernel
def surface_below(column: Row, level: int) -> int:
    """Height of the highest solid surface of a column at or below a level."""
    surface = min(level, int(column.top))
    while surface > 0 and not (np.int64(column.solid) >> (surface - 1)) & 1:
        surface -= 1
    return surface


@kernel
def line_is_clear(
    columns: Any, by_sight: bool, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float
) -> bool:
    """Whether no voxel that blocks sight (or else movement) lies on the segment between two points inside the map.

    The voxels that hold the two points do not count.
    """
    ix, iy = math.floor(x0), math.floor(y0)
    last_x, last_y = math.floor(x1), math.floor(y1)
    dx, dy, dz = x1 - x0, y1 - y0, z1 - z0
    step_x, step_y = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
    first = True
    z_in = z0
    while True:
        t_x, t_y = _crossing(x0, dx, ix, last_x), _crossing(y0, dy, iy, last_y)
        at_end = ix == last_x and iy == last_y
        z_out = z1 if at_end else z0 + dz * min(t_x, t_y)
        blocking = np.int64(columns[iy, ix].opaque) if by_sight else np.int64(columns[iy, ix].solid)
        if blocking != 0:
            if first:
                blocking &= ~(1 << math.floor(z0))
            if at_end:
                blocking &= ~(1 << math.floor(z1))
            if blocking & height_mask(math.floor(min(z_in, z_out)), math.floor(max(z_in, z_out))):
                return False
        if at_end:
            return True
        if t_x < t_y:
            ix += step_x
        else:
            iy += step_y
        z_in = z_out
        first = False


@kernel
def first_obstacle(
    columns: Any, rules: Row, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float
) -> tuple[float, int]:
    """Where a segment enters a voxel that is solid or opaque, or leaves the map.

    The voxel that it starts in does not count: who stands in a bush fires out of it.

    Returns the parameter in [0, 1], else NEVER, and what is there: the voxel's flat index, or BEDROCK or OUTSIDE.
    """
    ix, iy, iz = math.floor(x0), math.floor(y0), math.floor(z0)
    last_x, last_y, last_z = math.floor(x1), math.floor(y1), math.floor(z1)
    dx, dy, dz = x1 - x0, y1 - y0, z1 - z0
    step_x, step_y, step_z = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1), (1 if dz > 0.0 else -1)
    t = 0.0
    first = True
    while True:
        if not (0 <= ix < rules.map_size and 0 <= iy < rules.map_size and 0 <= iz < rules.map_height):
            return t, BEDROCK if iz < 0 else OUTSIDE
        column = columns[iy, ix]
        if not first and ((np.int64(column.opaque) | np.int64(column.solid)) >> iz) & 1:
            return t, flat_index(rules.map_size, ix, iy, iz)
        first = False
        t_x = _crossing(x0, dx, ix, last_x)
        t_y = _crossing(y0, dy, iy, last_y)
        t_z = _crossing(z0, dz, iz, last_z)
        t = min(t_x, t_y, t_z)
        if t == NEVER:
            return NEVER, OUTSIDE
        if t == t_x:
            ix += step_x
        elif t == t_y:
            iy += step_y
        else:
            iz += step_z
