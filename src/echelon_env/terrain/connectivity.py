"""Where mechs can walk: the places that a mech reaches, and the pockets from which it cannot walk to the zone.

A mech with a square footprint of more than n - 1 and at most n metres always covers at least n x n columns, and n x n
free columns always hold it. So its places are connected exactly as the windows of n x n columns are, under moves by one
column. A window is named by its column of lowest x and y.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.sparse import csgraph, csr_array

from echelon_env.config.catalog import MATERIALS

STEP = 1  # m that every mech steps up
DIGGING = 0.25  # m of walking that cost the same as clearing a column of obstacles

_BLOCKS_MOVEMENT = np.array([material.blocks_movement for material in MATERIALS])


def obstacles(voxels: NDArray[np.uint8], height: float) -> NDArray[np.bool_]:
    """Columns (Y, X) with something solid in the way of a mech of `height` metres that walks on the ground.

    Obstacles of 1 m count too, although a mech steps over them. So columns without obstacles are certainly walkable.
    """
    blocked: NDArray[np.bool_] = np.any(_BLOCKS_MOVEMENT[voxels[: math.ceil(height)]], axis=0)
    return blocked


def connected(blocked: NDArray[np.bool_], points: NDArray[np.float64], width: float) -> bool:
    """Whether a mech with a square footprint of `width` metres can walk between all `points` (N, 2), (x, y) in metres.

    `blocked` (Y, X) are the columns that it cannot enter.
    """
    size = math.ceil(width)
    labels, _ = ndimage.label(_count_in_windows(blocked, size) == 0)
    corner = np.clip(np.floor(points - width / 2).astype(np.int64), 0, len(labels) - 1)
    found = labels[corner[:, 1], corner[:, 0]]
    return bool(found[0] > 0 and (found == found[0]).all())


def open_pockets(
    voxels: NDArray[np.uint8], home: tuple[float, float], widths: tuple[float, ...], height: float
) -> NDArray[np.bool_]:
    """Columns (Y, X) that must be cleared so that every mech that walks away from `home` can walk back.

    Walkers have square footprints of `widths` metres and are at most `height` metres high. They step up 1 m and drop
    any height. `home` (x, y) is the zone's centre. A path is cut from each pocket, on the ground, where walking and
    digging cost least.
    """
    cleared = np.zeros(voxels.shape[1:], np.bool_)
    floor, ceiling = _floor_and_ceiling(voxels, height)
    walkers = list(dict.fromkeys(_walker(width, home, len(floor)) for width in widths))  # most widths are alike
    unproven = list(walkers)
    while unproven:
        size, start = unproven.pop(0)
        pockets, safe = _pockets(floor, ceiling, size, math.ceil(height), start)
        if pockets.any():
            paths = _cheapest_paths(floor, size, pockets, safe)
            cleared |= paths
            floor[paths], ceiling[paths] = 0, len(voxels) + math.ceil(height)
            unproven = list(walkers)  # a path for one width may lead another into a pocket
    return cleared


def _walker(width: float, home: tuple[float, float], map_size: int) -> tuple[int, tuple[int, ...]]:
    """Columns along a side of the windows of a walker of `width` metres, and its window (y, x) at home."""
    size = math.ceil(width)
    return size, tuple(min(int(c - width / 2), map_size - size) for c in reversed(home))


def standing_heights(voxels: NDArray[np.uint8], width: float, height: float) -> NDArray[np.int64]:
    """Height in metres at which a mech of `width` and `height` metres stands in each window; -1 without room."""
    floor, ceiling = _floor_and_ceiling(voxels, height)
    size = math.ceil(width)
    stand, head = _windows(floor, size, np.maximum), _windows(ceiling, size, np.minimum)
    return np.where(head - stand >= math.ceil(height), stand, -1)


def _floor_and_ceiling(voxels: NDArray[np.uint8], height: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Heights (Y, X) in metres of a column's floor, on which mechs stand, and of the ceiling above it.

    The floor is the ground, or the top of what stands on it. If an overhang leaves less room than `height` above it,
    the floor is the top of the overhang.
    """
    solid = _BLOCKS_MOVEMENT[voxels]
    room = math.ceil(height)
    floor = np.zeros(solid.shape[1:], np.int64)
    standing = np.ones(floor.shape, np.bool_)
    for layer in solid:
        standing &= layer
        floor += standing
    ceiling = np.full(floor.shape, len(solid) + room)
    roofed = solid.sum(axis=0) > floor
    columns = solid[:, roofed]
    hanging = columns & (np.arange(len(solid))[:, None] > floor[roofed])
    lowest, top = hanging.argmax(axis=0), len(solid) - columns[::-1].argmax(axis=0)
    tight = lowest - floor[roofed] < room
    floor[roofed] = np.where(tight, top, floor[roofed])
    ceiling[roofed] = np.where(tight, len(solid) + room, lowest)
    return floor, ceiling


