"""Mirrored maps: half a turn about the centre exchanges the teams and changes nothing else."""

import numpy as np
import pytest

from echelon_env.config.scenario import make_config
from echelon_env.terrain import generate
from support.playing import SIZES

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
