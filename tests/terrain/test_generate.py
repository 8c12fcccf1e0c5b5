"""Generated maps, checked with code that shares nothing with the generator."""

import hashlib
import math
from collections import deque

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echelon_env.catalog import CONCRETE, FOLIAGE, GLASS, MATERIALS
from echelon_env.config import BIOMES, PACK, BattleConfig, TerrainConfig, spawn_extent
from echelon_env.scenario import make_config
from echelon_env.schema import ConfigError
from echelon_env.terrain import generate
from playing import SIZES

SOLID = [code for code, material in enumerate(MATERIALS) if material.blocks_movement]


def smallest(scenario):
    """A scenario on the smallest map that the configuration permits."""
    for size in range(24, 513):
        try:
            return make_config(scenario, terrain={"size": size})
        except ConfigError:
            continue
    raise AssertionError


CONFIGS = {
    **{name: make_config(name) for name in SIZES},
    **{f"smallest {name}": smallest(name) for name in SIZES},
    **{biome: make_config("skirmish", terrain={"biomes": (biome,)}) for biome in BIOMES},
    "1 v 3": BattleConfig(blue=("heavy",), red=("scout", "light", "medium")),
    "low": make_config("battle", terrain={"height": 8}),
    "narrow lanes": make_config("battle", terrain={"direct_lane_width": 4.0, "flank_lane_width": 4.0}),
    "no ring, no margin": make_config("skirmish", terrain={"ring_width": 0.0, "spawn_margin": 0.0}),
    "even zone": make_config("battle", terrain={"max_distance_difference": 0.01}),
}


@pytest.fixture(scope="module", params=CONFIGS, ids=lambda name: name.replace(" ", "-"))
def maps(request):
    config = CONFIGS[request.param]
    return config, [generate(config, seed) for seed in range(20)]


def blocked_columns(config, terrain):
    """(Y, X) columns with a solid voxel below the tallest mech's head."""
    return np.isin(terrain.voxels[: math.ceil(largest(config)[1])], SOLID).any(axis=0)


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
        assert terrain.voxels.flags.writeable
        assert terrain.voxels.max() < len(MATERIALS)
        assert terrain.spawns.shape == (2, max(len(config.blue), len(config.red)), 2)
        assert terrain.spawns.dtype == np.float64
        assert terrain.seed == seed
        roof = max(1, height - math.ceil(largest(config)[1]) - 1)
        assert not terrain.voxels[roof:].any()


def test_spawn_places_are_free_apart_and_in_opposite_corners(maps):
    config, terrains = maps
    size, extent, width = config.terrain.size, spawn_extent(config), largest(config)[0]
    for terrain in terrains:
        clear = ~np.isin(terrain.voxels, [*SOLID, FOLIAGE]).any(axis=0)
        for places in terrain.spawns:
            low_corner = places.min(axis=0) < size / 2
            distance = np.where(low_corner, places, size - places)  # from the corner
            assert (distance >= width / 2).all()
            assert (distance <= extent - width / 2).all()
            for x, y in places:
                assert clear[footprint(x, y, width)].all()
            gaps = np.abs(places[:, None] - places).max(axis=2)[~np.eye(len(places), dtype=bool)]
            assert (gaps >= width).all()
        np.testing.assert_allclose(terrain.spawns[0] + terrain.spawns[1], size)


def test_zone_lies_inside_clear_of_spawns_and_solids(maps):
    config, terrains = maps
    size, extent = config.terrain.size, spawn_extent(config)
    scale = math.sqrt(terrains[0].spawns.shape[1] / 5)
    for terrain in terrains:
        x, y, radius = terrain.zone_x, terrain.zone_y, terrain.zone_radius
        assert config.zone.min_radius * scale <= radius <= config.zone.max_radius * scale
        assert radius <= min(x, y)
        assert max(x, y) <= size - radius
        for places in terrain.spawns:
            corner_x, corner_y = np.where(places[0] < size / 2, 0, size)
            gap = math.hypot(max(abs(x - corner_x) - extent, 0), max(abs(y - corner_y) - extent, 0))
            assert gap > radius
        rows, columns = np.nonzero(np.isin(terrain.voxels, SOLID).any(axis=0))
        nearest = np.hypot(np.clip(x, columns, columns + 1) - x, np.clip(y, rows, rows + 1) - y)
        assert (nearest >= radius).all()


def test_direct_lane_is_free_in_its_whole_width(maps):
    config, terrains = maps
    size, width = config.terrain.size, config.terrain.direct_lane_width
    for terrain in terrains:
        blocked = blocked_columns(config, terrain)
        goal = np.array([terrain.zone_x, terrain.zone_y])
        for start in terrain.spawns.mean(axis=1):
            along = np.linspace(0, 1, 4 * size)[:, None, None] * (goal - start)
            across = np.linspace(-width / 2, width / 2, 33)[:, None] * ((goal - start) @ [[0, 1], [-1, 0]])
            points = start + along + across / np.linalg.norm(goal - start)
            x, y = points.reshape(-1, 2)[((points > 0) & (points < size)).all(axis=2).ravel()].astype(int).T
            assert not blocked[y, x].any()


