import numpy as np
import pytest
from gymnasium.spaces import Box

from echelon_env.wrappers import StackObservations
from wrappers.scripted_env import ScriptedEnv, play


def numbered(steps=4, agents=2, **kwargs):
    """Agent i observes [10 i + time, -1] at a time."""
    script = np.full((steps + 1, agents, 2), -1.0)
    script[:, :, 0] = 10 * np.arange(agents) + np.arange(steps + 1)[:, None]
    return ScriptedEnv(script, **kwargs)


def test_the_last_observations_the_oldest_first():
    env = StackObservations(numbered(), 3)
    expected = [[10, 10, 10], [10, 10, 11], [10, 11, 12], [11, 12, 13], [12, 13, 14]]
    for _ in range(2):
        stacks = [result[0]["red_0"] for result in play(env)]
        np.testing.assert_array_equal(np.array(stacks)[:, :, 0], expected)
        assert all(env.observation_space("red_0").contains(stack) for stack in stacks)
        assert stacks[0].dtype == np.float32


def test_a_reset_clears_the_stacks_of_an_abandoned_episode():
    env = StackObservations(numbered(), 2)
    list(play(env, 3))
    np.testing.assert_array_equal(env.reset()[0]["blue_0"][:, 0], [0, 0])


def test_dead_agents_leave_with_a_full_stack():
    env = StackObservations(numbered(deaths=[2, None]), 2)
    results = list(play(env))
    np.testing.assert_array_equal(results[2][0]["blue_0"][:, 0], [1, 2])
    assert results[2][2] == {"blue_0": True, "red_0": False}
    assert [set(result[0]) for result in results[3:]] == [{"red_0"}, {"red_0"}]


class Pictures(ScriptedEnv):
    def observation_space(self, agent):
        return Box(3, 255, (4, 5, 3), np.uint8)

    def observe(self, agents):
        return {agent: np.full((4, 5, 3), 100 + self.time, np.uint8) for agent in agents}


def test_any_shape_and_type():
    env = StackObservations(Pictures(np.zeros((3, 2, 1))), 2)
    space = env.observation_space("red_0")
    assert space.shape == (2, 4, 5, 3) and space.dtype == np.uint8
    assert (space.low == 3).all() and (space.high == 255).all()
    for result in play(env):
        assert space.contains(result[0]["red_0"])


@pytest.mark.parametrize(
    ("space", "arguments", "message"),
    [
        ("dict", {"stack_size": 2}, "observation space of 'blue_0': expected a Box, got Dict"),
        ("box", {"stack_size": 0}, "stack_size: expected an integer of at least 1, got 0"),
    ],
)
def test_bad_arguments(space, arguments, message):
    with pytest.raises(ValueError, match=message):
        StackObservations(numbered(space=space), **arguments)
