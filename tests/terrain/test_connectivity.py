import math

import numpy as np
import pytest

from echelon_env.config.catalog import AIR, CONCRETE, DIRT, FOLIAGE, GLASS, REINFORCED
from echelon_env.terrain.connectivity import obstacles, open_pockets


def test_obstacles_are_the_solids_below_the_head():
    voxels = np.zeros((8, 1, 7), np.uint8)
    voxels[0, 0, :6] = AIR, DIRT, CONCRETE, REINFORCED, GLASS, FOLIAGE
    voxels[3, 0, 6] = CONCRETE
    assert obstacles(voxels, 3.0).tolist() == [[False, False, True, True, True, False, False]]
    assert obstacles(voxels, 3.1).tolist() == [[False, False, True, True, True, False, True]]


def walks(floor, size, home):
    """On an open map with columns `floor` high: windows that a walker reaches from home, and from which it returns."""
    rows, columns = (length - size + 1 for length in floor.shape)
    stand = {(y, x): floor[y : y + size, x : x + size].max() for y in range(rows) for x in range(columns)}

    def spread(may_go):
        found, stack = {home}, [home]
        while stack:
            y, x = stack.pop()
            for place in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if place in stand and place not in found and may_go((y, x), place):
                    found.add(place)
                    stack.append(place)
        return found

    there = spread(lambda here, place: stand[place] <= stand[here] + 1)
    back = spread(lambda here, place: stand[here] <= stand[place] + 1)
    return there, back


def of_heights(floor):
    return np.where(np.arange(12)[:, None, None] < floor, CONCRETE, AIR).astype(np.uint8)


@pytest.mark.parametrize("width", [1.0, 1.5, 2.5])
def test_after_opening_every_walk_from_home_leads_back(width):
    rng = np.random.default_rng(1)
    size = math.ceil(width)
    found = 0
    for _ in range(60):
        coarse = rng.choice([0, 0, 0, 1, 2, 3, 5], (10 // size + 3, 10 // size + 3))
        floor = np.repeat(np.repeat(coarse, size, axis=0), size, axis=1)
        home = (1 + width / 2, 2 + width / 2)
        floor[2 : 2 + size, 1 : 1 + size] = 0
        cleared = open_pockets(of_heights(floor), home, (width,), 2.0)
        there, back = walks(floor, size, (2, 1))
        trapped = bool(there - back)
        found += trapped
        assert cleared.any() == trapped
        there, back = walks(np.where(cleared, 0, floor), size, (2, 1))
        assert there <= back
    assert found > 5


def test_a_pit_is_opened_where_the_wall_is_thinnest():
    floor = np.zeros((20, 20), np.int64)
    floor[4:16, 4:16] = 3
    floor[8:14, 6:14] = 0  # two columns of wall to low x and high x, four to low y, two to high y
    floor[6, 4:16], floor[5, 4:16], floor[4, 4:16] = 3, 2, 1  # climbed from low y, and jumped down from
    floor[8:14, 14] = 0  # one column of wall to high x
    cleared = open_pockets(of_heights(floor), (1.5, 1.5), (3.0,), 4.0)
    assert cleared[8:14, 15].any()
    assert np.count_nonzero(cleared[:, 15]) == 3
    assert not cleared[4:8].any()
    assert not cleared[:, 4:6].any()


@pytest.mark.parametrize(("roof", "passable"), [(2, False), (3, False), (4, True), (6, True)])
def test_a_roof_closes_a_way_that_is_too_low(roof, passable):
    """From home three steps lead up onto walls 9 m high and down into a room whose exit leads under a roof."""
    floor = np.zeros((12, 16), np.int64)
    floor[:7, 4:12] = 9
    floor[2:5, 4:12] = [1, 2, 2, 0, 0, 0, 0, 0]
    voxels = of_heights(floor)
    voxels[roof, 2:5, 10:12] = CONCRETE
    cleared = open_pockets(voxels, (1.5, 3.5), (3.0,), 4.0)
    assert cleared.any() == (not passable)
