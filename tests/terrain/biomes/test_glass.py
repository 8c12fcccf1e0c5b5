"""Glass desert, jungle, greenhouses, server racks and relay station: the properties that players rely on."""

import numpy as np
import pytest
from scipy import ndimage

from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE, GLASS, MATERIALS, REINFORCED, WATER
from support.plots import SOLID, lane, paint

OPAQUE = np.array([material.blocks_sight for material in MATERIALS])
EYE = 1  # voxel layer at the height of the middle of a light or medium mech
HEAVY = 4  # columns that a heavy's footprint covers along each axis
HEADROOM = 5  # m under everything that hangs
SHAPES = [(50, 50), (38, 62), (101, 45)]

several_plots = pytest.mark.parametrize(("shape", "seed"), [(shape, seed) for shape in SHAPES for seed in range(8)])


def sight(voxels):
    """Mean length in metres of lines along an axis at eye level before something opaque stops them."""
    opaque = OPAQUE[voxels[EYE]]
    runs = [np.diff(np.flatnonzero(np.pad(line, 1, constant_values=True))) - 1 for line in (*opaque, *opaque.T)]
    length = np.concatenate(runs)
    return (length * length).sum() / length.sum() / 2


def hanging(voxels):
    """Per column with an overhang: the height of its underside and of what stands below."""
    solid = SOLID[voxels]
    under = solid.argmin(axis=0)
    above = solid & (np.arange(len(voxels))[:, None, None] > under)
    over = above.any(axis=0)
    return above.argmax(axis=0)[over], under[over]


@pytest.mark.parametrize("biome", ["glass", "greenhouse", "relay"])
@pytest.mark.parametrize("seed", range(12))
def test_nothing_floats_beside_lanes(biome, seed):
    """The parts of a plot beside a lane still stand on the ground, with room below overhangs."""
    open_ground = lane((60, 50), seed)
    voxels = paint(biome, (60, 50), seed, open_ground=open_ground)
    voxels[:, open_ground] = AIR
    label, _ = ndimage.label(SOLID[voxels], np.ones((3, 3, 3)))
    assert set(np.unique(label)) == set(np.unique(label[0])) | {0}
    undersides, below = hanging(voxels)
    assert (undersides - below >= HEADROOM).all()


@several_plots
def test_glass_shows_what_it_blocks(shape, seed):
    voxels = paint("glass", shape, seed)
    assert 0.08 < (voxels == GLASS).any(axis=0).mean() < 0.3
    assert sight(voxels) > 15
    assert set(np.unique(voxels)) <= {AIR, GLASS, CONCRETE}


@several_plots
def test_glass_is_too_high_to_step_on_and_dunes_are_climbed(shape, seed):
    voxels = paint("glass", shape, seed)
    heights = (voxels == GLASS).sum(axis=0)
    assert set(np.unique(heights)) <= {0, 2, 3, 4}
    dune = np.pad((voxels == CONCRETE).sum(axis=0), 1)  # beyond the plot the ground is bare
    assert max(np.abs(np.diff(dune, axis=axis)).max() for axis in (0, 1)) <= 1
    assert not (heights[dune[1:-1, 1:-1] > 0]).any()


def test_glass_desert_has_dunes_of_several_metres():
    assert max((paint("glass", seed=seed) == CONCRETE).sum(axis=0).max() for seed in range(8)) == 4


@several_plots
def test_jungle_blocks_sight_but_not_movement(shape, seed):
    voxels = paint("jungle", shape, seed)
    assert 0.6 < (voxels[EYE] == FOLIAGE).mean() < 0.9
    assert sight(voxels) < 4
    assert 0.001 < (voxels[0] == CONCRETE).mean() < 0.02
    leaves = (voxels == FOLIAGE)[:3]
    assert (leaves.all(axis=0) == leaves.any(axis=0)).all()  # bushes reach 3 m, above nearly every mech's middle


@several_plots
def test_jungle_streams_cross_the_plot_and_can_be_waded(shape, seed):
    voxels = paint("jungle", shape, seed)
    stream = voxels[0] == WATER
    assert not (voxels[1:] == WATER).any()
    assert (voxels[1:3, stream] == AIR).all()
    assert 0.05 < stream.mean() < 0.25
    label, _ = ndimage.label(stream, np.ones((3, 3)))
    across = [set(label[0]) & set(label[-1]), set(label[:, 0]) & set(label[:, -1])]
    assert any(ends - {0} for ends in across)


def test_jungle_has_clearings():
    voxels = paint("jungle", (100, 100))
    bare = ndimage.minimum_filter((voxels[:5] == AIR).all(axis=0), 3)
    _, clearings = ndimage.label(bare)
    assert clearings > 10


@several_plots
def test_greenhouse_walls_are_transparent_and_beds_hide_mechs(shape, seed):
    voxels = paint("greenhouse", shape, seed)
    assert set(np.unique(voxels)) <= {AIR, GLASS, CONCRETE, FOLIAGE}
    beds = (voxels == FOLIAGE).sum(axis=0)
    assert set(np.unique(beds)) <= {0, 2, 3}
    assert 0.08 < (beds > 0).mean() < 0.45
    walls = (voxels[:HEAVY] == GLASS).sum(axis=0)
    assert set(np.unique(walls)) <= {0, 3, 4}
    assert ((voxels[4] == GLASS) <= (voxels[3] == GLASS)).all()


