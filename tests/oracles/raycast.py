"""Segments through voxels, from all sorted crossings with integer planes and the voxel in the middle of each piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.world import Point

Voxel = tuple[int, int, int]
ROUNDING = 1e-12


def voxel_of(point: Point) -> Voxel:
    """The voxel that contains a point: voxel (x, y, z) fills [x, x+1) x [y, y+1) x [z, z+1)."""
    x, y, z = (math.floor(coordinate) for coordinate in point)
    return x, y, z


def traverse(start: Point, end: Point, number: Callable[[float], Any] = float) -> list[tuple[Any, Voxel]]:
    """Voxels that a segment crosses in a piece of positive length, each with the parameter of its entry.

    `number` is the arithmetic. Fraction makes it exact; with float, pieces that may come from rounding are left out.
    """
    a = [number(coordinate) for coordinate in start]
    b = [number(coordinate) for coordinate in end]
    shortest = 0 if number is Fraction else ROUNDING
    cuts = {number(0), number(1)}
    for low, high in zip(a, b, strict=True):
        if low != high:
            first, last = math.ceil(min(low, high)), math.floor(max(low, high))
            cuts.update((plane - low) / (high - low) for plane in range(first, last + 1))
    passed = []
    for enter, leave in pairwise(sorted(cuts)):
        middle = (enter + leave) / 2
        if leave - enter > shortest:
            x, y, z = (math.floor(low + (high - low) * middle) for low, high in zip(a, b, strict=True))
            passed.append((enter, (x, y, z)))
    return passed


def _is_set(mask: NDArray[np.bool_], voxel: Voxel) -> bool:
    x, y, z = voxel
    height, depth, width = mask.shape
    return 0 <= x < width and 0 <= y < depth and 0 <= z < height and bool(mask[z, y, x])


def line_of_sight(
    blocks_sight: NDArray[np.bool_], start: Point, end: Point, number: Callable[[float], Any] = float
) -> bool:
    """Whether nothing blocks sight between two points. The voxels that contain the points do not count."""
    ends = voxel_of(start), voxel_of(end)
    return not any(voxel not in ends and _is_set(blocks_sight, voxel) for _, voxel in traverse(start, end, number))


def first_blocked(
    blocking: NDArray[np.bool_], start: Point, end: Point, number: Callable[[float], Any] = float
) -> float:
    """Parameter in [0, 1] at which a segment enters a blocking voxel, or infinity.

    The voxel that the segment starts in does not count; the one that contains its end does. Nothing blocks outside of
    the map.
    """
    origin, last = voxel_of(start), voxel_of(end)
    for enter, voxel in traverse(start, end, number):
        if voxel != origin and _is_set(blocking, voxel):
            return float(enter)
    return 1.0 if last != origin and _is_set(blocking, last) else math.inf


def crosses_edges(start: Point, end: Point) -> bool:
    """Whether a segment crosses two integer planes at once (up to rounding), at a voxel's edge or corner."""
    crossings = []
    for a, b in zip(start, end, strict=True):
        planes = range(math.ceil(min(a, b)), math.floor(max(a, b)) + 1) if a != b else ()
        crossings += [(plane - a) / (b - a) for plane in planes]
    return any(later - earlier < 1e-9 for earlier, later in pairwise(sorted(crossings)))


def touches(blocking: NDArray[np.bool_], start: Point, end: Point) -> bool:
    """Whether a segment touches a blocking voxel, even at an edge or corner. The voxels of its ends do not count."""
    ends = voxel_of(start), voxel_of(end)
    low = [max(0, math.floor(min(a, b)) - 1) for a, b in zip(start, end, strict=True)]
    high = [math.floor(max(a, b)) + 2 for a, b in zip(start, end, strict=True)]
    near = blocking[low[2] : high[2], low[1] : high[1], low[0] : high[0]]
    for z, y, x in (np.argwhere(near) + low[::-1]).tolist():
        box = [coordinate - 1e-9 for coordinate in (x, y, z)], [coordinate + 1 + 1e-9 for coordinate in (x, y, z)]
        if (x, y, z) not in ends and enters_box(*box, start, end) < math.inf:
            return True
    return False


def leaves_map(size: tuple[int, int, int], start: Point, end: Point) -> float:
    """Parameter at which a segment that starts on the map leaves it, or infinity.

    Bedrock counts as outside, and so do the map's far faces.
    """
    leave = math.inf
    for a, b, extent in zip(start, end, size, strict=True):
        if b < 0:
            leave = min(leave, max(0.0, a) / (max(0.0, a) - b))
        elif b >= extent:
            leave = min(leave, (extent - a) / (b - a) if a < extent else 0.0)
    return leave


def enters_box(low: Sequence[float], high: Sequence[float], start: Sequence[float], end: Sequence[float]) -> float:
    """Parameter in [0, 1] at which a segment enters or touches a box (0 if it starts inside), or infinity."""
    enter, leave = 0.0, 1.0
    for a, b, lower, upper in zip(start, end, low, high, strict=True):
        if a == b:
            if not lower <= a <= upper:
                return math.inf
            continue
        times = sorted(((lower - a) / (b - a), (upper - a) / (b - a)))
        enter, leave = max(enter, times[0]), min(leave, times[1])
    return enter if enter <= leave else math.inf


def distance_to_segment(point: Point, start: Point, end: Point) -> float:
    """Distance of a point from the nearest point of a segment."""
    along = [b - a for a, b in zip(start, end, strict=True)]
    squared = sum(part * part for part in along)
    share = 0.0
    if squared > 0:
        share = sum((p - a) * part for p, a, part in zip(point, start, along, strict=True)) / squared
    share = min(1.0, max(0.0, share))
    return math.dist(point, [a + share * part for a, part in zip(start, along, strict=True)])


def distance_to_box(point: Point, low: Sequence[float], high: Sequence[float]) -> float:
    """Distance of a point from the nearest point of a box."""
    nearest = [min(max(part, lower), upper) for part, lower, upper in zip(point, low, high, strict=True)]
    return math.dist(point, nearest)


def voxel_entered(start: Point, end: Point, parameter: float) -> Voxel:
    """The voxel that a segment enters at the parameter of one of its crossings."""
    if parameter == 1:
        return voxel_of(end)
    return min(
        ((abs(enter - parameter), voxel) for enter, voxel in traverse(start, end)), key=lambda entered: entered[0]
    )[1]
