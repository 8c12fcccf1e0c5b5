"""Properties of all maps, over many seeds of every scenario and of every biome alone.

`oracles.walking`, which shares no code with the generator, computes where mechs can walk. By default a few seeds of
each case are checked; with ``-m slow`` 2,720 over the scenarios, 100 of each biome, 20 of each scenario mirrored and
160 of each of three odd configurations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from scipy import ndimage

from echelon_env import scenarios
from echelon_env.config.biomes import BIOMES
from echelon_env.config.catalog import AIR, CONCRETE, DIRT, MATERIALS, REINFORCED, WATER
from echelon_env.config.map import MapConfig, TerrainConfig
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError
from echelon_env.terrain import Lane, Terrain, generate
from oracles.walking import SOLID, Walker

OPAQUE = np.array([material.blocks_sight for material in MATERIALS])
EYES = 1  # voxel layer of a medium's middle, 1.5 m above the ground
MIN_COVER = 0.01
"""Minimum share of the columns outside the zone that block the sight of a standing medium.

It holds for maps without a quadrant of glass desert, where only dunes hide mechs. The smallest share on 9,280 maps was
0.0105, on a mirrored `duel-open` of 48 m; on maps of 64 m and more it was 0.0216.
"""
MIN_SHELTER = 0.01
"""Minimum share of the columns that block sight or shells, on all maps.

The smallest share was on the same map; with glass desert it was 0.0323.
"""

KINDS = {
    **{name: scenario.config for name, scenario in scenarios().items()},
    **{f"all {biome}": make_config("battle", terrain={"biomes": (biome,)}) for biome in BIOMES},
    **{
        f"{name} mirrored": make_config(scenario.config, terrain={"mirrored": True})
        for name, scenario in scenarios().items()
    },
    "1 v 3": make_config("skirmish", blue=("heavy",), red=("scout", "light", "medium")),
    "low": make_config("battle", terrain={"height": 8}),
    "narrow lanes": make_config("battle", terrain={"direct_lane_width": 4.0, "flank_lane_width": 4.0}),
}


def number_of_maps(kind: str, full: bool) -> int:
    if kind.endswith("mirrored"):
        return 20 if full else 1
    if kind.startswith("all "):
        return 100 if full else 2
    return 160 if full else 3


@dataclass(frozen=True)
class Map:
    """A map and the results of the independent walker, by the width of a walker."""

    terrain: Terrain
    on_foot: dict[float, bool]  # whether every spawn place is connected with the zone and the others on flat ground
    trapped: dict[
        float, int
    ]  # places that a mech without jets reaches from a spawn place and cannot leave for the zone
    seconds: dict[float, np.ndarray]  # (2,) mean time of a team's places to the zone's middle at 1 m/s


def examine(rules: MapConfig, seed: int) -> Map:
    terrain = generate(rules, seed)
    found: tuple[dict, dict, dict] = ({}, {}, {})
    for width in {rules.mech_width, *rules.walker_widths}:
        walker = Walker(terrain.voxels, width, rules.mech_height)
        starts = walker.on_ground(terrain.spawns.reshape(-1, 2))
        goal = walker.near(terrain.zone_x, terrain.zone_y, 0.0)
        flat = walker.reached(goal, ground_only=True)
        seconds = walker.seconds(goal)
        found[0][width] = bool((starts >= 0).all() and flat[starts].all())
        if width in rules.walker_widths:
            found[1][width] = np.count_nonzero(walker.reached(starts.ravel()) & np.isinf(seconds))
        found[2][width] = seconds[starts].reshape(2, -1).mean(axis=1)
    return Map(terrain, *found)


def cases(kinds: Iterable[str]) -> list:
    few = [pytest.param((kind, False), id=kind.replace(" ", "-")) for kind in kinds]
    many = [pytest.param((k, True), id=f"{k.replace(' ', '-')}-full", marks=pytest.mark.slow) for k in kinds]
    return few + many


@pytest.fixture(scope="module", params=cases(KINDS))
def maps(request: pytest.FixtureRequest) -> tuple[str, list[Map]]:
    kind, full = request.param
    return kind, [examine(KINDS[kind].map_config, seed) for seed in range(number_of_maps(kind, full))]


def test_every_mech_walks_from_every_spawn_place_to_the_zone_and_to_the_others(maps):
    """On flat ground, without a step up, for mechs without jets and of any width."""
    _, found = maps
    assert [m.terrain.seed for m in found if not all(m.on_foot.values())] == []


def test_no_mech_walks_into_a_place_that_it_cannot_leave(maps):
    _, found = maps
    assert {m.terrain.seed: m.trapped for m in found if any(m.trapped.values())} == {}


def test_spawn_areas_are_bare(maps):
    """No solids, no foliage and no hazards on the squares of the spawn places, nor between them and the map's edge."""
    _, found = maps
    for m in found:
        terrain = m.terrain.config.terrain
        for places in m.terrain.spawns:
            low, high = places.min(axis=0), places.max(axis=0)
            inner = terrain.spawn_spacing / 2
            outer = inner + terrain.spawn_margin
            from_low = low < terrain.size / 2  # the margin is on the outer sides
            first = np.floor(low - np.where(from_low, outer, inner) + 1e-9).astype(int)
            last = np.ceil(high + np.where(from_low, inner, outer) - 1e-9).astype(int)
            area = m.terrain.voxels[:, first[1] : last[1], first[0] : last[0]]
            assert set(np.unique(area[0])) <= {AIR, DIRT}, m.terrain.seed
            assert not area[1:].any(), m.terrain.seed


