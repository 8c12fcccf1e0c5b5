"""Plots painted by a biome."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echelon_env.config.biomes import BIOMES, Plot
from echelon_env.config.catalog import MATERIALS

SOLID = np.array([material.blocks_movement for material in MATERIALS])


def paint(
    biome: str,
    shape: tuple[int, int] = (50, 50),
    seed: int = 0,
    max_height: int = 15,
    open_ground: NDArray[np.bool_] | None = None,
) -> NDArray[np.uint8]:
    """Voxels (20, *shape) of a biome's brush; without `open_ground` no lane crosses the plot."""
    voxels = np.zeros((20, *shape), np.uint8)
    open_ground = np.zeros(shape, np.bool_) if open_ground is None else open_ground
    plot = Plot(voxels=voxels, open_ground=open_ground, max_height=max_height)
    BIOMES[biome].brush(plot, np.random.default_rng(seed))
    return voxels


def lane(shape: tuple[int, int], seed: int) -> NDArray[np.bool_]:
    """A strip of 8 m across the plot, in a random direction."""
    y, x = np.indices(shape)
    slope, start = np.random.default_rng(seed).random(2)
    crossed: NDArray[np.bool_] = np.abs(y - shape[0] * start - (slope - 0.5) * x) < 4
    return crossed


def surface(voxels: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Height (H, W) of the solid columns on the ground, without overhanging voxels."""
    heights: NDArray[np.intp] = SOLID[voxels].argmin(axis=0)
    return heights


def worst(columns: NDArray[Any], width: int) -> NDArray[Any]:
    """Maximum value (H', W') under a mech of `width` columns, by the position of its first column."""
    largest: NDArray[Any] = np.lib.stride_tricks.sliding_window_view(columns, (width, width)).max(axis=(2, 3))
    return largest


def walks(
    heights: NDArray[np.intp], width: int, allowed: bool | NDArray[np.bool_] = True
) -> tuple[NDArray[np.bool_], int]:
    """The largest strongly connected part of the plot for a mech of `width` columns, and the number of traps.

    The mech steps up 1 m and drops any height. Returns a mask (H', W') of the part, and the number of positions that it
    can walk into without a way back.
    """
    feet = worst(heights, width)
    allowed = np.broadcast_to(allowed, feet.shape)
    index = np.arange(feet.size).reshape(feet.shape)
    steps = []
    for grid in (np.s_[:-1, :], np.s_[1:, :]), (np.s_[:, :-1], np.s_[:, 1:]):
        for start, end in (grid, grid[::-1]):
            step = (feet[end] <= feet[start] + 1) & allowed[start] & allowed[end]
            steps.append((index[start][step], index[end][step]))
    start, end = np.concatenate(steps, axis=1)
    graph = sparse.coo_array((np.ones(len(start)), (start, end)), shape=(feet.size, feet.size))
    _, label = sparse.csgraph.connected_components(graph, connection="strong")
    main = label == np.bincount(label[allowed.ravel()]).argmax()
    return main.reshape(feet.shape), len(np.unique(end[main[start] & ~main[end]]))
