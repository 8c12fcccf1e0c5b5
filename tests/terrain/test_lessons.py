"""What docs/reference/scenarios.md says of single biomes; `test_biomes` has the properties of all of them."""

import math

import numpy as np
import pytest
from scipy import ndimage

from echelon_env.config.catalog import AIR, LAVA, MATERIALS
from support.plots import SOLID, lane, paint, surface, walks, worst

OPAQUE = np.array([material.blocks_sight for material in MATERIALS])
EYE = 1  # voxel layer at the height of the middle of a light or medium mech
SCOUT, MEDIUM, HEAVY = 2, 3, 4  # columns that a mech's footprint covers along each axis
SHAPES = [(50, 50), (37, 63), (101, 44)]


def plots(biome, shapes=SHAPES, seeds=range(4)):
    return [paint(biome, shape, seed) for shape in shapes for seed in seeds]


SIGHT = {"glass": (15, math.inf), "relay": (10, math.inf), "jungle": (0, 4), "tunnels": (0, 16)}
"""Bounds in metres of the mean length of lines along an axis, from a random place to what blocks the sight."""


@pytest.mark.parametrize("biome", SIGHT)
def test_the_sight_is_long_or_short(biome):
    for voxels in plots(biome):
        blocked = OPAQUE[voxels[EYE]]
        runs = [np.diff(np.flatnonzero(np.pad(line, 1, constant_values=True))) - 1 for line in (*blocked, *blocked.T)]
        length = np.concatenate(runs)
        low, high = SIGHT[biome]
        assert low < (length * length).sum() / length.sum() / 2 < high


HIGH = {"barrens": 2, "canal": 1, "mine": 4, "plaza": 3, "spires": 3, "urban": 1, "volcano": 4}
"""m, of the high ground that every mech reaches on foot."""


@pytest.mark.parametrize("biome", HIGH)
def test_high_ground_is_climbed(biome):
    for voxels in plots(biome):
        heights = surface(voxels)
        assert worst(heights, HEAVY)[walks(heights, HEAVY)[0]].max() >= HIGH[biome]


@pytest.mark.parametrize("biome", ["tunnels", "volcano"])
def test_heavies_go_nearly_everywhere_without_a_step_into_lava(biome):
    for voxels in plots(biome):
        heights, lava = surface(voxels), worst(voxels[0] == LAVA, HEAVY)
        everywhere, _ = walks(heights, HEAVY)
        dry, _ = walks(heights, HEAVY, ~lava)
        assert 0.02 < (voxels[0] == LAVA).mean() < 0.25
        assert dry[everywhere & ~lava].mean() > 0.9


@pytest.mark.parametrize("biome", ["bunkers", "refinery"])
def test_small_mechs_slip_through_where_mediums_do_not(biome):
    """Through dragon's teeth, and between the tanks of a farm."""
    slips = 0
    for voxels in plots(biome):
        passed = []
        for width in (SCOUT, MEDIUM):
            places = np.pad(walks(surface(voxels), width)[0], width - 1)
            passed.append(np.lib.stride_tricks.sliding_window_view(places, (width, width)).any(axis=(2, 3)))
        slips += np.count_nonzero(passed[0] & ~passed[1])
    assert slips > 12 * 20


@pytest.mark.parametrize("biome", ["glass", "greenhouse", "plaza", "refinery", "relay", "spires"])
def test_nothing_floats_beside_lanes(biome):
    """The parts of a plot beside a lane still stand on the ground."""
    for seed in range(12):
        open_ground = lane((60, 50), seed)
        voxels = paint(biome, (60, 50), seed, open_ground=open_ground)
        voxels[:, open_ground] = AIR
        label, _ = ndimage.label(SOLID[voxels], np.ones((3, 3, 3)))
        assert set(np.unique(label)) == set(np.unique(label[0])) | {0}
