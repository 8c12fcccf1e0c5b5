"""Walking by the rules of docs/reference/rules.md, computed from the voxels alone, without code of the generator.

A mech moves in whole metres. A place is the block of columns under its footprint and the height of its feet, on the
ground or on any roof. A move leads to the next column at the height of its feet, if that is free for its whole body,
and the mech then falls to what is below. Otherwise it steps up 1 m, if there is room above its place and at the target.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from scipy.sparse import coo_array, csgraph

from echelon_env.config.catalog import MATERIALS

SOLID = np.array([material.blocks_movement for material in MATERIALS])
SLOWNESS = np.array([1 / material.speed_factor if material.speed_factor else np.inf for material in MATERIALS])
EAST, NORTH, WEST, SOUTH = range(4)
OFFSETS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # (y, x)


class Walker:
    """Where a mech can stand on a map, and where each move leads."""

    def __init__(self, voxels: np.ndarray, width: float, height: float) -> None:
        """`voxels` (Z, Y, X); the mech's footprint is square."""
        self.width, self.columns, self.metres = width, math.ceil(width), math.ceil(height)
        solid = self._under_footprint(SOLID[voxels], np.logical_or)
        levels = len(solid) - self.metres + 1  # the head stays below the map's height
        free = ~np.array([solid[z : z + self.metres].any(axis=0) for z in range(levels)])
        borne = np.concatenate((np.ones((1, *solid.shape[1:]), bool), solid[: levels - 1]))
        standing = free & borne
        self.z, self.y, self.x = np.nonzero(standing)
        self.count = len(self.z)
        self.place = np.full(standing.shape, -1)
        self.place[standing] = np.arange(self.count)
        landing = np.full((levels + 1, solid.shape[1] + 2, solid.shape[2] + 2), -1)  # no mech leaves the map
        for z in range(levels):
            fallen = landing[z - 1, 1:-1, 1:-1] if z else -1
            landing[z, 1:-1, 1:-1] = np.where(free[z], np.where(borne[z], self.place[z], fallen), -1)
        room = np.concatenate((free, np.zeros((1, *solid.shape[1:]), bool)))
        above = room[self.z + 1, self.y, self.x]
        self.moves = np.full((4, self.count + 1), -1)  # the last entry is what -1 means: no place
        for move, (dy, dx) in zip(self.moves, OFFSETS, strict=True):
            level = landing[self.z, self.y + 1 + dy, self.x + 1 + dx]
            step = landing[self.z + 1, self.y + 1 + dy, self.x + 1 + dx]
            move[:-1] = np.where(level >= 0, level, np.where(above, step, -1))
        # A mech's box overlaps the voxels from its feet to its head.
        slow = self._under_footprint(SLOWNESS[voxels], np.maximum)
        within = [slow[np.minimum(self.z + k, len(slow) - 1), self.y, self.x] for k in range(self.metres)]
        self.slowness = reduce(np.maximum, within)

    def _under_footprint(self, voxels: np.ndarray, extreme: np.ufunc) -> np.ndarray:
        """The extreme of each layer's columns under the footprint, by its column of lowest x and y."""
        rows, columns = (length - self.columns + 1 for length in voxels.shape[1:])
        along_y = extreme.reduce([voxels[:, k : k + rows] for k in range(self.columns)])
        return extreme.reduce([along_y[:, :, k : k + columns] for k in range(self.columns)])

    def on_ground(self, points: np.ndarray) -> np.ndarray:
        """The four places on the ground (N, 4) under mechs with their centres at points (N, 2), (x, y).

        A mech that is not at whole metres covers one column more than its block, so all four places must be free.
        Blocked ones are -1.
        """
        points = np.asarray(points)
        low = np.floor(points - self.width / 2 + 1e-9).astype(int)
        high = np.ceil(points + self.width / 2 - 1e-9).astype(int) - self.columns
        return np.stack([self.place[0, y[:, 1], x[:, 0]] for y in (low, high) for x in (low, high)], axis=1)

    def near(self, x: float, y: float, radius: float) -> np.ndarray:
        """The places on the ground with the mech's centre within a circle, or else the nearest ones to its centre."""
        half = self.columns / 2
        distance = np.where(self.z == 0, np.hypot(self.x + half - x, self.y + half - y), np.inf)
        return np.flatnonzero(distance <= max(radius, distance.min()))

    def reached(self, start: np.ndarray, ground_only: bool = False) -> np.ndarray:
        """Which places (count,) a mech reaches from some places (flood fill), optionally on the ground only."""
        allowed = np.append(self.z == 0 if ground_only else np.ones(self.count, bool), False)
        found = ~allowed
        front = np.unique(start)
        while len(front):
            found[front] = True
            ahead = self.moves[:, front].ravel()
            front = np.unique(ahead[~found[ahead]])
        return (found & allowed)[:-1]

    def seconds(self, goals: np.ndarray) -> np.ndarray:
        """Time (count,) from each place to the nearest of some goals at 1 m/s; infinite without a path.

        Paths use 32 directions, so they are at most 1.4 % too long. A diagonal move must be possible in any order of
        its steps along the two axes.
        """
        sources, targets, costs = [], [], []
        slowness = np.append(self.slowness, np.inf)
        for length, target in self._strides():
            source = np.flatnonzero(target[:-1] >= 0)
            sources.append(source)
            targets.append(target[source])
            costs.append(length * (slowness[source] + slowness[target[source]]) / 2)
        entries = np.concatenate(costs), (np.concatenate(targets), np.concatenate(sources))  # from the goals backwards
        graph = coo_array(entries, shape=(self.count, self.count)).tocsr()
        return csgraph.dijkstra(graph, indices=goals, min_only=True)

    def _strides(self) -> list[tuple[float, np.ndarray]]:
        """Lengths in metres and targets (count + 1,) of moves in 32 directions."""
        strides = [(1.0, move) for move in self.moves]
        for east_or_west in (EAST, WEST):
            for north_or_south in (NORTH, SOUTH):
                sides = self.moves[east_or_west], self.moves[north_or_south]
                diagonal = _if_equal(sides[1][sides[0]], sides[0][sides[1]])
                strides.append((math.sqrt(2), diagonal))
                for side in sides:
                    knight = _if_equal(side[diagonal], diagonal[side])
                    strides.append((math.sqrt(5), knight))
                    strides.append((math.sqrt(10), _if_equal(side[knight], knight[side])))
                    strides.append((math.sqrt(13), _if_equal(diagonal[knight], knight[diagonal])))
        return strides


def _if_equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The place to which two orders of the same moves lead; -1 if they lead to different ones."""
    return np.where(one == other, one, -1)
