import math

import numpy as np
import pytest

from echelon_env.config.catalog import CONCRETE, DEBRIS, DIRT, FOLIAGE, GLASS, LAVA, WATER
from echelon_env.terrain.statistics import map_statistics
from support.handmade import SIZE, fill, flat_map

AREA = SIZE * SIZE


def zone_columns() -> int:
    centres = np.arange(SIZE) + 0.5 - SIZE / 2
    return int((np.hypot(centres[:, None], centres) <= 5).sum())


def test_bare_ground() -> None:
    statistics = map_statistics(flat_map())
    for name in ("cover", "solid", "foliage", "glass", "hazard", "solid_height", "roughness"):
        assert getattr(statistics, name) == 0
    assert statistics.reachable == 1
    assert statistics.lane_count == 1
    assert statistics.zone_distance == pytest.approx(18 * math.sqrt(2), abs=1.5)
    assert statistics.zone_distance_difference < 0.1


def test_shares_of_columns() -> None:
    terrain = flat_map()
    fill(terrain, CONCRETE, (0, 4), (20, 24), (0, 6))
    fill(terrain, GLASS, (0, 4), (24, 26), (0, 2))
    fill(terrain, FOLIAGE, (0, 4), (26, 27), (0, 3))
    fill(terrain, FOLIAGE, (0, 4), (28, 29))  # lower than an eye
    fill(terrain, FOLIAGE, (0, 4), (32, 33), (5, 6))  # higher
    for row, material in enumerate((WATER, LAVA, DEBRIS)):
        fill(terrain, material, (40, 48), (20 + row, 21 + row))
    fill(terrain, DIRT, (40, 48), (23, 24))
    fill(terrain, CONCRETE, (23, 25), (23, 25), (0, 3))  # in the zone
    statistics = map_statistics(terrain)
    assert statistics.cover == pytest.approx((16 + 4) / (AREA - zone_columns()))
    assert statistics.solid == pytest.approx((16 + 8 + 4) / AREA)
    assert statistics.glass == pytest.approx(8 / AREA)
    assert statistics.foliage == pytest.approx(12 / AREA)
    assert statistics.hazard == pytest.approx(24 / AREA)
    assert statistics.solid_height == pytest.approx((16 * 6 + 8 * 2 + 4 * 3) / 28)


def test_roughness_is_the_mean_step() -> None:
    terrain = flat_map()
    fill(terrain, CONCRETE, (10, 14), (30, 32), (0, 5))
    assert map_statistics(terrain).roughness == pytest.approx(5 * 2 * (4 + 2) / (2 * SIZE * (SIZE - 1)))
    fill(terrain, FOLIAGE, (10, 14), (30, 32), (0, 5))
    assert map_statistics(terrain).roughness == 0


def test_sight_ends_at_what_blocks_it() -> None:
    bare = map_statistics(flat_map()).sight_line
    assert SIZE / 4 < bare < SIZE / 2
    for material, blocks in ((FOLIAGE, True), (CONCRETE, True), (GLASS, False)):
        terrain = flat_map()
        fill(terrain, material, (0, 48), (22, 23), (0, 4))
        assert (map_statistics(terrain).sight_line < 0.85 * bare) == blocks
    low = flat_map()
    fill(low, CONCRETE, (0, 48), (21, 22))
    assert map_statistics(low).sight_line == bare
    narrow = flat_map()
    for y in range(0, 48, 5):  # corridors from west to east, 4 m wide, whose second row is measured from
        fill(narrow, CONCRETE, (0, 48), (y, y + 1), (0, 3))
    # along x half of the map, across 1 m to the one side and 2 m to the other, and little obliquely
    assert 3 < map_statistics(narrow).sight_line < 6


def test_one_way_for_each_gap_that_the_mech_fits_through() -> None:
    terrain = flat_map()
    assert map_statistics(terrain).lane_count == 1
    y, x = np.indices((SIZE, SIZE)) + 0.5
    wall = np.abs(np.hypot(x - 6, y - 6) - 12.7) < 1  # a quarter of a circle about area A, half way
    terrain.voxels[:4, wall] = CONCRETE
    walled_in = map_statistics(terrain)
    assert walled_in.lane_count == 0.5  # none and one
    assert math.isinf(walled_in.zone_distance)
    fill(terrain, 0, (0, 48), (5, 8), (0, 4))  # a gate of 3 m
    assert map_statistics(terrain).lane_count == 1
    fill(terrain, 0, (5, 8), (0, 48), (0, 4))
    assert map_statistics(terrain).lane_count == 1.5
    fill(terrain, 0, (14, 15), (0, 48), (0, 4))  # a gap, too narrow
    assert map_statistics(terrain).lane_count == 1.5


def test_the_way_around_a_wall() -> None:
    terrain = flat_map()
    fill(terrain, CONCRETE, (0, 40), (14, 15), (0, 4))
    statistics = map_statistics(terrain)
    # mechs pass with their middles 1.5 m beside the wall's end
    around = math.dist((6, 6), (41.5, 12.5)) + 4 + math.dist((41.5, 16.5), (24, 24))
    straight = 18 * math.sqrt(2)
    assert statistics.zone_distance == pytest.approx((around + straight) / 2, rel=0.09)
    assert statistics.zone_distance_difference == pytest.approx(around / straight - 1, rel=0.25)


@pytest.mark.parametrize(("top", "reachable"), [(1, True), (2, False)])
def test_steps_of_one_metre_are_climbed(top: int, reachable: bool) -> None:
    terrain = flat_map()
    fill(terrain, CONCRETE, (30, 44), (4, 18), (0, top))
    share = map_statistics(terrain).reachable
    assert share == (1 if reachable else pytest.approx(1 - 14 * 14 / AREA))


def test_what_is_too_narrow_is_not_reached() -> None:
    terrain = flat_map()
    fill(terrain, CONCRETE, (30, 42), (4, 16), (0, 4))
    fill(terrain, 0, (32, 34), (4, 16), (0, 4))  # 2 m, the mech takes 3 m
    assert map_statistics(terrain).reachable == pytest.approx(1 - 144 / AREA)
    fill(terrain, 0, (32, 35), (4, 16), (0, 4))
    assert map_statistics(terrain).reachable == pytest.approx(1 - (144 - 36) / AREA)
