"""Rays through voxels. A column's voxels are bits by height.

Traversal: Amanatides and Woo, "A fast voxel traversal algorithm for ray tracing", Eurographics 1987. Lines of sight
test all voxels of a column at once.
"""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.intrinsics import bit_length
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import BLOCK_BITS, BLOCK_SIDE

NEVER = 2.0
"""Parameter of a crossing beyond the segment. Parameters on the segment are 0 to 1."""


ONE = integer(1 << 32)  # 1.0 as a fixed-point number
SLACK = integer(1 << 12)  # exceeds the sum of their errors, at most one unit per layer, on maps below 4,000 m

BEDROCK, OUTSIDE = integer(-1), integer(-2)
"""What a segment reaches where it leaves the map: the ground below, or the sides and the top."""


@kernel
def flat_index(size: int, ix: int, iy: int, iz: int) -> int:
    """Index of a voxel in the flattened map (Z, Y, X)."""
    return (iz * size + iy) * size + ix


@kernel
def height_mask(lowest: int, highest: int) -> int:
    """Bits lowest to highest, both included."""
    return (1 << (highest + 1)) - (1 << lowest)


@kernel
def _heights_between(z0: float, z1: float) -> int:
    """Heights, as bits, at which a segment may be. z0 + t (z1 - z0) can round to just beyond z1."""
    end = z0 + (z1 - z0)
    return height_mask(math.floor(min(z0, z1, end)), math.floor(max(z0, z1, end)))


@kernel
def _crossing(start: float, delta: float, cell: int, last: int) -> float:
    """Parameter at which a ray leaves a cell along one axis; NEVER if it ends in this layer of cells."""
    if cell == last:
        return NEVER
    return ((cell + 1 if delta > 0.0 else cell) - start) / delta


@kernel
def surface_below(solid: int, level: int) -> int:
    """Height of the highest surface of solid voxels (bits by height) at or below a level."""
    return bit_length(solid & ((1 << level) - 1))


@kernel
def ceiling_above(solid: int, level: int, height: int) -> int:
    """Height of the lowest solid voxel (bits by height) at or above a level; `height` if there is none."""
    above = solid >> level
    return level + bit_length(above & -above) - 1 if above else height


@kernel
def _blocks(
    bits: int, ix: int, iy: int, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float
) -> bool:  # fmt: skip
    """Whether one of a column's blocking voxels (bits by height) lies on a segment, which need not cross the column.

    The segment crosses the column if it enters along x before it leaves along y, and enters along y before it leaves
    along x. If it crosses both axes at once, the crossing along y counts as the first.
    """
    dx, dy, dz = x1 - x0, y1 - y0, z1 - z0
    first_x, first_y, last_x, last_y = math.floor(x0), math.floor(y0), math.floor(x1), math.floor(y1)
    begins, ends = ix == first_x and iy == first_y, ix == last_x and iy == last_y
    in_x = -1.0 if ix == first_x else ((ix if dx > 0.0 else ix + 1) - x0) / dx
    in_y = -1.0 if iy == first_y else ((iy if dy > 0.0 else iy + 1) - y0) / dy
    out_x, out_y = _crossing(x0, dx, ix, last_x), _crossing(y0, dy, iy, last_y)
    if (ix != first_x and in_x >= out_y) or (iy != first_y and out_x < in_y):
        return False
    z_in = z0 if begins else z0 + dz * max(in_x, in_y)
    z_out = z1 if ends else z0 + dz * min(out_x, out_y)
    if begins:
        bits &= ~(1 << math.floor(z0))
    if ends:
        bits &= ~(1 << math.floor(z1))
    return bits & height_mask(math.floor(min(z_in, z_out)), math.floor(max(z_in, z_out))) != 0


