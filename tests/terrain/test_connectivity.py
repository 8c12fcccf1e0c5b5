import math

import numpy as np
import pytest

from echelon_env.catalog import AIR, CONCRETE, DIRT, FOLIAGE, GLASS, REINFORCED
from echelon_env.config import BattleConfig
from echelon_env.terrain.connectivity import clearance, connected, obstacles

STEP = 4  # positions per metre of the oracle's walk


def walk(blocked, start, width):
    """All positions, in steps of 1 / STEP m, that a square footprint of `width` reaches from `start` (x, y)."""
    size = len(blocked)

    def free(x, y):
        x, y = x / STEP - width / 2, y / STEP - width / 2
        if min(x, y) < 0 or max(x, y) + width > size:
            return False
        columns = range(math.floor(x), math.ceil(x + width))
        return not any(blocked[row][column] for row in range(math.floor(y), math.ceil(y + width)) for column in columns)

    first = (round(start[0] * STEP), round(start[1] * STEP))
    reached, stack = ({first}, [first]) if free(*first) else (set(), [])
    while stack:
        x, y = stack.pop()
        for position in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if position not in reached and free(*position):
                reached.add(position)
                stack.append(position)
    return reached


@pytest.mark.parametrize("width", [1.0, 1.5, 2.0, 2.5])
def test_connected_agrees_with_a_walk_in_small_steps(width):
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(60):
        blocked = rng.random((10, 10)) < 0.03
        blocked[rng.integers(3, 7)] |= rng.random(10) < rng.choice([0.4, 0.95])
        points = np.round((width / 2 + rng.random((2, 2)) * (10 - width)) * STEP) / STEP
        start, goal = points
        reached = walk(blocked.tolist(), start, width)
        goal_is_free = bool(walk(blocked.tolist(), goal, width))
        if not (reached and goal_is_free):
            continue  # a mech never stands inside an obstacle
        answers.append((round(goal[0] * STEP), round(goal[1] * STEP)) in reached)
        assert connected(blocked, points, width) == answers[-1]
    assert len(set(answers)) == 2


def test_gap_must_be_as_wide_as_the_mech():
    blocked = np.zeros((12, 12), np.bool_)
    blocked[6] = True
    points = np.array([[5.0, 3.0], [5.0, 9.0]])
    blocked[6, 3:6] = False
    assert connected(blocked, points, 2.5)
    assert not connected(blocked, points, 3.5)


def test_point_inside_an_obstacle_is_connected_with_nothing():
    blocked = np.zeros((8, 8), np.bool_)
    blocked[4, 4] = True
    assert not connected(blocked, np.array([[4.5, 4.5], [1.5, 1.5]]), 1.5)


def test_obstacles_are_the_solids_below_the_head():
    voxels = np.zeros((8, 1, 7), np.uint8)
    voxels[0, 0, :6] = AIR, DIRT, CONCRETE, REINFORCED, GLASS, FOLIAGE
    voxels[3, 0, 6] = CONCRETE
    assert obstacles(voxels, 3.0).tolist() == [[False, False, True, True, True, False, False]]
    assert obstacles(voxels, 3.1).tolist() == [[False, False, True, True, True, False, True]]


def test_clearance_is_that_of_the_rosters_not_of_the_catalogue():
    space = clearance(BattleConfig(blue=("scout",), red=("medium", "light")))
    assert (space.width, space.height) == (2.5, 3.0)
