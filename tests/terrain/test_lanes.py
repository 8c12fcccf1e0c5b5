import math

import numpy as np
import pytest

from echelon_env.scenario import make_config
from echelon_env.terrain.lanes import disc, distance_to_segment, lanes


def test_distance_to_segment():
    distance = distance_to_segment((4, 6), (1.5, 0.5), (4.5, 0.5))
    assert distance[0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert distance[2, 3] == 2.0
    assert distance[1, 0] == pytest.approx(math.sqrt(2))


def test_distance_to_a_segment_without_length():
    assert distance_to_segment((1, 3), (0.5, 0.5), (0.5, 0.5)).tolist() == [[0.0, 1.0, 2.0]]


def test_disc_takes_every_column_that_it_touches():
    mask = disc(9, (4.5, 4.5), 1.4)
    assert mask[4].tolist() == [False, False, False, True, True, True, False, False, False]
    assert mask[3, 3]  # its corner is 0.71 m from the centre
    assert not mask[2].any()
    assert disc(9, (4.5, 4.5), 1.5)[2].tolist() == [c == 4 for c in range(9)]


@pytest.mark.parametrize("seed", range(5))
def test_each_team_has_a_flank_apart_from_its_direct_lane(seed):
    config = make_config("duel", terrain={"direct_lane_width": 4.0, "flank_lane_width": 4.0})
    size = config.terrain.size
    spawns, zone = np.array([[[5.0, 5.0]], [[95.0, 95.0]]]), (50.0, 50.0)
    mask = lanes(config, spawns, zone, 4.0, np.random.default_rng(seed))
    x, y = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5)
    for side in (x + y < size - 20, x + y > size + 20):  # the halves of the two teams
        beside = np.abs(x - y)[mask & side] / math.sqrt(2)
        assert beside.min() < 1
        assert beside.max() > 15


def test_lanes_are_never_narrower_than_a_mech_needs():
    config = make_config("duel", terrain={"direct_lane_width": 4.0, "flank_lane_width": 4.0})
    spawns, zone = np.array([[[5.0, 50.0]], [[95.0, 50.0]]]), (50.0, 50.0)
    wide = lanes(config, spawns, zone, 10.0, np.random.default_rng(0))
    assert wide[45:55, 5:95].all()
