"""Statistics of a map."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.sparse import csgraph, csr_array

from echelon_env.config.catalog import FOLIAGE, GLASS, MATERIALS
from echelon_env.terrain.connectivity import STEP, standing_heights
from echelon_env.terrain.generator import Terrain

EYE_LEVEL = 1.5
"""m above the ground at which sight is measured."""

SIGHT_GRID = 5  # m between the starts of sight lines
ARC_STEP = 0.25  # m between neighbouring points of a circle
OVERLAP = 1.0  # m on either side of a circle that belong to both its inside and its outside
RAYS = ((1, 0), (2, 1), (1, 1), (1, 2), (0, 1), (-1, 2), (-1, 1), (-2, 1))
"""Directions (x, y) of sight lines. Eight more are opposite to these."""

Indices = NDArray[np.intp]

_SOLID = np.array([material.blocks_movement for material in MATERIALS])
_BLOCKS_SIGHT = np.array([material.blocks_sight for material in MATERIALS])
_HAZARD = np.array([m.speed_factor < 1 or m.heat != 0 or m.damage > 0 for m in MATERIALS])


@dataclass(frozen=True, kw_only=True)
class MapStatistics:
    """Statistics of a map. A column is a square metre of it; shares are of all columns unless stated otherwise.

    "On foot" is how the widest and tallest mech of the battle moves without jets: it steps up by 1 m at most and drops
    any height.
    """

    cover: float  # share, of the columns outside the zone, that block sight at `EYE_LEVEL`
    solid: float  # share with a voxel that blocks movement
    foliage: float  # share with foliage
    glass: float  # share with glass
    hazard: float  # share with a material that slows, heats, cools or burns
    solid_height: float  # m, mean height of the tops of columns with anything solid; 0 if there are none
    roughness: float  # m, mean difference of the tops of neighbouring columns, on the ground if nothing is solid
    sight_line: float  # m, mean length at `EYE_LEVEL`, of all free places of a grid in 16 directions
    reachable: float  # share that the mech reaches on foot from the centres of the spawn areas
    lane_count: float  # separate ways from a spawn area to the zone, mean of both areas; see `map_statistics`
    zone_distance: float  # m on foot from a spawn area's centre to the zone's, mean of both areas
    zone_distance_difference: float  # difference of both areas' distances, as a share of the shorter one


def map_statistics(terrain: Terrain) -> MapStatistics:
    """Statistics of a map.

    Paths on foot go straight and diagonally between columns, so distances are up to 8 % too long.

    The separate ways of a spawn area are counted on a circle about its centre, with half the distance to the zone's
    centre as radius. Points of the circle count if the mech reaches them from the area inside the circle, and the zone
    from them outside of it. Each connected arc of such points is one way: open ground is one, and every obstacle on the
    circle separates two. If a centre has no room for the mech, nothing is reachable and distances are infinite.
    """
    voxels = terrain.voxels
    solid = _SOLID[voxels]
    with_solid = solid.any(axis=0)
    tops = np.where(with_solid, len(solid) - solid[::-1].argmax(axis=0), 0)
    blocks_sight = _BLOCKS_SIGHT[voxels[int(EYE_LEVEL)]]
    centres = np.arange(len(tops)) + 0.5
    outside = np.hypot((centres - terrain.zone_y)[:, None], centres - terrain.zone_x) > terrain.zone_radius
    steps = np.concatenate((np.abs(np.diff(tops, axis=0)).ravel(), np.abs(np.diff(tops, axis=1)).ravel()))
    reachable, lane_count, distances = _walks(terrain)
    shorter, longer = np.sort(distances).tolist()
    return MapStatistics(
        cover=_share(blocks_sight[outside]),
        solid=_share(with_solid),
        foliage=_share((voxels == FOLIAGE).any(axis=0)),
        glass=_share((voxels == GLASS).any(axis=0)),
        hazard=_share(_HAZARD[voxels].any(axis=0)),
        solid_height=float(tops[with_solid].mean()) if with_solid.any() else 0.0,
        roughness=float(steps.mean()),
        sight_line=_mean_sight_line(blocks_sight, solid[int(EYE_LEVEL)]),
        reachable=reachable,
        lane_count=lane_count,
        zone_distance=(shorter + longer) / 2,
        zone_distance_difference=longer / shorter - 1 if math.isfinite(longer) else math.inf,
    )


def _share(columns: NDArray[np.bool_] | np.bool_) -> float:
    return float(columns.mean()) if columns.size else 0.0


def _mean_sight_line(blocks_sight: NDArray[np.bool_], solid: NDArray[np.bool_]) -> float:
    """Mean metres of free sight from the free columns of a grid, until a column (Y, X) blocks it or the map ends."""
    size = len(blocks_sight)
    y, x = (
        places.ravel() for places in np.mgrid[SIGHT_GRID // 2 : size : SIGHT_GRID, SIGHT_GRID // 2 : size : SIGHT_GRID]
    )
    free = ~(blocks_sight | solid)[y, x]
    if not free.any():
        return 0.0
    bordered = np.pad(blocks_sight, 1, constant_values=True)
    lengths = []
    for ray in RAYS:
        unit = np.array(ray) / max(abs(ray[0]), abs(ray[1]))
        ahead = np.arange(1, size + 1)
        for sign in (1, -1):
            dx, dy = (np.rint(sign * ahead * along).astype(int) for along in unit)
            columns, rows = (np.clip(start[free, None] + way, -1, size) + 1 for start, way in ((x, dx), (y, dy)))
            lengths.append(bordered[rows, columns].argmax(axis=1) * float(np.hypot(*unit)))
    return float(np.mean(lengths))


def _walks(terrain: Terrain) -> tuple[float, float, NDArray[np.float64]]:
    """The share of reached columns, the mean number of ways, and both areas' distances in metres to the zone."""
    config = terrain.config
    stand = standing_heights(terrain.voxels, config.mech_width, config.mech_height)
    graph = _walking_graph(stand)
    width = config.mech_width
    zone = np.array([terrain.zone_x, terrain.zone_y])
    areas = terrain.spawns.mean(axis=1)
    window = _windows_around(np.array([zone, *areas]), width, stand.shape)
    home, starts = int(window[0]), window[1:]
    from_areas = csgraph.dijkstra(graph, indices=starts)
    from_areas[:, stand.ravel() < 0] = np.inf
    homeward = graph.T.tocsr()
    rows, columns = np.indices(stand.shape).reshape(2, -1) + math.ceil(width) / 2  # m, middles of the windows

    ways = []
    for middle, start in zip(areas, starts.tolist(), strict=True):
        radius = float(np.hypot(*(zone - middle))) / 2
        distance = np.hypot(rows - middle[1], columns - middle[0])
        usable = _reached(graph, distance <= radius + OVERLAP, start)
        usable &= _reached(homeward, distance >= radius - OVERLAP, home) & (stand.ravel() >= 0)
        ways.append(_arcs(usable, middle, radius, width, stand.shape))
    reached = np.asarray(np.isfinite(from_areas).any(axis=0)).reshape(stand.shape)
    return _share(_covered(reached, math.ceil(width))), float(np.mean(ways)), from_areas[:, home]


