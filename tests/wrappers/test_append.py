import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from echelon_env.wrappers import AgentOneHot, TimeAwareObservation
from wrappers.scripted_env import ScriptedEnv, play


def counting(**kwargs):
    return ScriptedEnv(np.arange(5 * 3 * 2).reshape(5, 3, 2), **kwargs)


def test_the_one_hot_of_the_agent():
    inner = counting(deaths=[2, None, None])
    env = AgentOneHot(inner)
    assert env.observation_space("blue_0").shape == (5,)
    for time, result in enumerate(play(env)):
        for i, agent in enumerate(env.possible_agents):
            if agent in result[0]:
                np.testing.assert_array_equal(result[0][agent], [*inner.script[time, i], *np.eye(3)[i]])
                assert result[0][agent].dtype == np.float32
                assert env.observation_space(agent).contains(result[0][agent])


def test_the_elapsed_share_of_the_time():
    inner = counting()
    env = TimeAwareObservation(inner, 3)
    for _ in range(2):
        for time, result in enumerate(play(env)):
            for i, agent in enumerate(env.possible_agents):
                expected = np.array([*inner.script[time, i], min(1, time / 3)], np.float32)
                np.testing.assert_array_equal(result[0][agent], expected)
                assert env.observation_space(agent).contains(result[0][agent])


def test_the_bounds_of_the_observation_are_kept():
    class Bounded(ScriptedEnv):
        def observation_space(self, agent):
            return Box(np.array([-1.0, 2]), np.array([5.0, 7]), dtype=np.float64)

    space = TimeAwareObservation(Bounded(np.zeros((2, 1, 2))), 3).observation_space("blue_0")
    assert space.dtype == np.float64
    np.testing.assert_array_equal(space.low, [-1, 2, 0])
    np.testing.assert_array_equal(space.high, [5, 7, 1])


@pytest.mark.parametrize("space", [Box(0, 1, (2, 2)), Box(0, 9, (2,), np.int64), Discrete(2)], ids=str)
@pytest.mark.parametrize("wrap", [AgentOneHot, lambda env: TimeAwareObservation(env, 3)])
def test_other_spaces(space, wrap):
    env = counting()
    env.space = space
    with pytest.raises(ValueError, match=r"observation space of 'blue_0': expected a Box.*, got (Box|Discrete)"):
        wrap(env)


@pytest.mark.parametrize("limit", [0, 2.5])
def test_bad_limits(limit):
    with pytest.raises(ValueError, match="max_cycles: expected an integer of at least 1"):
        TimeAwareObservation(counting(), limit)
