"""Plazas, refineries, spires and canals: the properties that players rely on."""

from collections import deque

import numpy as np
import pytest
from scipy import ndimage

from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE, GLASS, LAVA, MATERIALS, REINFORCED, WATER
from echelon_env.terrain.biomes.cells import split
from support.plots import paint

SOLID = [code for code, material in enumerate(MATERIALS) if material.blocks_movement]
OPAQUE = [code for code, material in enumerate(MATERIALS) if material.blocks_sight]
HEADROOM = 5  # m, under whatever hangs in the air
SHAPES = [(50, 50), (38, 62), (44, 56)]


def windows(mask, size):
    """Whether anything is set in the size x size columns from each column on."""
    return np.lib.stride_tricks.sliding_window_view(mask, (size, size), axis=(-2, -1)).any(axis=(-2, -1))


def walk(voxels, width, height):
    """Places that a mech of `width` x `width` columns reaches from the widest free stretch of ground.

    A place is (y, x, z): the footprint's first column and the height of the feet. The mech steps up 1 m and falls.
    """
    solid = windows(np.isin(voxels, SOLID), width)  # (Z, H, W) of footprints
    free = np.array([~solid[z : z + height].any(axis=0) for z in range(len(solid) - height)])
    stretches = ndimage.label(free[0])[0]
    start = (*np.argwhere(stretches == np.bincount(stretches[free[0]]).argmax())[0].tolist(), 0)
    reached, queue = {start}, deque([start])
    while queue:
        y, x, z = queue.popleft()
        for y2, x2 in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if not (0 <= y2 < free.shape[1] and 0 <= x2 < free.shape[2]):
                continue
            if free[z, y2, x2]:
                feet = z
                while feet > 0 and not solid[feet - 1, y2, x2]:
                    feet -= 1
            elif z + 1 < len(free) and free[z + 1, y2, x2] and free[z + 1, y, x]:
                feet = z + 1
            else:
                continue
            there = (y2, x2, feet)
            if there not in reached:
                reached.add(there)
                queue.append(there)
    return reached


def footprints(places, shape, width):
    """Columns (H, W) that a mech covers at some of the places, the feet's height there at most, -1 elsewhere."""
    reached = np.full(shape, -1)
    for y, x, z in places:
        covered = reached[y : y + width, x : x + width]
        np.maximum(covered, z, out=covered)
    return reached


def galleries_at_first_and_last_rows(voxels):
    """The plaza, rotated so that its arcades run along x, where the heavy fits between their pillars."""
    for turned in (voxels, voxels.swapaxes(1, 2)):
        roofed = (turned[HEADROOM:] != AIR).any(axis=0) & (turned[:HEADROOM] == AIR).all(axis=0)
        if roofed[4:9, 3:47].all() and roofed[41:46, 3:47].all():
            return turned
    pytest.fail("no covered way along two opposite sides")


@pytest.mark.parametrize("seed", range(8))
def test_plazas_are_open_between_their_arcades(seed):
    """Between the stands one looks from the plaza's ends to its middle, and beside the middle from arcade to arcade."""
    voxels = galleries_at_first_and_last_rows(paint("plaza", seed=seed))
    opaque = np.isin(voxels[:4], OPAQUE).any(axis=0)
    assert not opaque[22:28, :16].any()
    assert not opaque[22:28, -16:].any()
    assert not opaque[11:16, 8:42].any()


def test_no_roof_hangs_beside_a_lane_without_pillars():
    open_ground = np.zeros((50, 50), np.bool_)
    open_ground[:, 20:28] = open_ground[20:28] = True
    for seed in range(8):
        voxels = paint("plaza", seed=seed, open_ground=open_ground)
        voxels[:, open_ground] = AIR
        pillars = (voxels[:HEADROOM] == REINFORCED).all(axis=0)
        hanging = (voxels[HEADROOM:] != AIR).any(axis=0) & ~pillars & (voxels[0] == AIR)
        assert hanging.any()
        near = ndimage.maximum_filter(pillars, 11)  # 5 m, from pillar to pillar
        assert near[hanging].all()


@pytest.mark.parametrize("seed", range(8))
def test_mechs_can_climb_stands_and_monuments(seed):
    voxels = paint("plaza", seed=seed)
    steps = (voxels[2] == CONCRETE) & (voxels[3] == AIR)
    reached = footprints(walk(voxels, 4, 4), (50, 50), 4)
    assert (reached[steps] == 3).all()


def test_refineries_hold_slag_behind_walls_with_a_way_to_it_from_every_side():
    pools = 0
    for seed in range(8):
        voxels = paint("refinery", seed=seed)
        reached = footprints(walk(voxels, 4, 4), (50, 50), 4)
        labels, _ = ndimage.label(voxels[0] == LAVA)
        for rows, columns in ndimage.find_objects(labels):
            pools += 1
            assert max(rows.stop - rows.start, columns.stop - columns.start) <= 5
            assert (reached[rows, columns] == 0).all()
            basin = np.isin(voxels[:3, rows.start - 4 : rows.stop + 4, columns.start - 4 : columns.stop + 4], SOLID)
            corners = [
                basin[1, y][:, x].any() for y in (slice(4), slice(-4, None)) for x in (slice(4), slice(-4, None))
            ]
            assert all(corners)
    assert pools > 8


def test_no_slag_lies_beside_a_lane_that_cuts_its_basin():
    open_ground = np.zeros((50, 50), np.bool_)
    open_ground[:, 20:28] = open_ground[20:28] = True
    pools = 0
    for seed in range(16):
        voxels = paint("refinery", seed=seed, open_ground=open_ground)
        pools += np.count_nonzero(voxels[0] == LAVA)
        assert not (ndimage.maximum_filter(open_ground, 3) & (voxels[0] == LAVA)).any()
    assert pools > 0


