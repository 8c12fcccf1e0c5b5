"""Open ground: the lanes between the spawn areas and the zone, and discs around the zone."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.map import MapConfig

HALF_DIAGONAL = math.sqrt(0.5)  # m, from the middle of a column to its corner
STRAIGHT_SHARE = 0.4  # share of the permitted difference of walking distances that the zone's position uses
BENT_SHARE = 0.75  # share for position and bends together; the rest is for detours around the zone's cover
BEND = (0.6, 1.0)  # lane widths from the straight line to a direct lane's bend, if the difference permits it
FLANK_OFFSET = (0.25, 0.4)  # map sizes from the straight line to a flanking lane's waypoint

Point = tuple[float, float]
Columns = NDArray[np.bool_]


def lanes(
    config: MapConfig, spawns: NDArray[np.float64], zone: Point, rng: np.random.Generator
) -> tuple[Columns, Columns]:
    """Columns (Y, X) of the direct and of the flanking lanes from the spawn areas' centres to the zone (x, y).

    Each team gets one of each; on a mirrored map the second team's are the images of the first's. A direct lane bends
    once, so that no mech sees from the spawn area into the zone. The bend is small enough to keep the teams' walking
    distances within `max_distance_difference`. Lanes have the configured widths, or more if the widest mech needs it.
    """
    size, mirrored = config.terrain.size, config.terrain.mirrored
    direct_width = max(config.terrain.direct_lane_width, config.walking_width)
    flank_width = max(config.terrain.flank_lane_width, config.walking_width)
    direct, flank = np.zeros((2, size, size), np.bool_)
    for x, y in spawns[: 1 if mirrored else 2].mean(axis=1):
        spawn = float(x), float(y)
        bend = _bend(config, spawn, zone, direct_width, rng)
        direct |= _lane(size, [spawn, bend, zone], direct_width)
        waypoint = _flank_waypoint(size, spawn, zone, min(flank_width, size / 2), rng)
        flank |= _lane(size, [spawn, waypoint, zone], flank_width)
    if mirrored:
        return direct | direct[::-1, ::-1], flank | flank[::-1, ::-1]
    return direct, flank


def disc(size: int, centre: Point, radius: float) -> NDArray[np.bool_]:
    """Columns (size, size) that a disc of `radius` metres around `centre` (x, y) touches."""
    x, y = (np.maximum(np.abs(np.arange(size) + 0.5 - middle) - 0.5, 0.0) for middle in centre)
    mask: NDArray[np.bool_] = np.add.outer(y * y, x * x) <= radius * radius
    return mask


def distance_to_segment(shape: tuple[int, int], start: Point, end: Point) -> NDArray[np.float64]:
    """Distance in metres (H, W) of column centres from the segment between two points (x, y)."""
    x, y = np.arange(shape[1]) + 0.5 - start[0], (np.arange(shape[0]) + 0.5 - start[1])[:, None]
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = np.clip((x * dx + y * dy) / ((dx * dx + dy * dy) or 1.0), 0.0, 1.0)
    distance: NDArray[np.float64] = np.sqrt((x - share * dx) ** 2 + (y - share * dy) ** 2)
    return distance


def _lane(size: int, points: list[Point], width: float) -> NDArray[np.bool_]:
    """Columns (size, size) that a strip of `width` metres around the line through `points` touches."""
    mask = np.zeros((size, size), np.bool_)
    for start, end in pairwise(points):
        mask |= distance_to_segment((size, size), start, end) <= width / 2 + HALF_DIAGONAL
    return mask


def _bend(config: MapConfig, spawn: Point, zone: Point, width: float, rng: np.random.Generator) -> Point:
    """The bend of a direct lane: beside the middle of the straight line, on a random side, inside the map."""
    difference = config.terrain.max_distance_difference
    longer = (1 + BENT_SHARE * difference) / (1 + STRAIGHT_SHARE * difference)  # greatest ratio to the straight line
    offset, side = rng.random(2)
    dx, dy = zone[0] - spawn[0], zone[1] - spawn[1]
    least, most = BEND
    offset = width * (least + (most - least) * offset) / math.sqrt(dx * dx + dy * dy)
    offset = min(offset, math.sqrt(longer * longer - 1) / 2)
    margin = config.walking_width / 2
    for sign in (1, -1) if side < 0.5 else (-1, 1):
        x, y = spawn[0] + dx / 2 - sign * dy * offset, spawn[1] + dy / 2 + sign * dx * offset
        if margin <= min(x, y) and max(x, y) <= config.terrain.size - margin:
            return x, y
    return zone


def _flank_waypoint(size: int, spawn: Point, zone: Point, margin: float, rng: np.random.Generator) -> Point:
    """A point beside the middle of the line from a spawn area to the zone, at least `margin` metres inside the map."""
    dx, dy = zone[0] - spawn[0], zone[1] - spawn[1]
    offset, side = rng.random(2)
    least, most = FLANK_OFFSET
    offset = size * (least + (most - least) * offset) * (1 if side < 0.5 else -1) / math.sqrt(dx * dx + dy * dy)
    x, y = spawn[0] + dx / 2 - dy * offset, spawn[1] + dy / 2 + dx * offset
    return min(max(x, margin), size - margin), min(max(y, margin), size - margin)
