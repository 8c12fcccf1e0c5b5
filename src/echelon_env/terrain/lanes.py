"""Open ground: the lanes between the spawn areas and the zone, and discs around it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from echelon_env.config import BattleConfig

HALF_DIAGONAL = math.sqrt(0.5)  # m, from the middle of a column to its corner
FLANK_OFFSET = (0.25, 0.4)  # map sizes that a flanking lane's waypoint lies beside the straight way

Point = tuple[float, float]


def lanes(
    config: BattleConfig, spawns: NDArray[np.float64], zone: Point, walking_width: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Columns (Y, X) of both teams' lanes from the middle of their spawn places (2, K, 2) to the zone (x, y).

    Each team gets a straight lane and one over a waypoint to one side; on a mirrored map the second team's are the
    images of the first's. Lanes are as wide as configured, and at least `walking_width` metres.
    """
    size, mirrored = config.terrain.size, config.terrain.mirrored
    direct_width = max(config.terrain.direct_lane_width, walking_width)
    flank_width = max(config.terrain.flank_lane_width, walking_width)
    mask = np.zeros((size, size), np.bool_)
    for x, y in spawns[: 1 if mirrored else 2].mean(axis=1):
        spawn = float(x), float(y)
        waypoint = _flank_waypoint(size, spawn, zone, min(flank_width, size / 2), rng)
        mask |= _lane(size, [spawn, zone], direct_width)
        mask |= _lane(size, [spawn, waypoint, zone], flank_width)
    return mask | mask[::-1, ::-1] if mirrored else mask


def disc(size: int, centre: Point, radius: float) -> NDArray[np.bool_]:
    """Columns (size, size) that a disc of `radius` metres around `centre` (x, y) touches."""
    x, y = (np.maximum(np.abs(np.arange(size) + 0.5 - middle) - 0.5, 0.0) for middle in centre)
    mask: NDArray[np.bool_] = np.add.outer(y * y, x * x) <= radius * radius
    return mask


def distance_to_segment(shape: tuple[int, int], start: Point, end: Point) -> NDArray[np.float64]:
    """Distance in metres (H, W) of the middles of columns from the segment between two points (x, y)."""
    x, y = np.arange(shape[1]) + 0.5 - start[0], (np.arange(shape[0]) + 0.5 - start[1])[:, None]
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = np.clip((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-9), 0.0, 1.0)
    distance: NDArray[np.float64] = np.sqrt((x - share * dx) ** 2 + (y - share * dy) ** 2)
    return distance


def _lane(size: int, points: list[Point], width: float) -> NDArray[np.bool_]:
    """Columns (size, size) that a strip of `width` metres around the line through `points` touches."""
    mask = np.zeros((size, size), np.bool_)
    for start, end in pairwise(points):
        mask |= distance_to_segment((size, size), start, end) <= width / 2 + HALF_DIAGONAL
    return mask


def _flank_waypoint(size: int, spawn: Point, zone: Point, margin: float, rng: np.random.Generator) -> Point:
    """A point beside the middle of the way from a spawn area to the zone, `margin` metres or more inside the map."""
    dx, dy = zone[0] - spawn[0], zone[1] - spawn[1]
    offset, side = rng.random(2)
    least, most = FLANK_OFFSET
    offset = size * (least + (most - least) * offset) * (1 if side < 0.5 else -1) / math.sqrt(dx * dx + dy * dy)
    x, y = spawn[0] + dx / 2 - dy * offset, spawn[1] + dy / 2 + dx * offset
    return min(max(x, margin), size - margin), min(max(y, margin), size - margin)
