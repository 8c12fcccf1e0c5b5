import math

import numpy as np
import pytest

from echelon_env.config.biomes import BIOMES, default_biomes
from echelon_env.config.catalog import AIR, FOLIAGE, LAVA, MATERIALS, WATER
from support.plots import SOLID, lane, paint, surface, walks

MEDIUM, HEAVY = 3, 4  # columns that a mech's footprint covers along each axis
HEADROOM = 5  # m, that everything that hangs leaves: the tallest mech walks under it, up steps too


def tops(voxels, headroom=math.inf):
    """Height of what stands on the ground. Overhangs leave `headroom` metres below them; by default there are none."""
    solid = SOLID[voxels]
    height = solid.argmin(axis=0)
    gap = np.zeros(height.shape, int)  # m of room above the last solid voxel
    for z, layer in enumerate(solid):
        hanging = layer & (z >= height)
        assert (gap[hanging & (gap > 0)] >= headroom).all()
        gap = np.where(layer, 0, gap + 1)
    return height


@pytest.mark.parametrize("biome", default_biomes())
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (33, 12), (61, 170)])
@pytest.mark.parametrize("max_height", [1, 3, 6, 15])
def test_any_plot_is_painted_with_the_declared_materials_and_room_under_what_hangs(biome, shape, max_height):
    for seed in range(2):
        for open_ground in (None, lane(shape, seed)):
            voxels = paint(biome, shape, seed, max_height, open_ground)
            assert not voxels[max_height:].any()
            tops(voxels, HEADROOM)
            assert {MATERIALS[code].name for code in np.unique(voxels)} <= {"air", *BIOMES[biome].shares}
            liquid = np.isin(voxels, (WATER, LAVA))
            assert not liquid[1:].any()
            above = voxels[1:HEADROOM, liquid[0]]
            assert np.isin(above, (AIR, FOLIAGE) if biome == "jungle" else AIR).all()
    assert (voxels == paint(biome, shape, seed, max_height, open_ground)).all()


@pytest.mark.parametrize("biome", default_biomes())
@pytest.mark.parametrize(("shape", "seed"), [(s, seed) for s in [(50, 50), (37, 63), (100, 44)] for seed in range(2)])
def test_heavies_can_cross_the_plot_and_leave_every_place_that_they_reach(biome, shape, seed):
    """Over half of the ground is one connected piece that reaches all four edges; a dense forest is an exception."""
    heights = surface(paint(biome, shape, seed))
    assert walks(heights, MEDIUM)[1] == 0
    places, traps = walks(heights, HEAVY)
    assert traps == 0
    ground = np.pad(places, ((HEAVY - 1,) * 2,) * 2)
    ground = np.lib.stride_tricks.sliding_window_view(ground, (HEAVY, HEAVY)).any(axis=(2, 3))
    if biome != "forest":
        assert ground.mean() > 0.5
        assert ground[0].any() and ground[-1].any() and ground[:, 0].any() and ground[:, -1].any()


@pytest.mark.parametrize("biome", default_biomes())
def test_a_larger_plot_holds_more_features_not_larger_ones(biome):
    small, large, long = (
        np.mean([(paint(biome, shape, seed) != AIR).any(axis=0).mean() for seed in range(20)])
        for shape in ((50, 50), (100, 100), (200, 50))
    )
    assert large == pytest.approx(small, rel=0.25)
    assert long == pytest.approx(small, rel=0.25)
