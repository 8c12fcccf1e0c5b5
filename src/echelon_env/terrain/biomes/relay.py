"""Relay station."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, REINFORCED
from echelon_env.terrain.biomes.plot import raise_columns

SQUARE = 16  # m, of ground for each dish
DISH_SHARE = 0.7  # of squares with room for a dish
SMALLEST_DISH, LARGEST_DISH = 4, 7  # m, radius
UNDERSIDE = 6  # m, least height of a dish's underside: a heavy on a parapet walks under it
FEED = 2  # m, that a dish's feed rises above its rim
HUT = 3  # m, height
HUT_DENSITY = 0.008  # per m2 apart from dishes
MAST_DENSITY = 0.005  # per m2 apart from dishes
TRENCH_SPACING = 25  # m
TRENCH = 3  # m, width between the parapets
PIECE = 8  # m, length of a piece of a parapet
PIECES_BUILT = 0.6  # share of the pieces


def relay(plot: Plot, rng: np.random.Generator) -> None:
    """Relay station: open ground under a roof of dishes; long sight lines below, perches for mechs with jump jets.

    The bowls hide and shield a mech that jets into them until it looks over the rim. On the ground pylons and huts are
    small cover; parapets of 1 m along the trenches hide scouts and shield legs from shells, and every mech steps over
    them.
    """
    shape = plot.shape
    roofed = np.zeros(shape, np.bool_)
    for y, x, radius, underside in _dishes(plot, rng):
        _raise_dish(plot, roofed, y, x, radius, underside)
    apart = ndimage.maximum_filter(roofed, 11) == 0
    huts = ndimage.maximum_filter(apart & (rng.random(shape) < HUT_DENSITY), (4, 5)) * HUT
    masts = np.where(apart & (rng.random(shape) < MAST_DENSITY), rng.integers(8, 14, shape), 0)
    tops = np.maximum(huts, _parapets(shape, rng))
    raise_columns(plot, np.maximum(tops, masts), np.where(masts > 0, REINFORCED, CONCRETE))


def _dishes(plot: Plot, rng: np.random.Generator) -> list[list[int]]:
    """Centres (y, x), radii and heights of the undersides of the dishes, in metres.

    Each stands in a separate square, clear of open ground: a lane through a dish would remove its pylon.
    """
    count_y, count_x = ((length + 6) // SQUARE for length in plot.shape)
    if count_y * count_x == 0:
        return []
    side_y, side_x = plot.shape[0] // count_y, plot.shape[1] // count_x
    free = ~plot.open_ground[: count_y * side_y, : count_x * side_x]
    free[::side_y] = free[:, ::side_x] = False  # borders between the squares
    room = ndimage.distance_transform_edt(np.pad(free, ((0, 1), (0, 1))))[:-1, :-1].astype(np.int64) - 1
    largest = rng.integers(SMALLEST_DISH, LARGEST_DISH + 1, (count_y, 1, count_x, 1))
    room = np.minimum(room.reshape(count_y, side_y, count_x, side_x), largest)
    order = (room + rng.random(room.shape)).swapaxes(1, 2).reshape(count_y * count_x, -1)
    y, x = np.divmod(order.argmax(axis=1), side_x)
    radius = order.max(axis=1).astype(np.int64)
    y += side_y * (np.arange(len(y)) // count_x)
    x += side_x * (np.arange(len(x)) % count_x)
    underside = rng.integers(UNDERSIDE, UNDERSIDE + 3, len(y))
    built = (radius >= SMALLEST_DISH) & (rng.random(len(y)) < DISH_SHARE)
    built &= underside + radius // 2 + FEED < plot.max_height
    dishes: list[list[int]] = np.stack((y, x, radius, underside), axis=1)[built].tolist()
    return dishes


def _raise_dish(plot: Plot, roofed: NDArray[np.bool_], y: int, x: int, radius: int, underside: int) -> None:
    """Build a bowl, half as deep as its radius, with a feed on a pylon of 3 m; mark what is under it in `roofed`."""
    window = slice(y - radius, y + radius + 1), slice(x - radius, x + radius + 1)
    reach = np.arange(-radius, radius + 1) ** 2
    squared = np.add.outer(reach, reach)
    disc = squared <= radius * (radius + 1)
    roofed[window] |= disc
    depth = radius // 2
    rise = np.minimum(squared * depth // (radius * radius), depth)
    for step in range(depth + 1):
        plot.voxels[(underside + step, *window)][disc & (rise == step)] = REINFORCED
    plot.voxels[:underside, y - 1 : y + 2, x - 1 : x + 2] = CONCRETE
    plot.voxels[underside : underside + depth + FEED, y, x] = REINFORCED


def _parapets(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Heights (H, W) of the parapets of straight trenches, which cross each other and have gaps."""
    from_y, from_x = (_from_trench(length, rng) for length in shape)
    pieces = rng.random([length // PIECE + 1 for length in shape]) < PIECES_BUILT
    built = np.repeat(np.repeat(pieces, PIECE, axis=0), PIECE, axis=1)[: shape[0], : shape[1]]
    across, along = from_y[:, None] == TRENCH // 2 + 1, from_x == TRENCH // 2 + 1
    parapets = (across & (from_x > TRENCH // 2)) | (along & (from_y > TRENCH // 2)[:, None])
    heights: NDArray[np.int64] = (parapets & built).astype(np.int64)
    return heights


def _from_trench(length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Metres (length,) from the middle of the nearest trench across an axis."""
    middles = TRENCH_SPACING * np.arange(length // TRENCH_SPACING + 1) + rng.integers(0, TRENCH_SPACING)
    distance: NDArray[np.int64] = np.abs(np.arange(length)[:, None] - middles).min(axis=1)
    return distance


RELAY = Biome(name="relay", order=7, brush=relay, shares={"concrete": (0.04, 0.16), "reinforced": (0.03, 0.33)})
