"""Tunnels, bunkers, mine and volcano: the properties that players rely on."""

import numpy as np
import pytest
from scipy import ndimage

from echelon_env.config.catalog import AIR, CONCRETE, GLASS, LAVA, REINFORCED
from support.plots import paint, surface, walks, worst

SCOUT, MEDIUM, HEAVY = 2, 3, 4  # columns that a mech's footprint covers along each axis
HEADROOM = 5  # m, under anything that hangs

several_plots = pytest.mark.parametrize(
    ("shape", "seed"), [(shape, seed) for shape in [(50, 50), (37, 63), (100, 44)] for seed in range(6)]
)


def spans(places, margin):
    """Whether places (H, W) come within `margin` metres of all four edges."""
    rows, columns = (np.flatnonzero(places.any(axis=axis)) for axis in (1, 0))
    return all(
        hit[0] <= margin and hit[-1] >= n - 1 - margin for hit, n in zip((rows, columns), places.shape, strict=True)
    )


@several_plots
def test_every_tunnel_has_dry_floor_for_the_heavy(shape, seed):
    voxels = paint("tunnels", shape, seed)
    lava = voxels[0] == LAVA
    assert 0.02 < lava.mean() < 0.2
    dry, _ = walks(surface(voxels), HEAVY, ~worst(lava, HEAVY))
    assert spans(dry, 0)
    floor, _ = walks(surface(voxels), HEAVY)
    at_hand = ndimage.maximum_filter(dry, 2 * HEAVY + 1)
    assert at_hand[floor].mean() > 0.97  # except for the ends of blind alleys


@pytest.mark.parametrize("seed", range(8))
def test_sight_is_short_in_tunnels(seed):
    """Along its row a mech sees 16 m to each side on average; rock is higher than any mech."""
    heights = surface(paint("tunnels", (100, 100), seed))
    assert heights[heights > 0].min() >= HEADROOM
    walls = np.pad(heights > 0, ((0, 0), (1, 1)), constant_values=True)
    free = np.concatenate([np.diff(np.flatnonzero(row)) - 1 for row in walls])  # m, the lengths of free rows
    assert (free**2).sum() / free.sum() < 32


def test_tunnels_of_neighbouring_plots_meet():
    left, right = (surface(paint("tunnels", (50, 50), seed)) == 0 for seed in (1, 2))
    both = left[:, -1] & right[:, 0]
    assert ndimage.minimum_filter1d(both, 3).sum() >= 2
    assert (both | ~left[:, -1]).mean() > 0.7


def test_no_roof_hangs_over_the_edge_of_a_lane():
    lane = np.zeros((50, 50), np.bool_)
    lane[20:28] = True
    for seed in range(6):
        voxels = paint("tunnels", seed=seed, open_ground=lane)
        hangs = (voxels[HEADROOM:] != AIR).any(axis=0) & (surface(voxels) == 0)
        assert not hangs[17:31].any()
        assert hangs.any()


@pytest.mark.parametrize("seed", range(8))
def test_teeth_let_scouts_and_lights_pass_and_stop_mediums(seed):
    heights = surface(paint("bunkers", seed=seed))
    label, _ = ndimage.label(heights, np.ones((3, 3)))
    single = np.flatnonzero(np.bincount(label.ravel())[1:] == 1) + 1
    teeth = np.argwhere(np.isin(label, single) & (heights == 2))
    assert len(teeth) >= 10
    apart = np.abs(teeth[:, None] - teeth).max(axis=2)
    np.fill_diagonal(apart, 99)
    gap = apart.min(axis=1) - 1
    assert gap.min() >= SCOUT
    assert (
        gap < MEDIUM
    ).mean() > 0.7  # others stand alone at the plot's edge, or next to what lies behind the line ahead


@several_plots
def test_bunkers_have_slits_to_fire_from(shape, seed):
    """Slits are 1 m wide, above a sill of 1 m, in reinforced walls: open, or of transparent glass."""
    voxels = paint("bunkers", shape, seed)
    heights = surface(voxels)
    assert heights.max() <= 4
    glass = (voxels == GLASS).any(axis=0)
    assert (voxels[1:3, glass] == GLASS).all()
    assert (voxels[0, glass] == REINFORCED).all()
    assert not (voxels[[0, *range(3, 20)]] == GLASS).any()
    sill = (heights == 1) & (voxels[0] == REINFORCED)
    between = [sill & (np.minimum(np.roll(heights, 1, axis), np.roll(heights, -1, axis)) >= 3) for axis in (0, 1)]
    assert np.count_nonzero(glass | between[0] | between[1]) >= 6
    assert (voxels[0] == REINFORCED).sum() > 2 * (voxels[0] == CONCRETE).sum()


def along_rows(heights):
    """The plot, rotated so that its fortified lines, to which the walls of 2 m belong, run along its rows."""
    across, along = (ndimage.binary_opening(heights == 2, np.ones(shape)).sum() for shape in [(4, 1), (1, 4)])
    return heights.T if across > along else heights