def test_teams_need_the_same_time_to_the_zone(maps):
    """Exactly on mirrored maps, else within the permitted 15 %. With one class, both teams' mechs are equally fast."""
    kind, found = maps
    for m in found:
        permitted = 1e-9 if kind.endswith("mirrored") else m.terrain.config.terrain.max_distance_difference
        for width, seconds in m.seconds.items():
            assert np.isfinite(seconds).all()
            assert seconds.max() <= (1 + permitted) * seconds.min(), (m.terrain.seed, width, seconds)


def test_maps_keep_cover(maps):
    _, found = maps
    for m in found:
        terrain = m.terrain
        centres = np.arange(terrain.voxels.shape[1]) + 0.5
        outside = np.hypot((centres - terrain.zone_y)[:, None], centres - terrain.zone_x) > terrain.zone_radius
        at_eyes = terrain.voxels[EYES][outside]
        if "glass" not in terrain.biomes:
            assert OPAQUE[at_eyes].mean() >= MIN_COVER, terrain.seed
        assert (OPAQUE | SOLID)[at_eyes].mean() >= MIN_SHELTER, terrain.seed


def distance_from_zone(terrain):
    """Distance in metres (Y, X) of column centres from the zone's centre."""
    centres = np.arange(terrain.voxels.shape[1]) + 0.5
    return np.hypot((centres - terrain.zone_y)[:, None], centres - terrain.zone_x)


def test_blocks_in_and_around_the_zone_are_low_and_let_every_mech_pass(maps):
    """A mech's footprint fits between any two blocks and in the centre of the zone. Nothing else is there."""
    for terrain in (m.terrain for m in maps[1]):
        width = math.ceil(terrain.config.mech_width)
        distance = distance_from_zone(terrain)
        ring = distance < terrain.zone_radius + terrain.config.terrain.ring_width
        here = terrain.voxels[:, ring]
        assert set(np.unique(here)) <= {AIR, DIRT, CONCRETE, REINFORCED}
        assert not here[3:].any()
        blocked = np.where(ring, SOLID[terrain.voxels].any(axis=0), False)
        assert not blocked[distance < width / 2].any()
        labels, count = ndimage.label(blocked)
        within = width + 1  # columns, of which both ends may touch a block when there are `width` - 1 between them
        nearest = [ndimage.maximum_filter(np.where(labels > 0, sign * labels, -count - 1), within) for sign in (1, -1)]
        assert not ((nearest[0] > -nearest[1]) & (nearest[0] > 0)).any()


def test_direct_lanes_are_bare_in_their_whole_width(maps):
    """Outside the zone, a strip of the configured width, wide enough for all mechs, joins each spawn area and it."""
    for terrain in (m.terrain for m in maps[1]):
        width = max(terrain.config.terrain.direct_lane_width, terrain.config.walking_width)
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


def test_corners_and_sides_are_drawn():
    """Both areas occur in each of the four corners, and the zone on either side of the line between them."""
    terrains = [generate(make_config("duel"), seed) for seed in range(60)]
    corners = [tuple((terrain.spawns[0, 0] > 50).tolist()) for terrain in terrains]
    assert all(corners.count((x, y)) >= 5 for x in (False, True) for y in (False, True))
    assert len({terrain.zone_x > 50 for terrain in terrains}) == 2
    assert len({terrain.zone_y > 50 for terrain in terrains}) == 2


@pytest.mark.parametrize("maps", cases([kind for kind in KINDS if kind.startswith("all ")]), indirect=True)
def test_biomes_consist_of_their_declared_materials(maps):
    kind, found = maps
    declared = BIOMES[kind.removeprefix("all ")].shares
    undeclared = {"air", "dirt", "concrete", "reinforced"}  # the ground and the cover in and around the zone
    for m in found:
        assert names_in(m.terrain) <= {*declared, *undeclared}
        for name, (least, most) in declared.items():
            assert least <= share(m.terrain, name) <= most, (m.terrain.seed, name)


