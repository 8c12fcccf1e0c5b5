"""Biomes: one brush per biome, which fills a plot of the map with its solids and its foliage.

Only integers, + - x /, square roots and the generator's uniform draws go into a map: a seed gives the same voxels on
every processor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.catalog import AIR, CONCRETE, FOLIAGE, GLASS, REINFORCED
from echelon_env.terrain.lanes import distance_to_segment

STOREY = 3  # m, height of a storey of a building
TOWER, YARD, PODIUM = range(3)
LOT_KINDS = (TOWER, TOWER, TOWER, TOWER, TOWER, YARD, YARD, PODIUM)  # drawn from with equal weight
GATE = 5  # m, width of a yard's gates, 1 m less where the wall is an even number of metres long
CROWN_RADIUS = 2  # m
RIDGE_REACH = 12.0  # m, the farthest that a ridge runs along each axis


@dataclass(frozen=True)
class Plot:
    """A rectangular part of the map, H x W columns, that a brush fills."""

    voxels: NDArray[np.uint8]  # (Z, H, W) a view of the map's material codes, all air
    open_ground: NDArray[np.bool_]  # (H, W) columns that will be cleared after painting
    max_height: int  # m, greatest height of solids and foliage


def urban(plot: Plot, rng: np.random.Generator) -> None:
    """City blocks: streets are firing lanes and corners are ambushes.

    Towers break every long sight line; glass ground floors show (and let lasers reach) who cannot be walked to; walled
    yards are cover with a gate on each side; stepped podiums are firing positions that every mech can climb.
    """
    height, width = plot.open_ground.shape
    lot_y, edge_y, middle_y = _lots(height, rng)
    lot_x, edge_x, middle_x = _lots(width, rng)
    lots = (lot_y[-1] + 1, lot_x[-1] + 1)
    pick = np.ix_(lot_y, lot_x)
    kind = rng.choice(LOT_KINDS, lots)[pick]
    storeys = rng.integers(1, 6, lots)
    material = np.where(rng.random(lots) < 0.25, REINFORCED, CONCRETE)[pick]
    glass_floor = ((rng.random(lots) < 0.3) & (storeys > 1))[pick]
    edge = np.minimum(edge_y[:, None], edge_x)  # m from the edge of the lot, negative in the streets

    tower = (kind == TOWER) & (edge >= 0)
    yard = (kind == YARD) & (edge >= 0)
    podium = (kind == PODIUM) & (edge >= 0)
    gate = np.minimum(middle_y[:, None], middle_x) < GATE
    crate = np.maximum(middle_y[:, None], middle_x) <= 1
    tops = np.where(tower, STOREY * storeys[pick], 0)
    tops[yard & (edge == 0) & ~gate] = 2
    tops[yard & crate] = 1
    tops[podium] = np.minimum(edge[podium] + 1, 3)
    tops += _front_walls(edge_y, edge_x, rng)
    _raise(plot, tops, material)

    post = (edge_y[:, None] == 0) & (edge_x == 0)
    plot.voxels[: min(STOREY, plot.max_height), tower & glass_floor & ~post] = GLASS
    window = tower & (edge == 0) & (np.add.outer(np.arange(height), np.arange(width)) % 2 == 1)
    for z in range(STOREY + 1, plot.max_height, STOREY):
        plot.voxels[z][window & (tops > z)] = GLASS


def _lots(length: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split an axis into lots and streets.

    Returns three arrays (length,): the index of the lot, the distance in metres to the lot's nearer edge (0 on the
    edge, negative in the street), and twice the distance to the lot's middle.
    """
    count = length // 12 + 1
    lot = rng.integers(7, 12, count)  # m
    street = rng.integers(5, 7, count)  # m
    ends = np.cumsum(lot + street)
    starts = ends - lot  # streets come first
    position = np.arange(length)
    index = np.searchsorted(ends, position, side="right")
    offset = position - starts[index]
    last = np.minimum(lot, length - starts)[index] - 1
    return index, np.minimum(offset, last - offset), np.abs(2 * offset - last)


