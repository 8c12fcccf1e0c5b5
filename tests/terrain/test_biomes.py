import math

import numpy as np
import pytest
from scipy import ndimage

from echelon_env.config.biomes import BIOMES, Plot, default_biomes
from echelon_env.config.catalog import AIR, FOLIAGE, LAVA, MATERIALS, WATER
from echelon_env.terrain.biomes.barrens import barrens
from echelon_env.terrain.biomes.forest import forest
from echelon_env.terrain.biomes.urban import urban

SOLID = [code for code, material in enumerate(MATERIALS) if material.blocks_movement]
HEADROOM = 5  # m, that everything that hangs leaves: the tallest mech walks under it, up steps too


def paint(brush, shape=(50, 50), height=20, max_height=15, open_ground=None, seed=0):
    voxels = np.zeros((height, *shape), np.uint8)
    open_ground = np.zeros(shape, np.bool_) if open_ground is None else open_ground
    brush(Plot(voxels=voxels, open_ground=open_ground, max_height=max_height), np.random.default_rng(seed))
    return voxels


def tops(voxels, headroom=math.inf):
    """Height of what stands on the ground; solids that hang leave `headroom` metres below them, by default none do."""
    solid = np.isin(voxels, SOLID)
    height = solid.argmin(axis=0)
    gap = np.zeros(height.shape, int)  # m of room above the last solid voxel
    for z, layer in enumerate(solid):
        hanging = layer & (z >= height)
        assert (gap[hanging & (gap > 0)] >= headroom).all()
        gap = np.where(layer, 0, gap + 1)
    return height


def lane(shape, seed):
    """A strip of 8 m across the plot, in a drawn direction."""
    y, x = np.indices(shape)
    slope, start = np.random.default_rng(seed).random(2)
    return np.abs(y - shape[0] * start - (slope - 0.5) * x) < 4


@pytest.mark.parametrize("biome", default_biomes())
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (4, 7), (33, 12), (50, 50), (61, 170)])
@pytest.mark.parametrize("max_height", [1, 2, 3, 5, 6, 7, 9, 15])
def test_any_plot_is_painted_with_the_declared_materials_and_room_under_what_hangs(biome, shape, max_height):
    for seed in range(2):
        for open_ground in (None, lane(shape, seed)):
            voxels = paint(BIOMES[biome].brush, shape, 20, max_height, open_ground, seed)
            assert not voxels[max_height:].any()
            tops(voxels, HEADROOM)
            assert {MATERIALS[code].name for code in np.unique(voxels)} <= {"air", *BIOMES[biome].shares}
            liquid = np.isin(voxels, (WATER, LAVA))
            assert not liquid[1:].any()
            above = voxels[1:HEADROOM, liquid[0]]
            assert np.isin(above, (AIR, FOLIAGE) if biome == "jungle" else AIR).all()
    assert (voxels == paint(BIOMES[biome].brush, shape, 20, max_height, open_ground, seed)).all()


@pytest.mark.parametrize("seed", range(5))
def test_ridges_are_climbed_in_steps_of_one_metre(seed):
    """Boulders, 2 to 4 m high, stand alone: apart from them, neighbouring columns differ by 1 m at most."""
    height = tops(paint(barrens, seed=seed))
    labels, _ = ndimage.label(height > 0)
    ridge = np.isin(labels, labels[height == 1])  # a ridge rises from its foot
    assert ridge.any()
    slope = np.where(ridge | (height == 0), height, 0)
    assert np.abs(np.diff(slope, axis=0)).max() <= 1
    assert np.abs(np.diff(slope, axis=1)).max() <= 1


@pytest.mark.parametrize("seed", range(5))
def test_city_has_streets_for_the_widest_mech(seed):
    """From the plot's first corner a window of 4 m x 4 m gets along every street, whatever walls stand beside it."""
    height = tops(paint(urban, seed=seed))
    crossings = np.lib.stride_tricks.sliding_window_view(height == 0, (4, 4)).all(axis=(2, 3))
    free_rows, free_columns = crossings.all(axis=1), crossings.all(axis=0)
    assert free_rows[:2].any()
    assert np.count_nonzero(np.diff(free_rows.astype(int)) == 1) >= 1
    assert np.count_nonzero(np.diff(free_columns.astype(int)) == 1) >= 1


def test_forest_hides_without_blocking():
    voxels = paint(forest)
    hidden = (voxels[1] == FOLIAGE).mean()
    blocked = (tops(voxels) > 0).mean()
    assert 0.2 < hidden < 0.6
    assert 0.02 < blocked < 0.1


def test_forest_grows_no_crowns_over_trunks_that_will_be_cleared():
    voxels = paint(forest, open_ground=np.ones((50, 50), np.bool_))
    assert not np.isin(voxels, SOLID).any()
    assert (voxels[3:] == AIR).all()