def _reached(graph: csr_array[np.float64], within: NDArray[np.bool_], root: int) -> NDArray[np.bool_]:
    """Which windows (N,) can be reached from a root by moves between the windows in `within`."""
    windows = np.flatnonzero(within)
    order = csgraph.breadth_first_order(
        graph[windows][:, windows], int(np.searchsorted(windows, root)), return_predecessors=False
    )
    reached = np.zeros(len(within), np.bool_)
    reached[windows[order]] = True
    return reached


def _windows_around(points: NDArray[np.float64], width: float, shape: tuple[int, ...]) -> Indices:
    """Flat indices of the windows that a mech of `width` metres occupies at points (N, 2), (x, y)."""
    column, row = np.clip(np.floor(points - width / 2).astype(np.intp), 0, shape[0] - 1).T
    windows: Indices = row * shape[1] + column
    return windows


def _walking_graph(stand: NDArray[np.int64]) -> csr_array[np.float64]:
    """Metres of the straight and diagonal moves between windows; `stand` are their heights, -1 without room."""
    index = np.arange(stand.size).reshape(stand.shape)
    sources, targets, metres = [], [], []
    for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
        open_moves = np.ones_like(_shifted(stand, dy, dx)[0], np.bool_)
        for first, second in _ways_of_a_move(stand, dy, dx):
            open_moves &= (first >= 0) & (second >= 0) & (second <= first + STEP)
        here, there = _shifted(index, dy, dx)
        sources.append(here[open_moves])
        targets.append(there[open_moves])
        metres.append(np.full(len(sources[-1]), math.hypot(dy, dx)))
    places = (np.concatenate(sources), np.concatenate(targets))
    return csr_array((np.concatenate(metres), places), shape=(stand.size, stand.size))


def _shifted(grid: NDArray[np.int64], dy: int, dx: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries of a grid at the start and at the end of all moves by (dy, dx) within it."""
    rows, columns = grid.shape
    begin = grid[max(0, -dy) : rows - max(0, dy), max(0, -dx) : columns - max(0, dx)]
    return begin, grid[max(0, dy) : rows - max(0, -dy), max(0, dx) : columns - max(0, -dx)]


def _ways_of_a_move(
    stand: NDArray[np.int64], dy: int, dx: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Heights before and after the straight moves that a move needs: for a diagonal, both ways around the corner."""
    here, there = _shifted(stand, dy, dx)
    if not (dy and dx):
        yield here, there
        return
    rows, columns = stand.shape
    beside_y = stand[max(0, dy) : rows - max(0, -dy), max(0, -dx) : columns - max(0, dx)]
    beside_x = stand[max(0, -dy) : rows - max(0, dy), max(0, dx) : columns - max(0, -dx)]
    yield from ((here, beside_y), (beside_y, there), (here, beside_x), (beside_x, there))


def _arcs(
    usable: NDArray[np.bool_], middle: NDArray[np.float64], radius: float, width: float, shape: tuple[int, ...]
) -> int:
    """Number of arcs of the circle about a centre (x, y) whose windows are usable. The map's edge ends an arc, too."""
    size = shape[0] + math.ceil(width) - 1  # m, of the map
    angles = np.linspace(0, 2 * math.pi, max(8, math.ceil(2 * math.pi * radius / ARC_STEP)), endpoint=False)
    points = middle + radius * np.stack((np.cos(angles), np.sin(angles)), axis=1)
    on_map = ((points >= width / 2) & (points <= size - width / 2)).all(axis=1)
    open_points = on_map & usable[_windows_around(points, width, shape)]
    begins = open_points & ~np.roll(open_points, 1)
    return int(begins.sum()) if not open_points.all() else 1


def _covered(windows: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """Columns (Y, X) that any of the windows of `size` columns covers."""
    padded = np.pad(windows, ((0, size - 1), (0, size - 1)))
    covered: NDArray[np.bool_] = ndimage.maximum_filter(padded, size, mode="constant", origin=(size - 1) // 2)
    return covered
