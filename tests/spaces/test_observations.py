import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, flatten, flatten_space

from echelon_env import BattleEngine
from echelon_env.config.schema import ConfigError
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, observation_bounds
from echelon_env.spaces.agent import AgentSpaces
from echelon_env.spaces.observations import observation_space, split_streams

ROWS = 12
"""Mechs of the observed battle; where there are fewer, some twice."""


@pytest.fixture(scope="module")
def vectors():
    """(ROWS, D) observations at the start of a battle."""
    return np.resize(BattleEngine("skirmish", 1).reset([3])[0], (ROWS, OBSERVATION_DIM))


def test_spaces_of_one_mech():
    flat, streams = observation_space("flat"), observation_space("dict")
    low, high = observation_bounds()
    assert flat == Box(low, high, dtype=np.float32)
    assert isinstance(streams, Dict)
    assert list(streams) == list(STREAMS)
    assert {name: space.shape for name, space in streams.items()} == {
        "self": (44,),
        "objective": (11,),
        "contacts": (12, 23),
        "contacts_mask": (12,),
        "squad": (9, 14),
        "squad_mask": (9,),
        "intel": (8, 13),
        "intel_mask": (8,),
        "comm": (5, 13),
        "comm_mask": (5,),
        "ego_map": (11, 11, 2),
    }
    assert all(space.dtype == np.float32 for space in streams.values())
    assert flatten_space(streams) == flat


def test_spaces_of_a_team():
    low, _ = observation_bounds()
    flat, streams = observation_space("flat", 3), observation_space("dict", 3)
    np.testing.assert_array_equal(flat.low, np.tile(low, 3))
    assert streams["ego_map"].shape == (3, 11, 11, 2)
    np.testing.assert_array_equal(streams["self"].low, np.tile(low[STREAMS["self"].part], (3, 1)))


def test_the_flat_format_is_the_concatenation_of_the_dict_format(vectors):
    flat, streams = observation_space("flat"), observation_space("dict")
    for vector in vectors:
        observation = split_streams(vector)
        assert flat.contains(vector)
        assert streams.contains(observation)
        np.testing.assert_array_equal(flatten(streams, observation), vector)


def test_a_team_is_one_observation(vectors):
    teams = vectors.reshape(4, 3, -1)
    flat, streams = (AgentSpaces(observation=each, mechs=3).observe(teams, None) for each in ("flat", "dict"))
    np.testing.assert_array_equal(flat[1], np.concatenate(teams[1]))
    one = {name: array[1] for name, array in streams.items()}
    assert observation_space("flat", 3).contains(flat[1]) and observation_space("dict", 3).contains(one)
    for name, array in one.items():
        np.testing.assert_array_equal(array, [split_streams(vector)[name] for vector in teams[1]])


def test_an_unknown_format_is_named():
    with pytest.raises(ConfigError, match=r"unknown observation 'vector' \(valid: dict, flat\)"):
        observation_space("vector")
    with pytest.raises(ConfigError, match=r"unknown observation 'Dict'; did you mean 'dict'\?"):
        AgentSpaces(observation="Dict")