@several_plots
def test_heavies_can_enter_halls(shape, seed):
    """Nearly all places where a heavy has room, in halls and outside, are connected."""
    free = ~SOLID[paint("greenhouse", shape, seed)[:HEAVY]].any(axis=0)
    label, _ = ndimage.label(np.lib.stride_tricks.sliding_window_view(free, (HEAVY, HEAVY)).all(axis=(2, 3)))
    size = np.bincount(label[label > 0])
    assert size.max() / size.sum() > 0.95


def test_greenhouses_have_roofs_where_no_lane_cuts_them():
    roofs = [(paint("greenhouse", seed=seed)[HEADROOM:] == GLASS).any(axis=0).mean() for seed in range(12)]
    assert np.mean(roofs) > 0.1
    everywhere = paint("greenhouse", open_ground=np.ones((50, 50), np.bool_))
    assert not (everywhere[HEADROOM:] == GLASS).any()


@several_plots
def test_racks_stand_in_rows(shape, seed):
    voxels = paint("servers", shape, seed)
    heights = SOLID[voxels].sum(axis=0)
    assert set(np.unique(heights)) <= {0, 3, 4, 5, 6}
    rack = heights > 0
    assert 0.1 < rack.mean() < 0.35
    # 2 m thick: no 3 m x 3 m are solid, and except at the plot's edge no rack is one column wide.
    assert not ndimage.minimum_filter(rack, 3)[1:-1, 1:-1].any()
    thick = ndimage.binary_opening(np.pad(rack, 1, mode="edge"), np.ones((2, 2)))[1:-1, 1:-1]
    assert (thick == rack)[1:-1, 1:-1].all()


def test_rows_block_for_longer_than_a_gauss_reaches():
    solid = SOLID[paint("servers", (120, 120), 1)[EYE]]
    longest = [
        max((piece.stop - piece.start for (piece,) in ndimage.find_objects(ndimage.label(line)[0])), default=0)
        for line in (*solid, *solid.T)
    ]
    assert max(longest) > 20
    assert np.mean(np.array(longest) >= 16) > 0.15


@several_plots
def test_cooling_channels_keep_to_aisles(shape, seed):
    voxels = paint("servers", shape, seed)
    assert not (voxels[1:] == WATER).any()
    assert (voxels[1:, voxels[0] == WATER] == AIR).all()
    beside = ndimage.maximum_filter(SOLID[voxels[0]], 3)
    assert not beside[voxels[0] == WATER].any()  # dry ground along the racks


def test_some_aisles_hold_water():
    assert 0.02 < np.mean([(paint("servers", seed=seed)[0] == WATER).mean() for seed in range(12)]) < 0.15


@several_plots
def test_dishes_leave_the_view_below_open(shape, seed):
    voxels = paint("relay", shape, seed)
    undersides, _ = hanging(voxels)
    assert len(undersides) > 40
    assert undersides.min() >= 6
    assert SOLID[voxels[EYE]].mean() < 0.1
    assert sight(voxels) > 10


@several_plots
def test_dishes_are_bowls_on_pylons(shape, seed):
    """Each is one piece on 3 x 3 columns, with a rim 2 m or more above its floor."""
    voxels = paint("relay", shape, seed)
    high = (voxels == REINFORCED) & (np.arange(len(voxels))[:, None, None] >= 6)
    masts = voxels[0] == REINFORCED
    high[:, masts] = False
    label, dishes = ndimage.label(high, np.ones((3, 3, 3)))
    assert dishes > 0
    for box in ndimage.find_objects(label):
        _, height, width = (side.stop - side.start for side in box)
        assert height == width and height % 2 == 1 and 9 <= height <= 15
        y, x = (side.start + height // 2 for side in box[1:])
        assert (voxels[: box[0].start, y - 1 : y + 2, x - 1 : x + 2] == CONCRETE).all()
        floor, rim = (high[:, y + 1, x + offset].argmax() for offset in (1, height // 2))
        assert rim - floor >= 2


@pytest.mark.parametrize("seed", range(8))
def test_dishes_keep_clear_of_lanes(seed):
    open_ground = lane((60, 60), seed)
    voxels = paint("relay", (60, 60), seed, open_ground=open_ground)
    roofed = SOLID[voxels[6:]].any(axis=0) & ~SOLID[voxels[3]]
    assert roofed.any()
    assert not (roofed & open_ground).any()


@several_plots
def test_mechs_can_step_out_of_trenches(shape, seed):
    voxels = paint("relay", shape, seed)
    heights = SOLID[voxels].argmin(axis=0)
    parapet = heights == 1
    assert parapet.mean() > 0.01
    assert set(np.unique(heights[heights < 6])) <= {0, 1, 3}
