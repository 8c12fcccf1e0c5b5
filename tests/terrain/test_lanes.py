import dataclasses
import math

import numpy as np
import pytest

from echelon_env.config.scenario import make_config
from echelon_env.terrain.lanes import BENT_SHARE, STRAIGHT_SHARE, distance_to_segment, lanes


def test_distance_to_segment():
    distance = distance_to_segment((4, 6), (1.5, 0.5), (4.5, 0.5))
    assert distance[0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert distance[2, 3] == 2.0
    assert distance[1, 0] == pytest.approx(math.sqrt(2))


NARROW = {"direct_lane_width": 4.0, "flank_lane_width": 4.0}
SPAWNS, ZONE = np.array([[[5.0, 5.0]], [[95.0, 95.0]]]), (50.0, 50.0)
X, Y = np.meshgrid(np.arange(100) + 0.5, np.arange(100) + 0.5)
HALVES = (X + Y < 80, X + Y > 120)  # of the two teams


def beside(mask, half):
    """Distance in metres of a mask's columns, in one half of the map, from the straight line."""
    return np.abs(X - Y)[mask & half] / math.sqrt(2)


@pytest.mark.parametrize("seed", range(5))
def test_direct_lanes_bend_so_that_no_line_of_sight_runs_along_them(seed):
    direct, _ = lanes(make_config("duel").map_config, SPAWNS, ZONE, np.random.default_rng(seed))
    straight = distance_to_segment((100, 100), (5.0, 5.0), (95.0, 95.0)) < 0.5
    for half in HALVES:
        assert not direct[straight & half].all()
        assert 0.6 * 8 + 4 - 1 < beside(direct, half).max() < 8 + 4 + 1


@pytest.mark.parametrize("difference", [0.01, 0.05, 0.15, 0.5])
def test_bends_respect_the_difference_that_is_permitted(difference):
    """Despite the bends, the lengths of the teams' lanes stay within the permitted difference."""
    terrain = {**NARROW, "max_distance_difference": difference}
    config = make_config("duel", terrain=terrain).map_config
    longest = (1 + BENT_SHARE * difference) / (1 + STRAIGHT_SHARE * difference) * math.dist(*SPAWNS[:, 0]) / 2
    for seed in range(30):
        direct, _ = lanes(config, SPAWNS, ZONE, np.random.default_rng(seed))
        for half, spawn in zip(HALVES, SPAWNS[:, 0], strict=True):
            middle = (np.abs(X + Y - sum(spawn) / 2 - 50) < 1) & direct & half
            rows, columns = np.nonzero(middle)
            x, y = columns.mean() + 0.5, rows.mean() + 0.5
            way = math.dist(spawn, (x, y)) + math.dist((x, y), ZONE)
            assert way <= longest + 0.5


def test_lanes_are_never_narrower_than_the_widest_mech_needs():
    for width in (2.0, 10.0):
        config = dataclasses.replace(
            make_config("duel", terrain={**NARROW, "spawn_spacing": 16.0}).map_config,
            mech_width=width,
            walker_widths=(),
        )
        spawns = np.array([[[5.0, 50.0]], [[95.0, 50.0]]])
        for lane in lanes(config, spawns, ZONE, np.random.default_rng(0)):
            across = lane[:, 5:95].sum(axis=0)
            assert across.min() >= max(4.0, width * math.sqrt(2))