@several_plots
def test_fortified_lines_leave_their_flanks_open(shape, seed):
    heights = along_rows(surface(paint("bunkers", shape, seed)))
    assert not heights[:, :5].any()
    assert not heights[:, -5:].any()
    assert (heights.max(axis=0) >= 2)[5:-5].mean() > 0.8  # there is no other straight way for a heavy across all lines
    gaps, _ = ndimage.label(heights.max(axis=0)[5:-5] < 2)
    assert np.bincount(gaps)[1:].max(initial=0) < HEAVY


@pytest.mark.parametrize("seed", range(8))
def test_parapets_are_crossed_from_the_trench_only(seed):
    """A fire step leads up to them from inside; outside is a wall of 2 m; 6 m behind the step is the rear parapet."""
    heights = np.pad(along_rows(surface(paint("bunkers", seed=seed))), 8)
    y, x = np.nonzero(ndimage.binary_opening(heights == 1, np.ones((1, 3))))
    inward = np.where(heights[y - 1, x] == 2, 1, -1)
    step = heights[y - inward, x] == 2
    assert step.sum() >= 10
    y, x, inward = y[step], x[step], inward[step]
    assert (heights[y - 2 * inward, x] == 0).mean() > 0.8
    assert (heights[y + inward, x] == 0).mean() > 0.8
    assert (heights[y + 6 * inward, x] == 2).mean() > 0.5


@several_plots
def test_every_mech_climbs_from_the_floor_of_the_mine_to_its_rim(shape, seed):
    heights = surface(paint("mine", shape, seed))
    assert 4 <= heights.max() <= 7
    for width in (SCOUT, HEAVY):
        places, _ = walks(heights, width)
        assert places[worst(heights, width) >= 4].mean() > 0.95
        assert places[worst(heights, width) == 0].all()


@several_plots
def test_haul_roads_lead_to_the_floor_of_the_mine_at_ground_level(shape, seed):
    """From the centre of each pit, heavies reach the edges of its cell without a step on two or more sides."""
    heights = surface(paint("mine", shape, seed))
    cells = [max(1, (n + 24) // 48) for n in shape]
    for rows in np.array_split(np.arange(shape[0]), cells[0]):
        for columns in np.array_split(np.arange(shape[1]), cells[1]):
            pit = worst(heights[np.ix_(rows, columns)], HEAVY) == 0
            inner = pit[2:-2, 2:-2]
            label, _ = ndimage.label(inner)
            floor = label[label.shape[0] // 2, label.shape[1] // 2]
            assert floor
            sides = [side == floor for side in (label[0], label[-1], label[:, 0], label[:, -1])]
            assert sum(side.any() for side in sides) >= 2


@pytest.mark.parametrize("seed", range(8))
def test_the_rim_of_the_mine_is_high_ground_around_its_floor(seed):
    """From the pit's centre all paths to the plot's edge, except the roads, lead over 3 m or more."""
    heights = surface(paint("mine", seed=seed))
    y, x = np.indices(heights.shape) - 24.5
    sector = np.floor(np.arctan2(y, x) / np.pi * 12).astype(int) + 12
    crest = ndimage.maximum(heights, sector, range(24))
    assert np.count_nonzero(crest >= 3) >= 18
    assert np.median(heights[y**2 + x**2 < 36]) == 0


@several_plots
def test_slopes_of_volcanoes_rise_by_one_metre(shape, seed):
    """Boulders, of reinforced concrete, stand alone; apart from them neighbouring columns differ by 1 m at most."""
    voxels = paint("volcano", shape, seed)
    heights = surface(voxels)
    boulder = voxels[0] == REINFORCED
    assert heights[~boulder].max() >= 4
    slope = np.where(boulder, 0, heights)
    slope = np.pad(slope, 1)  # no cliffs at the plot's edge
    assert np.abs(np.diff(slope, axis=0)).max() <= 1
    assert np.abs(np.diff(slope, axis=1)).max() <= 1
    assert not ndimage.maximum_filter(slope, 7)[1:-1, 1:-1][boulder].any()


@several_plots
def test_lava_streams_can_be_crossed_dry(shape, seed):
    """On dry ground a heavy reaches nearly all places that it reaches at all, including the summits."""
    voxels = paint("volcano", shape, seed)
    heights, lava = surface(voxels), voxels[0] == LAVA
    assert 0.03 < lava.mean() < 0.25
    assert (ndimage.maximum_filter(heights, 7)[lava] > 0).any()
    everywhere, _ = walks(heights, HEAVY)
    away = ~worst(lava, HEAVY)
    dry, _ = walks(heights, HEAVY, away)
    assert dry[everywhere & away].mean() > 0.95
    assert worst(heights, HEAVY)[dry].max() == heights[voxels[0] == CONCRETE].max()