def _front_walls(edge_y: NDArray[np.int64], edge_x: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Heights (H, W) of low walls beside the lots: 1 m to step over, 2 m for cover. They leave the streets passable."""
    shape = (len(edge_y), len(edge_x))
    drawn = np.where(rng.random(shape) < 0.04, rng.integers(1, 3, shape), 0)
    along_x = np.where((edge_y[:, None] == -1) & (edge_x >= 0), ndimage.maximum_filter1d(drawn, 3, axis=1), 0)
    along_y = np.where((edge_y[:, None] >= 0) & (edge_x == -1), ndimage.maximum_filter1d(drawn, 3, axis=0), 0)
    walls: NDArray[np.int64] = along_x + along_y
    return walls


def forest(plot: Plot, rng: np.random.Generator) -> None:
    """Woods: thickets hide whoever stands in them and stop shells, but nobody's steps; radar decides who knows of whom.

    Small mechs slip between the trunks where heavies must go around. Trunks are concrete, crowns and thickets foliage.
    """
    shape = plot.open_ground.shape
    trunks = _trees(shape, rng)
    trunks[plot.open_ground] = 0  # no crowns without trunks beside the lanes
    np.minimum(trunks, plot.max_height - 1, out=trunks)
    _raise(plot, trunks, CONCRETE)
    reach = np.arange(-CROWN_RADIUS, CROWN_RADIUS + 1) ** 2
    crown_tops = ndimage.maximum_filter(trunks, footprint=np.add.outer(reach, reach) <= CROWN_RADIUS**2 + 1)
    noise = ndimage.uniform_filter(rng.random(shape), 5)
    thickets = np.minimum(np.where(noise > 0.52, 2, 0) + (noise > 0.54), plot.max_height)
    z = np.arange(plot.voxels.shape[0])[:, None, None]
    leaves = (z < thickets) | ((crown_tops > 0) & (z >= np.maximum(crown_tops - 3, 2)) & (z <= crown_tops))
    plot.voxels[leaves & (plot.voxels == AIR)] = FOLIAGE


def _trees(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Heights (H, W) of trunks, one in most cells of a grid of 5 m at a drawn place, some of them 2 m thick."""
    pitch = 5
    rows, columns = (range(0, length, pitch) for length in shape)
    grid = (len(rows), len(columns))
    y = np.array(rows)[:, None] + rng.integers(0, pitch - 1, grid)
    x = np.array(columns) + rng.integers(0, pitch - 1, grid)
    tops = rng.integers(5, 10, grid) * (rng.random(grid) < 0.75)
    thick = rng.random(grid) < 0.4
    trunks = np.zeros((shape[0] + pitch, shape[1] + pitch), np.int64)
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        trunks[y + dy, x + dx] = np.where(thick | (dy + dx == 0), tops, 0)
    return trunks[: shape[0], : shape[1]]


def barrens(plot: Plot, rng: np.random.Generator) -> None:
    """Open ground: range and numbers decide, cover is rare and worth fighting for.

    Ridges rise in steps of 1 m up to 4 m, so every mech can climb them, fire down and withdraw behind the crest.
    """
    shape = plot.open_ground.shape
    ridges = max(1, plot.open_ground.size // 500)
    starts = rng.random((ridges, 2)) * shape[::-1]
    ends = starts + RIDGE_REACH * (2 * rng.random((ridges, 2)) - 1)
    tops = np.zeros(shape, np.int64)
    for start, end, crest in zip(starts.tolist(), ends.tolist(), rng.integers(2, 5, ridges).tolist(), strict=True):
        tops = np.maximum(tops, crest - distance_to_segment(shape, start, end).astype(np.int64))
    inward = (np.minimum(axis, axis[::-1]) for axis in (np.arange(length) for length in shape))
    tops = np.minimum(tops, np.minimum.outer(*inward))  # no cliffs at the plot's edge
    # No boulder can be climbed, neither from the ground nor from a ridge: behind it there may be no way out.
    boulders = np.where(rng.random(shape) < 0.009, rng.integers(2, 5, shape), 0)
    boulders = np.where(ndimage.maximum_filter(tops, 9) > 0, 0, ndimage.maximum_filter(boulders, 2))
    _raise(plot, np.maximum(tops, boulders), np.where(boulders > 0, REINFORCED, CONCRETE))


def _raise(plot: Plot, tops: NDArray[np.int64], material: NDArray[np.int64] | int) -> None:
    """Fill columns from the ground to their tops (H, W), cut to the greatest height, with a material."""
    z = np.arange(plot.max_height)[:, None, None]
    np.copyto(plot.voxels[: plot.max_height], np.asarray(material, np.uint8), where=z < tops)


Brush = Callable[[Plot, np.random.Generator], None]

BRUSHES: dict[str, Brush] = {"urban": urban, "forest": forest, "barrens": barrens}
"""The brush of each of `config.BIOMES`."""
