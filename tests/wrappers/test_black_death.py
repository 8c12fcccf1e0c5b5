import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from echelon_env.wrappers import BlackDeath
from wrappers.scripted_env import ScriptedEnv, play

ACTIONS = dict.fromkeys(["blue_0", "red_0", "blue_1"], 0)


def scripted(**kwargs):
    steps = 4
    noise = np.random.default_rng(0)
    return ScriptedEnv(1 + noise.random((steps + 1, 3, 2)), 1 + noise.random((steps, 3)), **kwargs)


def test_dead_agents_observe_zeros_until_the_end():
    inner = scripted(deaths=[2, None, 4])
    env = BlackDeath(inner)
    for _ in range(2):
        results = list(play(env))
        assert len(results) == 5 and env.agents == []
        for time, (observations, rewards, terminations, truncations, infos) in enumerate(results[1:], 1):
            assert list(observations) == list(rewards) == list(infos) == env.possible_agents
            np.testing.assert_array_equal(observations["blue_0"], inner.script[time, 0] if time < 2 else [0, 0])
            np.testing.assert_array_equal(observations["red_0"], inner.script[time, 1])
            np.testing.assert_array_equal(observations["blue_1"], inner.script[time, 2])
            assert rewards["blue_0"] == (inner.rewards[time - 1, 0] if time <= 2 else 0)
            assert rewards["red_0"] == inner.rewards[time - 1, 1]
            assert infos["blue_0"] == {"alive": time < 2}
            assert infos["red_0"] == {"alive": True} and infos["blue_1"] == {"alive": time < 4}
            over = time == 4
            assert terminations == {"blue_0": over, "red_0": False, "blue_1": over}
            assert truncations == {"blue_0": False, "red_0": over, "blue_1": False}


def test_the_episode_ends_when_all_agents_are_dead():
    env = BlackDeath(scripted(deaths=[1, 2, 2]))
    *_, last = results = list(play(env))
    assert len(results) == 3 and all(last[2].values()) and not any(last[3].values())
    with pytest.raises(ResetNeeded):
        env.step({})


def test_agents_missing_at_the_start_are_dead():
    class Late(ScriptedEnv):
        def reset(self, seed=None, options=None):
            observations, _ = super().reset(seed, options)
            self.agents = self.agents[1:]
            return {agent: observations[agent] for agent in self.agents}, {agent: {} for agent in self.agents}

    env = BlackDeath(Late(np.ones((3, 3, 2))))
    results = list(play(env))
    for result in results:
        np.testing.assert_array_equal(result[0]["blue_0"], [0, 0])
        assert result[-1]["blue_0"] == {"alive": False} and result[-1]["red_0"] == {"alive": True}
    assert results[-1][2] == {"blue_0": True, "red_0": False, "blue_1": False}


def test_zeros_have_the_structure_of_the_space():
    env = BlackDeath(scripted(deaths=[1, None, None], space="dict"))
    for result in list(play(env))[1:]:
        assert env.observation_space("blue_0").contains(result[0]["blue_0"])
        assert not np.any(result[0]["blue_0"]["vision"]) and not np.any(result[0]["blue_0"]["near"]["level"])


def test_unknown_agents_and_steps_before_a_reset():
    env = BlackDeath(scripted())
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(ACTIONS)
    env.reset()
    with pytest.raises(ValueError, match=r"actions: expected agents among .*, got \['green_0'\]"):
        env.step(ACTIONS | {"green_0": 0})
