"""Generated maps, checked with code that is independent of the generator."""

import math

import numpy as np
import pytest
from scipy import ndimage

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import AIR, CONCRETE, DIRT, FOLIAGE, MATERIALS, REINFORCED
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.terrain import Lane, generate
from support.playing import SIZES

SOLID = [code for code, material in enumerate(MATERIALS) if material.blocks_movement]


def smallest(scenario):
    """A scenario on the smallest valid map."""
    for size in range(24, 513):
        try:
            return make_config(scenario, terrain={"size": size})
        except ConfigError:
            continue
    raise AssertionError


CONFIGS = {
    **{name: make_config(name) for name in SIZES},
    **{f"smallest {name}": smallest(name) for name in SIZES},
    **{biome: make_config("skirmish", terrain={"biomes": (biome,)}) for biome in ("urban", "mine", "relay")},
    "1 v 3": BattleConfig(blue=("heavy",), red=("scout", "light", "medium")),
    "low": make_config("battle", terrain={"height": 8}),
    "narrow lanes": make_config("battle", terrain={"direct_lane_width": 4.0, "flank_lane_width": 4.0}),
    "no ring, no margin": make_config("skirmish", terrain={"ring_width": 0.0, "spawn_margin": 0.0}),
    "near": make_config("skirmish", terrain={"max_spawn_distance": 60.0}),
    "even zone": make_config("battle", terrain={"max_distance_difference": 0.01}),
}


def test_corners_and_sides_are_drawn():
    """Both areas occur in each of the four corners, and the zone on either side of the line between them."""
    terrains = [generate(make_config("duel"), seed) for seed in range(60)]
    corners = [tuple((terrain.spawns[0, 0] > 50).tolist()) for terrain in terrains]
    assert all(corners.count((x, y)) >= 5 for x in (False, True) for y in (False, True))
    assert len({terrain.zone_x > 50 for terrain in terrains}) == 2
    assert len({terrain.zone_y > 50 for terrain in terrains}) == 2


@pytest.fixture(scope="module", params=CONFIGS, ids=lambda name: name.replace(" ", "-"))
def maps(request):
    config = CONFIGS[request.param]
    return config, [generate(config, seed) for seed in range(8)]


def largest(config):
    """Longest edge of a footprint and greatest height of the mechs in play."""
    classes = [c for c in config.catalog.mech_classes if c.name in config.blue + config.red]
    return max(max(c.length, c.width) for c in classes), max(c.height for c in classes)


def footprint(x, y, width):
    """Rows and columns that a square footprint around (x, y) overlaps."""
    low, high = (math.floor(c - width / 2 + 1e-9) for c in (y, x)), (math.ceil(c + width / 2 - 1e-9) for c in (y, x))
    (y0, x0), (y1, x1) = low, high
    assert min(y0, x0) >= 0
    return slice(y0, y1), slice(x0, x1)


def test_arrays_and_materials(maps):
    config, terrains = maps
    for seed, terrain in enumerate(terrains):
        size, height = config.terrain.size, config.terrain.height
        assert terrain.voxels.shape == (height, size, size)
        assert terrain.voxels.dtype == np.uint8
        assert terrain.voxels.flags.c_contiguous
        assert not terrain.voxels.flags.writeable
        assert terrain.voxels.max() < len(MATERIALS)
        assert terrain.spawns.shape == (2, max(len(config.blue), len(config.red)), 2)
        assert terrain.spawns.dtype == np.float64
        assert terrain.seed == seed
        roof = max(1, height - math.ceil(largest(config)[1]) - 1)
        assert not terrain.voxels[roof:].any()


def test_spawn_places_are_free_apart_and_in_opposite_corners(maps):
    config, terrains = maps
    size, width = config.terrain.size, largest(config)[0]
    offset, extent = config.map_config.spawn_offset, config.map_config.spawn_extent
    for terrain in terrains:
        clear = ~np.isin(terrain.voxels, [*SOLID, FOLIAGE]).any(axis=0)
        for places in terrain.spawns:
            low_corner = places.min(axis=0) < size / 2
            distance = np.where(low_corner, places, size - places)  # from the corner
            assert (distance >= offset + width / 2).all()
            assert (distance <= offset + extent - width / 2).all()
            for x, y in places:
                assert clear[footprint(x, y, width)].all()
            gaps = np.abs(places[:, None] - places).max(axis=2)[~np.eye(len(places), dtype=bool)]
            assert (gaps >= width).all()
        np.testing.assert_allclose(terrain.spawns[0] + terrain.spawns[1], size)
        assert math.dist(*terrain.spawns.mean(axis=1)) <= max(config.terrain.max_spawn_distance, size / 2)


def distance_from_zone(terrain):
    """Distance in metres (Y, X) of column centres from the zone's centre."""
    centres = np.arange(terrain.voxels.shape[1]) + 0.5
    return np.hypot((centres - terrain.zone_y)[:, None], centres - terrain.zone_x)


def test_blocks_in_and_around_the_zone_are_low_and_let_every_mech_pass(maps):
    """A mech's footprint fits between any two blocks and in the centre of the zone. Nothing else is there."""
    config, terrains = maps
    width = math.ceil(largest(config)[0])
    for terrain in terrains:
        distance = distance_from_zone(terrain)
        ring = distance < terrain.zone_radius + config.terrain.ring_width
        here = terrain.voxels[:, ring]
        assert set(np.unique(here)) <= {AIR, DIRT, CONCRETE, REINFORCED}
        assert not here[3:].any()
        blocked = np.where(ring, np.isin(terrain.voxels, SOLID).any(axis=0), False)
        assert not blocked[distance < width / 2].any()
        labels, count = ndimage.label(blocked)
        within = width + 1  # columns, of which both ends may touch a block when there are `width` - 1 between them
        nearest = [ndimage.maximum_filter(np.where(labels > 0, sign * labels, -count - 1), within) for sign in (1, -1)]
        assert not ((nearest[0] > -nearest[1]) & (nearest[0] > 0)).any()


def test_direct_lanes_are_bare_in_their_whole_width(maps):
    """Outside the zone, a strip of the configured width, wide enough for all mechs, joins each spawn area and it."""
    config, terrains = maps
    width = max(config.terrain.direct_lane_width, largest(config)[0] * math.sqrt(2))
    for terrain in terrains:
        lane = (terrain.lanes & Lane.DIRECT) > 0
        in_zone = distance_from_zone(terrain) < terrain.zone_radius + 1
        on_lane = terrain.voxels[:, lane & ~in_zone]
        assert set(np.unique(on_lane[:1])) <= {AIR, DIRT}
        assert not on_lane[1:].any()
        clearance = ndimage.distance_transform_edt(np.pad(lane, 1, constant_values=True))[1:-1, 1:-1]
        labels, _ = ndimage.label(
            clearance >= width / 2 - 1
        )  # the lane's centre line, where the walls are half as far away
        ends = [(terrain.zone_x, terrain.zone_y), *terrain.spawns.mean(axis=1)]
        assert len({labels[int(y), int(x)] for x, y in ends} - {0}) == 1
        assert all(labels[int(y), int(x)] for x, y in ends)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match="seed"):
        generate(make_config("duel"), seed)
