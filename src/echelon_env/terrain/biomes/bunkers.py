"""Fortified lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, GLASS, REINFORCED
from echelon_env.terrain.biomes.plot import raise_columns

DEPTH = 25  # m, about the distance from a line to the next
SPACING = 22  # m, about the distance between the bunkers of a line
SWING = 1  # m, that a line swings back at most: trenches stay wide enough for a heavy
# Where a line's parts lie, in metres behind its front parapet, which is 1 m before the line's middle:
TEETH = (-12, -9)  # two staggered rows, 2 m between two blocks
BUNKER = -4  # the front, 2 m thick, 4 m behind the teeth; the sides reach back to the parapet
FIRE_STEP = 1
REAR_PARAPET = 7  # after 5 m of trench
BAGS = 12  # the open ends of the arcs of sandbags
PILLBOX = (9, 10, 11)
PARAPET_HEIGHT = 2  # m, too high to step on from the ground; the teeth are as high
FLANK = 5  # m at the plot's edges where a line leaves the way free
GATE = 2  # m on either side of a gate's middle
OPENING = 4  # m on either side of a bunker's middle that the teeth leave open


def bunkers(plot: Plot, rng: np.random.Generator) -> None:
    """Fortified lines, too hard to breach: a frontal attack walks into the slits; the answer is to go around.

    Belts of dragon's teeth let scouts and lights slip through; their openings for wide mechs lie before the bunkers,
    which are open to the trench at their back and to missiles from above. Parapets can be crossed from inside, where a
    fire step leads up; from outside, gates lead in between the bunkers and out behind them. Trenches are open at the
    ends, where they can be raked.
    """
    if rng.random() < 0.5:
        plot = Plot(plot.voxels.swapaxes(1, 2), plot.open_ground.T, plot.max_height)
    if plot.shape[1] <= 2 * FLANK:
        return
    plot = Plot(plot.voxels[:, :, FLANK:-FLANK], plot.open_ground[:, FLANK:-FLANK], plot.max_height)
    height, width = plot.shape
    lines, cells = max(1, (height + 5) // DEPTH), max(1, (width + SPACING // 2) // SPACING)
    column = np.arange(width)
    line, cell = np.arange(height) * lines // height, column * cells // width
    middles = (np.arange(cells) * 2 + 1) * width // (2 * cells) + rng.integers(-1, 2, (lines, cells))
    along = (column - middles[:, cell])[line]  # m from the bunker's middle
    straight = rng.choice((-1, 1)) * (np.arange(height) - (line * 2 + 1) * height // (2 * lines))
    before = straight[:, None] + 1  # m from the front parapet where it does not swing back
    behind = before - _swings(middles, width, rng)[line]  # m from the front parapet
    gates = np.arange(1, cells) * width // cells
    between = np.abs(np.subtract.outer(column, gates)).min(axis=1, initial=width)  # m from a gate's middle

    aside, pick = np.abs(along), np.ix_(line, cell)
    half, walls = rng.integers((4, 3), (6, 5), (lines, cells, 2))[pick].transpose(2, 0, 1)  # m, of bunkers
    glazed = (rng.random((lines, cells)) < 0.5)[pick]
    front = (behind >= BUNKER) & (behind <= BUNKER + 1) & (aside <= half)
    side = (behind > BUNKER) & (behind <= 0) & (aside <= half) & (aside >= half - 1)
    slit = (front & (aside < half - 1) & ((aside + half) % 2 == 0)) | (side & (behind == -1))
    parapet = ((behind == 0) & (aside > half) & (between > GATE)) | ((behind == REAR_PARAPET) & (aside > GATE))
    step = (behind == FIRE_STEP) & (aside > half) & (between > GATE)
    teeth = np.isin(before, TEETH) & ((column + (before == TEETH[1])) % 3 == 0) & (aside > OPENING)
    pillbox = np.isin(behind, PILLBOX) & (np.minimum(between, np.minimum(column, column[::-1])) <= 2)
    arc = (aside - 6) ** 2 + (behind - BAGS) ** 2
    manned = (rng.random((2, lines, cells)) < 0.7)[(along > 0).astype(np.int64), line[:, None], cell]
    bags = (arc >= 4) & (arc <= 10) & (behind <= BAGS) & manned & ~pillbox

    tops = np.where(parapet | teeth, PARAPET_HEIGHT, (step | bags).astype(np.int64))
    tops = np.where(pillbox | front | side, np.where(slit & ~glazed, 1, walls), tops)
    raise_columns(plot, tops, np.where(bags, CONCRETE, REINFORCED))
    plot.voxels[1 : min(3, plot.max_height), slit & glazed] = GLASS


def _swings(middles: NDArray[np.int64], width: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Metres (lines, W) that lines lie back, the same all along a bunker."""
    swings = np.repeat(rng.integers(0, SWING + 1, middles.shape), 2, axis=1)
    knots = np.repeat(middles, 2, axis=1) + np.tile((-8, 8), middles.shape[1])
    columns = np.arange(width)
    return np.array([np.interp(columns, *line) for line in zip(knots, swings, strict=True)]).astype(np.int64)


BUNKERS = Biome(
    name="bunkers",
    order=8,
    brush=bunkers,
    shares={"concrete": (0.0, 0.035), "reinforced": (0.04, 0.12), "glass": (0.0, 0.015)},
)