def names_in(terrain: Terrain) -> set[str]:
    return {MATERIALS[code].name for code in np.unique(terrain.voxels)}


def share(terrain: Terrain, material: str) -> float:
    """Share of the columns that hold a voxel of a material."""
    code = [m.name for m in MATERIALS].index(material)
    return float((terrain.voxels == code).any(axis=0).mean())


def test_the_independent_walker_knows_steps_drops_roofs_and_water():
    """On a strip 4 m wide: ground, steps of 1 m up to a wall, a pit 3 m deep, a wall, and water under a roof."""
    voxels = np.zeros((9, 4, 40), np.uint8)
    for x, height in ((8, 1), (12, 2), (16, 3), (24, 3), (28, 0)):
        voxels[:, :, x : x + 4] = np.where(np.arange(9)[:, None, None] < height, CONCRETE, AIR)
    voxels[0, :, 30:] = WATER
    walker = Walker(voxels, 3.5, 4.0)
    start, pit, water = (walker.on_ground([(x, 2.0)])[0, 0] for x in (2.0, 22.0, 38.0))
    reached = walker.reached(np.array([start]))
    assert reached[pit] and not reached[water]
    assert np.isinf(walker.seconds(np.array([start]))[pit])
    assert not walker.reached(np.array([start]), ground_only=True)[pit]
    assert walker.seconds(np.array([water]))[walker.on_ground([(33.0, 2.0)])[0, 0]] == pytest.approx(5 / 0.6, abs=0.5)
    steps = walker.seconds(np.array([walker.place[3, 0, 16]]))
    assert steps[start] == 16
    voxels[5, :, 8:12] = CONCRETE  # room for 4 m above the first step, none to climb the second
    assert not Walker(voxels, 3.5, 4.0).reached(np.array([start]))[pit]
    voxels[5], voxels[6, :, 8:12] = AIR, CONCRETE
    assert Walker(voxels, 3.5, 4.0).reached(np.array([start]))[pit]


def test_the_same_seed_gives_the_same_map_on_one_and_on_many_threads():
    configs = [scenario.config for scenario in scenarios().values()]
    tasks = [(config, 3) for config in configs]
    alone = [generate(*task).content_hash for task in tasks]
    with ThreadPoolExecutor(8) as threads:
        together = [terrain.content_hash for terrain in threads.map(lambda task: generate(*task), tasks)]
    assert together == alone
    assert len(set(alone)) == len(alone)


@st.composite
def map_configs(draw: st.DrawFn) -> MapConfig:
    """Any valid configuration, with the game's mechs or custom ones."""
    metres = st.floats(4, 32)
    width = draw(st.sampled_from([1.2, 2.5, 3.5]) | st.floats(0.5, 8))
    height = draw(st.integers(8, 32))
    walkers = draw(st.sets(st.sampled_from([0.3, 0.7, 1.0]), max_size=2))
    try:
        return MapConfig(
            terrain=TerrainConfig(
                size=draw(st.integers(24, 140)),
                height=height,
                biomes=tuple(draw(st.lists(st.sampled_from(sorted(BIOMES)), min_size=1, max_size=4))),
                centre_jitter=draw(st.floats(0, 0.3)),
                spawn_margin=draw(st.floats(0, 10)),
                spawn_spacing=draw(st.floats(width, 9)),
                max_spawn_distance=draw(st.floats(20, 250)),
                direct_lane_width=draw(metres),
                flank_lane_width=draw(metres),
                mirrored=draw(st.booleans()),
                ring_width=draw(st.floats(0, 32)),
                max_distance_difference=draw(st.floats(0.01, 1)),
            ),
            places=draw(st.integers(1, 24)),
            mech_width=width,
            mech_height=draw(st.sampled_from([1.8, 3.0, 4.0]) | st.floats(0.5, height - 2)),
            walker_widths=tuple(sorted((share * width for share in walkers), reverse=True)),
            min_zone_radius=draw(st.floats(1, 5)),
            max_zone_radius=draw(st.floats(5, 14)),
        )
    except ConfigError:
        reject()


@pytest.mark.long
@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(map_configs(), st.integers(0, 2**64 - 1))
def test_every_valid_configuration_gives_connected_maps_without_traps(rules, seed):
    found = examine(rules, seed)
    assert all(found.on_foot.values())
    assert not any(found.trapped.values())
    if rules.terrain.mirrored:
        assert np.array_equal(found.terrain.voxels, found.terrain.voxels[:, ::-1, ::-1])
        for seconds in found.seconds.values():
            assert math.isclose(*seconds, rel_tol=1e-9)