@kernel
def blocking_column(
    blocking: Any, blocks: Any, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float
) -> tuple[int, int]:
    """A column with a voxel that blocks the segment between two points inside the map.

    `blocking` (Y, X) are the voxels of each column that block, as bits by height: `State.opaque` or `State.solid`.

    Returns its indices (iy, ix), or (-1, -1) if the line is clear. The voxels that contain the two points do not count.

    The loop visits the layers of columns across the longer axis, as many at a time as lie in one row of blocks.
    Fixed-point numbers bound the columns that the segment may cross in a layer. Layers are looked at only where one of
    their blocks may block, again without a branch, and only columns that may block are tested exactly.
    """
    along_x = abs(x1 - x0) >= abs(y1 - y0)
    if along_x:
        start, side, end, end_side = x0, y0, x1, y1
    else:
        start, side, end, end_side = y0, x0, y1, x1
    layer, last = math.floor(start), math.floor(end)
    least, most = math.floor(min(side, end_side)), math.floor(max(side, end_side))
    heights = _heights_between(z0, z1)
    forward = 1 if end > start else -1
    slope = (end_side - side) / abs(end - start) if end != start else 0.0
    step = integer(slope * ONE)
    entry = integer((side - slope * (start - layer if forward > 0 else layer + 1 - start)) * ONE)
    low, high = entry + min(0, step) - SLACK, entry + max(0, step) + SLACK
    left = abs(last - layer) + 1
    while left > 0:
        at = layer & (BLOCK_SIDE - 1)
        count = min(left, BLOCK_SIDE - at if forward > 0 else at + 1)
        left -= count
        further = (count - 1) * step
        first = max(least, (low + min(0, further)) >> 32) >> BLOCK_BITS
        stop = min(most, (high + max(0, further)) >> 32) >> BLOCK_BITS
        row = layer >> BLOCK_BITS
        if along_x:
            bits = integer(blocks[first, row].obstacle) | integer(blocks[stop, row].obstacle)
        else:
            bits = integer(blocks[row, first].obstacle) | integer(blocks[row, stop].obstacle)
        if bits & heights == 0 and stop - first <= 1:
            layer += forward * count
            low += further + step
            high += further + step
            continue
        for _ in range(count):
            here, there = max(least, low >> 32), min(most, high >> 32)
            if along_x:
                bits = integer(blocking[here, layer]) | integer(blocking[there, layer])
            else:
                bits = integer(blocking[layer, here]) | integer(blocking[layer, there])
            if bits & heights or there - here > 1:
                for across in range(here, there + 1):
                    ix, iy = (layer, across) if along_x else (across, layer)
                    bits = integer(blocking[iy, ix]) & heights
                    if bits and _blocks(bits, ix, iy, x0, y0, z0, x1, y1, z1):
                        return iy, ix
            layer += forward
            low += step
            high += step
    return -1, -1


@kernel
def line_is_clear(blocking: Any, blocks: Any, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float) -> bool:
    """Whether no voxel blocks the segment between two points inside the map, see `blocking_column`.

    The voxels that contain the two points do not count.
    """
    return blocking_column(blocking, blocks, x0, y0, z0, x1, y1, z1)[0] < 0


@kernel
def blocks(column: int, ix: int, iy: int, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float) -> bool:
    """Whether a column blocks a line as in `blocking_column`. The segment need not cross the column.

    `column` are its voxels that block, as bits by height.
    """
    bits = column & _heights_between(z0, z1)
    return (
        bits != 0
        and math.floor(min(x0, x1)) <= ix <= math.floor(max(x0, x1))
        and math.floor(min(y0, y1)) <= iy <= math.floor(max(y0, y1))
        and _blocks(bits, ix, iy, x0, y0, z0, x1, y1, z1)
    )


@kernel
def first_obstacle(
    opaque: Any, solid: Any, rules: Row, x0: float, y0: float, z0: float, x1: float, y1: float, z1: float
) -> tuple[float, int]:
    """Where a segment enters a solid or opaque voxel, or leaves the map.

    The voxel that it starts in does not count: a mech that stands in foliage fires out of it.

    Returns the parameter in [0, 1], else NEVER, and what is there: the voxel's flat index, BEDROCK or OUTSIDE.
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
        if not first and ((integer(opaque[iy, ix]) | integer(solid[iy, ix])) >> iz) & 1:
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
