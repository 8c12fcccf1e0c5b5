"""Mirrored maps: half a turn about the centre exchanges the teams and changes nothing else."""

import numpy as np
import pytest

from echelon_env.config.catalog import AIR, MATERIALS
from echelon_env.config.scenario import make_config
from echelon_env.terrain import generate
from support.playing import SIZES

SOLID = [code for code, material in enumerate(MATERIALS) if material.blocks_movement]
MIRRORED = {"mirrored": True}


def turned(grid):
    """The grid (..., Y, X) under half a turn."""
    return grid[..., ::-1, ::-1]


@pytest.mark.parametrize("scenario", SIZES)
@pytest.mark.parametrize("size", [100, 101])
def test_a_mirrored_map_is_its_own_image(scenario, size):
    config = make_config(scenario, terrain={"size": size, **MIRRORED})
    maps = [generate(config, seed) for seed in range(15)]
    for terrain in maps:
        assert np.array_equal(terrain.voxels, turned(terrain.voxels))
        assert (terrain.zone_x, terrain.zone_y) == (size / 2, size / 2)
        np.testing.assert_allclose(terrain.spawns[0] + terrain.spawns[1], size, rtol=0, atol=1e-12)
    assert len({terrain.content_hash for terrain in maps}) == len(maps)


def test_plots_end_where_the_image_begins():
    """Ridges slope down at their plot's edge: a plot cut by the axis of symmetry would leave cliffs there."""
    config = make_config("battle", terrain={"biomes": ("barrens",), **MIRRORED})
    for seed in range(20):
        top = np.isin(generate(config, seed).voxels, SOLID).sum(axis=0)
        middle = len(top) // 2
        for grid in (top, top.T):  # the image begins along x or along y
            before, after = grid[middle - 1], grid[middle]
            assert not ((np.abs(before - after) > 1) & (np.minimum(before, after) > 0)).any()


def test_mirroring_is_off_by_default_and_keeps_spawns_and_zone_radius():
    plain, mirrored = make_config("battle"), make_config("battle", terrain=MIRRORED)
    for seed in range(5):
        one, other = generate(plain, seed), generate(mirrored, seed)
        assert not np.array_equal(one.voxels, turned(one.voxels))
        assert np.array_equal(one.spawns, other.spawns)
        assert one.zone_radius == other.zone_radius
        assert (other.voxels != AIR).any()