def test_walking_distances_are_alike(maps):
    """The widest mech can walk the straight line to the zone, so the straight line is its walking distance."""
    config, terrains = maps
    width = largest(config)[0]
    for terrain in terrains:
        blocked = blocked_columns(config, terrain)
        goal = np.array([terrain.zone_x, terrain.zone_y])
        distances = []
        for start in terrain.spawns.mean(axis=1):
            distances.append(math.dist(start, goal))
            for share in np.linspace(0, 1, 5 * config.terrain.size):
                assert not blocked[footprint(*(start + share * (goal - start)), width)].any()
        assert max(distances) - min(distances) <= config.terrain.max_distance_difference * min(distances) + 1e-9


def test_widest_mech_walks_from_every_spawn_place_to_the_zone(maps):
    config, terrains = maps
    width = largest(config)[0]
    cells = math.ceil(width)
    for terrain in terrains[:6]:
        blocked = blocked_columns(config, terrain).tolist()
        size = config.terrain.size

        def free(x, y, blocked=blocked, size=size):
            inside = 0 <= x <= size - cells and 0 <= y <= size - cells
            return inside and not any(any(row[x : x + cells]) for row in blocked[y : y + cells])

        start = int(terrain.zone_x - width / 2), int(terrain.zone_y - width / 2)
        assert free(*start)
        reached, queue = {start}, deque([start])
        while queue:
            x, y = queue.popleft()
            for step in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if step not in reached and free(*step):
                    reached.add(step)
                    queue.append(step)
        for x, y in terrain.spawns.reshape(-1, 2):
            assert (int(x - width / 2), int(y - width / 2)) in reached


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_same_seed_gives_the_same_bytes(seed):
    first, second = (generate(make_config("battle"), seed) for _ in range(2))
    assert first.voxels.tobytes() == second.voxels.tobytes()
    assert first.spawns.tobytes() == second.spawns.tobytes()
    assert (first.zone_x, first.zone_y, first.zone_radius) == (second.zone_x, second.zone_y, second.zone_radius)


def test_different_seeds_differ(maps):
    _, terrains = maps
    assert len({terrain.voxels.tobytes() for terrain in terrains}) == len(terrains)


def test_corners_and_sides_are_drawn():
    """Both areas lie in each of the four corners, and the zone on either side of the line between them."""
    terrains = [generate(make_config("duel"), seed) for seed in range(60)]
    corners = [tuple((terrain.spawns[0, 0] > 50).tolist()) for terrain in terrains]
    assert all(corners.count((x, y)) >= 5 for x in (False, True) for y in (False, True))
    assert len({terrain.zone_x > 50 for terrain in terrains}) == 2
    assert len({terrain.zone_y > 50 for terrain in terrains}) == 2


def test_maps_keep_cover():
    """Every biome leaves solids or foliage to hide behind after the lanes are cut."""
    cover = {}
    for biome in BIOMES:
        voxels = [generate(make_config("battle", terrain={"biomes": (biome,)}), seed).voxels for seed in range(10)]
        cover[biome] = np.mean([np.isin(v[:2], SOLID).any(axis=0) for v in voxels])
        assert any((v == FOLIAGE).any() for v in voxels) == (biome == "forest")
        assert any((v == GLASS).any() for v in voxels) == (biome == "urban")
    assert cover["urban"] > 0.15
    assert cover["barrens"] > 0.06
    assert cover["forest"] > 0.03


def test_ring_has_cover_off_the_lanes():
    config = make_config("battle")
    found = 0
    for seed in range(10):
        terrain = generate(config, seed)
        rows, columns = np.nonzero(terrain.voxels[0] == CONCRETE)
        distance = np.hypot(columns + 0.5 - terrain.zone_x, rows + 0.5 - terrain.zone_y)
        on_ring = distance < terrain.zone_radius + config.terrain.ring_width
        found += np.count_nonzero(on_ring)
        assert not terrain.voxels[2][rows[on_ring], columns[on_ring]].any()
    assert found > 50


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much], derandomize=True)
def test_whatever_is_permitted_generates(data):
    """Generation ends in its own check that every mech can walk to the zone."""
    roster = st.lists(st.sampled_from(PACK), min_size=1, max_size=24).map(tuple)
    metres = st.floats(4, 32)
    try:
        config = BattleConfig(
            blue=data.draw(roster),
            red=data.draw(roster),
            terrain=TerrainConfig(
                size=data.draw(st.integers(24, 160)),
                height=data.draw(st.integers(8, 32)),
                biomes=tuple(data.draw(st.lists(st.sampled_from(BIOMES), min_size=1, max_size=3))),
                centre_jitter=data.draw(st.floats(0, 0.3)),
                spawn_margin=data.draw(st.floats(0, 10)),
                spawn_spacing=data.draw(st.floats(3.5, 8)),
                direct_lane_width=data.draw(metres),
                flank_lane_width=data.draw(metres),
                ring_width=data.draw(st.floats(0, 32)),
                max_distance_difference=data.draw(st.floats(0.01, 1)),
            ),
        )
    except ConfigError:
        return
    generate(config, data.draw(st.integers(0, 2**64 - 1)))


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match="seed"):
        generate(make_config("duel"), seed)


def test_golden_hash():
    """Maps are the same on every machine; a change of the generator changes them on purpose."""
    digest = hashlib.sha256()
    for seed in range(8):
        terrain = generate(make_config("battle"), seed)
        digest.update(terrain.voxels.tobytes())
        digest.update(terrain.spawns.tobytes())
        digest.update(np.array([terrain.zone_x, terrain.zone_y, terrain.zone_radius]).tobytes())
    assert digest.hexdigest()[:16] == "55799d021ea659f7"
