"""Refineries."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from echelon_env.config.biomes import Biome, Plot
from echelon_env.config.catalog import CONCRETE, LAVA, REINFORCED
from echelon_env.terrain.biomes.cells import Cells, split
from echelon_env.terrain.biomes.plot import raise_columns

UNIT = 15  # m, least distance from one unit's middle to the next one's
PAD = 11  # m, edge length of the ground that a unit stands on, less where aisles of 6 m would not remain
TANK, FARM, SLAG, STACKS = range(4)
UNIT_KINDS = (TANK, TANK, TANK, FARM, FARM, SLAG, SLAG, STACKS)  # drawn from with equal weight
TANK_TOPS = (6, 15)  # m, the least height and the first that is too great
STACK_TOP = 15  # m
BESIDE_PAD = 2  # m, from a unit's edge to the pipes beside its pad
RACK = 6  # m, underside of high pipes
DRUM_TOP = 2  # m, too high to step on: drums may enclose a space without a way out
GATE = 6  # m, width of the ways into slag basins and through low pipes, or 1 m less


def refinery(plot: Plot, rng: np.random.Generator) -> None:
    """Refineries: no two classes have the same lines of sight, and behind some walls there is molten slag.

    Round tanks block every long view. Low pipes hide all but the heavy, which fires over them. Small mechs slip between
    the tanks of a farm. High pipes stop missiles that climb or dive. Walled basins look like cover, but a mech that
    stays in the middle burns.
    """
    rows, columns = (split(length, UNIT) for length in plot.shape)
    units = (rows.count, columns.count)
    pick = np.ix_(rows.index, columns.index)
    y, x = rows.middle[:, None], columns.middle
    edge = np.minimum(rows.edge[:, None], columns.edge)
    pad = (np.maximum(y, x) < PAD) & (edge > BESIDE_PAD)
    unit = rng.choice(UNIT_KINDS, units)[pick]
    kind = np.where(pad, unit, -1)

    diameter = rng.integers(8, PAD + 1, units)[pick]
    top = rng.integers(*TANK_TOPS, units)[pick]
    tank = (kind == TANK) & (y * y + x * x < diameter * diameter)
    farm = (kind == FARM) & ((y - 6) ** 2 + (x - 6) ** 2 < 16)  # four tanks of 4 m, 2 m between them
    stack = (kind == STACKS) & (y < 3) & (np.abs(x - 6) < 3)
    steel = np.where(tank, top, np.where(farm, top // 2, np.where(stack, STACK_TOP, 0)))
    raise_columns(plot, steel, REINFORCED)

    basin = (kind == SLAG) & (np.maximum(y, x) < PAD - 2) & (edge > BESIDE_PAD + 1)
    basin_wall = (kind == SLAG) & ~basin & (np.minimum(y, x) >= GATE)
    pump_house = (kind == STACKS) & (np.abs(y - 8) < 3) & (x < 6)
    drum = (kind != SLAG) & pad & (rng.random(plot.shape) < 0.08)
    gap = (rng.random(units) < 0.4)[pick] & (x < GATE)
    pipe = (
        ((rng.random(units) < 0.6)[pick] & (unit != SLAG))
        & (rows.offset[:, None] == BESIDE_PAD)
        & pad.any(axis=0)
        & ~gap
    )
    concrete = np.select((pump_house, basin_wall | pipe, drum), (3, 2, DRUM_TOP), 0)
    raise_columns(plot, np.where(steel > 0, 0, concrete), CONCRETE)
    breached = np.zeros(units, np.bool_)
    lost_y, lost_x = np.nonzero(basin & plot.open_ground)
    breached[rows.index[lost_y], columns.index[lost_x]] = True  # no slag beside the lanes
    plot.voxels[0][basin & (y * y + x * x < 25) & ~breached[pick]] = LAVA
    _high_pipes(plot, rows, columns, rng)


def _high_pipes(plot: Plot, rows: Cells, columns: Cells, rng: np.random.Generator) -> None:
    """Overhead pipes beside some of the aisles along y, three side by side, on posts at the corners of the pads."""
    racked = (rng.random(columns.count) < 0.7)[columns.index]
    at_post = rows.edge == BESIDE_PAD + 1
    posts = at_post[:, None] & racked & (columns.offset == BESIDE_PAD)
    raise_columns(plot, np.where(posts, RACK, 0), CONCRETE)
    fallen = ndimage.maximum_filter1d(posts & plot.open_ground, 2 * UNIT + 1, axis=0)  # to the next posts
    fallen = ndimage.maximum_filter1d(fallen, 2 * BESIDE_PAD + 1, axis=1)
    layers = plot.voxels[: plot.max_height]
    for pipe, z in enumerate((RACK, RACK + 1, RACK)):
        for layer in layers[z : z + 1]:  # none where the map is too low
            layer[~fallen & racked & (columns.offset == pipe)] = REINFORCED
            layer[~fallen & racked & at_post[:, None] & (columns.offset == 1)] = CONCRETE


REFINERY = Biome(
    name="refinery",
    order=4,
    brush=refinery,
    shares={"concrete": (0.0, 0.07), "reinforced": (0.04, 0.25), "lava": (0.0, 0.025)},
)