def _pockets(
    floor: NDArray[np.int64], ceiling: NDArray[np.int64], size: int, height: int, start: tuple[int, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Windows of `size` columns that walkers reach from the window `start` (y, x) but cannot walk back from.

    Also returns the windows on the ground from which they can.
    """
    stand, head = _windows(floor, size, np.maximum), _windows(ceiling, size, np.minimum)
    walkable = (head - stand >= height).ravel()
    level = stand.ravel()
    sources, targets = _moves(stand.shape)
    open_moves = walkable[sources] & walkable[targets] & (level[targets] <= level[sources] + STEP)
    root = int(np.ravel_multi_index(start, stand.shape))
    reached = _reached(sources[open_moves], targets[open_moves], root, len(level))
    returning = _reached(targets[open_moves], sources[open_moves], root, len(level))
    safe = returning & (level == 0)
    return (reached & ~returning).reshape(stand.shape), safe.reshape(stand.shape)


def _reached(sources: NDArray[np.int32], targets: NDArray[np.int32], root: int, count: int) -> NDArray[np.bool_]:
    """Which of `count` windows (count,) can be reached from `root` by moves."""
    graph = csr_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(count, count))
    order = csgraph.breadth_first_order(graph, root, return_predecessors=False)
    mask = np.zeros(count, np.bool_)
    mask[order] = True
    return mask


def _cheapest_paths(
    floor: NDArray[np.int64], size: int, pockets: NDArray[np.bool_], safe: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Columns (Y, X) of the cheapest paths on the ground from each pocket to the nearest safe window."""
    if not safe.any():
        raise RuntimeError("walkers cannot stand on the ground at home")
    cost = (1.0 + DIGGING * _count_in_windows(floor > 0, size)).ravel()
    sources, targets = _moves(pockets.shape)
    graph = csr_array((cost[targets], (sources, targets)), shape=(len(cost), len(cost)))
    distance, previous, _ = csgraph.dijkstra(
        graph, indices=np.flatnonzero(safe), min_only=True, return_predecessors=True
    )
    labels, count = ndimage.label(pockets)
    nearest = distance.reshape(pockets.shape)
    cleared = np.zeros(floor.shape, np.bool_)
    for pocket in range(1, count + 1):
        window = int(np.where(labels == pocket, nearest, np.inf).argmin())
        while window >= 0:
            y, x = divmod(window, pockets.shape[1])
            cleared[y : y + size, x : x + size] = True
            window = int(previous[window])
    return cleared


def _count_in_windows(mask: NDArray[np.bool_], size: int) -> NDArray[np.int32]:
    """How many columns of a mask (Y, X) lie in each window of `size` x `size` columns."""
    count = np.pad(mask, ((1, 0), (1, 0))).cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)
    inside: NDArray[np.int32] = (
        count[size:, size:] - count[:-size, size:] - count[size:, :-size] + count[:-size, :-size]
    )
    return inside


def _windows(grid: NDArray[np.int64], size: int, extreme: np.ufunc) -> NDArray[np.int64]:
    """The least or the greatest value (`extreme`) in each window of `size` x `size` columns."""
    rows, columns = (length - size + 1 for length in grid.shape)
    along_y = extreme.reduce([grid[k : k + rows] for k in range(size)])
    result: NDArray[np.int64] = extreme.reduce([along_y[:, k : k + columns] for k in range(size)])
    return result


@lru_cache(maxsize=8)
def _moves(shape: tuple[int, int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Start and end windows of all moves by one column, as flat indices."""
    index = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    pairs = [(index[1:], index[:-1]), (index[:-1], index[1:]), (index[:, 1:], index[:, :-1])]
    pairs.append((index[:, :-1], index[:, 1:]))
    sources = np.concatenate([source.ravel() for source, _ in pairs])
    targets = np.concatenate([target.ravel() for _, target in pairs])
    order = np.argsort(sources, kind="stable")
    return sources[order], targets[order]
