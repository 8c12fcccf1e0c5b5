"""Mirrored maps: half a turn about the middle exchanges the teams and changes nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env.config.battle import PACK, BattleConfig
from echelon_env.config.biomes import BIOMES
from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE, GLASS, MATERIALS
from echelon_env.config.map import TerrainConfig
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.terrain import generate
from echelon_env.terrain.connectivity import connected, obstacles
from support.playing import SIZES

SOLID = [code for code, material in enumerate(MATERIALS) if material.blocks_movement]
MIRRORED = {"mirrored": True}


def turned(grid):
    """The grid (..., Y, X) under half a turn."""
    return grid[..., ::-1, ::-1]


def assert_own_image(terrain, size):
    assert np.array_equal(terrain.voxels, turned(terrain.voxels))
    assert (terrain.zone_x, terrain.zone_y) == (size / 2, size / 2)
    np.testing.assert_allclose(terrain.spawns[0] + terrain.spawns[1], size, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scenario", SIZES)
@pytest.mark.parametrize("size", [100, 101])
def test_a_mirrored_map_is_its_own_image(scenario, size):
    config = make_config(scenario, terrain={"size": size, **MIRRORED})
    for seed in range(15):
        assert_own_image(generate(config, seed), size)


@given(data=st.data())
@settings(max_examples=40)
def test_whatever_is_permitted_is_mirrored(data):
    """Rosters may differ: places are those of the larger team. Generation ends in its check that all can walk."""
    roster = st.lists(st.sampled_from(PACK), min_size=1, max_size=24).map(tuple)
    try:
        config = BattleConfig(
            blue=data.draw(roster),
            red=data.draw(roster),
            terrain=TerrainConfig(
                size=data.draw(st.integers(24, 160)),
                height=data.draw(st.integers(8, 32)),
                biomes=tuple(data.draw(st.lists(st.sampled_from(sorted(BIOMES)), min_size=1, max_size=3))),
                centre_jitter=data.draw(st.floats(0, 0.3)),
                spawn_margin=data.draw(st.floats(0, 10)),
                flank_lane_width=data.draw(st.floats(4, 32)),
                ring_width=data.draw(st.floats(0, 32)),
                max_distance_difference=data.draw(st.floats(0.01, 1)),
                mirrored=True,
            ),
        )
    except ConfigError:
        return
    assert_own_image(generate(config, data.draw(st.integers(0, 2**64 - 1))), config.terrain.size)


def test_the_teams_walk_equally_far_on_equal_ground():
    """Both teams' open ground near the spawn areas is each other's image, and the widest mech gets to the zone."""
    config = make_config("battle", terrain=MIRRORED)
    for seed in range(10):
        terrain = generate(config, seed)
        middle = np.array([[terrain.zone_x, terrain.zone_y]])
        first, second = (np.abs(places - middle) for places in terrain.spawns)
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-12)
        assert connected(obstacles(terrain.voxels, 4.0), np.concatenate([middle, *terrain.spawns]), 3.5)


def test_mirrored_maps_keep_cover_and_variety():
    config = make_config("battle", terrain=MIRRORED)
    maps = [generate(config, seed).voxels for seed in range(20)]
    assert len({voxels.tobytes() for voxels in maps}) == len(maps)
    covered = [np.isin(voxels[:2], SOLID).any(axis=0).mean() for voxels in maps]
    assert np.mean(covered) > 0.06
    assert any((voxels == FOLIAGE).any() for voxels in maps)
    assert any((voxels == GLASS).any() for voxels in maps)


def test_plots_end_where_the_image_begins():
    """Ridges slope down to their plot's edge: a plot that the image cut in two would leave cliffs along the middle."""
    config = make_config("battle", terrain={"biomes": ("barrens",), **MIRRORED})
    for seed in range(20):
        top = np.isin(generate(config, seed).voxels, SOLID).sum(axis=0)
        middle = len(top) // 2
        for grid in (top, top.T):  # the image begins along x or along y
            before, after = grid[middle - 1], grid[middle]
            assert not ((np.abs(before - after) > 1) & (np.minimum(before, after) > 0)).any()


def test_the_ring_has_cover_on_both_sides():
    config = make_config("battle", terrain=MIRRORED)
    found = 0
    for seed in range(5):
        terrain = generate(config, seed)
        rows, columns = np.nonzero(terrain.voxels[0] == CONCRETE)
        distance = np.hypot(columns + 0.5 - terrain.zone_x, rows + 0.5 - terrain.zone_y)
        on_ring = distance < terrain.zone_radius + config.terrain.ring_width
        below, above = (rows < 50) & on_ring, (rows >= 50) & on_ring
        assert np.count_nonzero(below) == np.count_nonzero(above)
        found += np.count_nonzero(below)
    assert found > 20


def test_mirroring_is_off_by_default_and_changes_only_what_it_must():
    plain, mirrored = make_config("battle"), make_config("battle", terrain=MIRRORED)
    for seed in range(5):
        one, other = generate(plain, seed), generate(mirrored, seed)
        assert not np.array_equal(one.voxels, turned(one.voxels))
        assert np.array_equal(one.spawns, other.spawns)
        assert one.zone_radius == other.zone_radius
        assert (other.voxels != AIR).any()