def test_refineries_have_gaps_that_only_small_mechs_slip_through():
    slips = 0
    for seed in range(6):
        voxels = paint("refinery", seed=seed)
        ground = {}
        for width in (2, 3):
            ground[width] = footprints(walk(voxels, width, 2), (50, 50), width) == 0
        slips += np.count_nonzero(ground[2] & ~ground[3])
    assert slips > 6 * 50


def test_refineries_break_sight_at_two_heights():
    """Low pipes and basins' walls, 2 m, block a medium's view but not a heavy's; tanks block both."""
    low = high = 0
    for seed in range(8):
        voxels = paint("refinery", seed=seed)
        medium, heavy = (np.isin(voxels[z], OPAQUE) for z in (1, 2))
        low += np.count_nonzero(medium & ~heavy)
        high += np.count_nonzero(heavy)
    assert low > 8 * 50
    assert high > 8 * 250


def test_high_pipes_stand_on_posts_and_end_where_a_post_is_lost():
    open_ground = np.zeros((50, 50), np.bool_)
    open_ground[20:28] = True
    overhead = 0
    for seed in range(8):
        voxels = paint("refinery", seed=seed, open_ground=open_ground)
        voxels[:, open_ground] = AIR
        near_aisle = split(50, 15).offset < 3
        pipes = (voxels[6:8] != AIR).any(axis=0) & near_aisle
        posts = (voxels[:6] != AIR).all(axis=0) & near_aisle
        overhead += np.count_nonzero(pipes & ~posts)
        labels, count = ndimage.label(pipes, np.ones((3, 3)))
        assert set(labels[posts & pipes]) == set(range(1, count + 1))
    assert overhead > 8 * 50


@pytest.mark.parametrize("shape", SHAPES)
def test_every_spire_has_terraces_that_the_heavy_climbs(shape):
    for seed in range(4):
        voxels = paint("spires", shape, seed)
        reached = footprints(walk(voxels, 4, 4), shape, 4)
        spires, count = ndimage.label(voxels[11] == REINFORCED)
        assert count == np.prod([length // 21 for length in shape])
        for spire in range(1, count + 1):
            sides, _ = ndimage.label((reached == 3) & (ndimage.maximum_filter(spires == spire, 9)))
            assert sides.max() == 2


@pytest.mark.parametrize("shape", SHAPES)
def test_every_lobby_is_a_hall_between_two_panes_that_the_heavy_walks_through(shape):
    for seed in range(4):
        voxels = paint("spires", shape, seed)
        reached = footprints(walk(voxels, 4, 4), shape, 4)
        hall = (voxels[:HEADROOM] == AIR).all(axis=0) & np.isin(voxels[HEADROOM], SOLID)
        count = ndimage.label(hall)[1]
        assert count == np.prod([length // 21 for length in shape])
        assert (reached[hall] == 0).mean() > 0.9
        panes = (voxels[0] == GLASS) & (voxels[HEADROOM - 1] == GLASS)
        assert ndimage.label(panes)[1] == 4 * count  # two beside each door


@pytest.mark.parametrize("shape", SHAPES)
def test_avenues_lie_between_the_spires_with_hedges_that_hide_and_stop_no_mech(shape):
    rows, columns = (split(length, 21) for length in shape)
    avenue = np.minimum.outer(rows.edge, columns.edge) < 3
    for seed in range(4):
        voxels = paint("spires", shape, seed)
        assert not np.isin(voxels[:, avenue], SOLID).any()
        hedge = (voxels == FOLIAGE).any(axis=0)
        assert not (hedge & ~avenue).any()
        assert (voxels[:3, hedge] == FOLIAGE).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_heavy_wades_along_all_channels(shape):
    """Channels at the plot's sides are half as wide: their other half is in the next plot."""
    for seed in range(4):
        voxels = paint("canal", shape, seed)
        reached = footprints([place for place in walk(voxels, 4, 4) if place[2] == 0], shape, 4)
        inner = (slice(3, -3), slice(3, -3))
        assert (reached[inner][voxels[0][inner] == WATER] == 0).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_heavy_can_climb_every_quay(shape):
    for seed in range(4):
        voxels = paint("canal", shape, seed)
        reached = footprints(walk(voxels, 4, 4), shape, 4)
        rows, columns = (split(length, 20) for length in shape)
        middle = [(rows.offset == rows.edge) & (rows.edge == 4), (columns.offset == columns.edge) & (columns.edge == 4)]
        tops = np.isin(voxels[:2], SOLID).sum(axis=0)[np.ix_(*middle)]
        assert (reached[np.ix_(*middle)] == tops).all()


def longest_views(opaque):
    """For every column, the lengths in m of the straight views through it along y and along x, (2, H, W)."""
    views = []
    for along in (((0, 1, 0),) * 3, ((0, 0, 0), (1, 1, 1), (0, 0, 0))):
        labels, _ = ndimage.label(~opaque, along)
        views.append(np.where(opaque, 0, np.bincount(labels.ravel())[labels]))
    return np.array(views)


def test_a_wading_mech_sees_and_is_seen_along_the_channel_only():
    """At the centre of a medium in the water, 1.5 m high; one quay in four is only 1 m high."""
    shares = []
    for seed in range(12):
        voxels = paint("canal", seed=seed)
        views = longest_views(np.isin(voxels[1], OPAQUE))[:, voxels[0] == WATER]
        assert (views.max(axis=0) == 50).mean() > 0.9
        shares.append((views.min(axis=0) <= 6).mean())
    assert np.mean(shares) > 0.4
