"""Placement of the spawn places, the spawn areas and the zone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.map import MapConfig
from echelon_env.terrain.lanes import STRAIGHT_SHARE, Point

ZONE_SPREAD = 0.22  # map sizes from the map's centre to the zone's, at most, along each axis
ZONE_CANDIDATES = 64


def place_spawns(config: MapConfig, rng: np.random.Generator) -> NDArray[np.float64]:
    """Spawn places (2, K, 2): centres (x, y) in metres, where K is the size of the larger team.

    The first area lies in a random corner, or nearer to the centre if `max_spawn_distance` requires it. The second is
    its image under half a turn about the map's centre. The places nearest to the enemy come first.
    """
    terrain = config.terrain
    count = config.places
    row, column = np.indices((math.ceil(math.sqrt(count)),) * 2).reshape(2, -1)
    foremost = np.argsort(-(row + column), kind="stable")[:count]
    grid = np.stack((column, row), axis=1)[foremost]
    places = config.spawn_offset + terrain.spawn_margin + (grid + 0.5) * terrain.spawn_spacing
    first = np.where(rng.random(2) < 0.5, places, terrain.size - places)
    return np.stack((first, terrain.size - first))


def spawn_areas(config: MapConfig, spawns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns (Y, X) of both spawn areas, margins included."""
    size = config.terrain.size
    first = math.floor(config.spawn_offset)
    last = math.ceil(config.spawn_offset + config.spawn_extent)
    mask = np.zeros((size, size), np.bool_)
    for x, y in spawns[:, 0]:
        columns = slice(first, last) if x < size / 2 else slice(size - last, size - first)
        rows = slice(first, last) if y < size / 2 else slice(size - last, size - first)
        mask[rows, columns] = True
    return mask


def place_zone(config: MapConfig, spawns: NDArray[np.float64], rng: np.random.Generator) -> tuple[Point, float]:
    """The zone's centre (x, y) and radius in metres.

    It is clear of the spawn areas. Its distances from the centres of the two teams' places differ by at most
    `STRAIGHT_SHARE` of the `max_distance_difference` that walking distances may have; the lanes' bends have the rest.
    On a mirrored map it lies in the centre.
    """
    size, least, most = config.terrain.size, config.min_zone_radius, config.max_zone_radius
    radius = least + (most - least) * float(rng.random())
    spread = 0.0 if config.terrain.mirrored else min(ZONE_SPREAD * size, size / 2 - radius)
    candidates = size / 2 + spread * (2 * rng.random((ZONE_CANDIDATES, 2)) - 1)
    candidates[-1] = size / 2  # always possible: a valid configuration has room for the zone in the middle

    offsets = candidates[:, None] - spawns.mean(axis=1)
    distances = np.sqrt((offsets**2).sum(axis=2))  # (candidates, 2)
    most_uneven = STRAIGHT_SHARE * config.terrain.max_distance_difference
    even = np.ptp(distances, axis=1) <= most_uneven * distances.min(axis=1)

    half = config.spawn_extent / 2
    middle = config.spawn_offset + half
    middles = np.where(spawns[:, 0] < size / 2, middle, size - middle)
    gaps = np.maximum(np.abs(candidates[:, None] - middles) - half, 0.0)
    clear = ((gaps**2).sum(axis=2) > radius * radius).all(axis=1)
    x, y = candidates[np.argmax(even & clear)]
    return (float(x), float(y)), radius
