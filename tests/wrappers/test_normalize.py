import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from echelon_env.wrappers import NormalizeObservations, NormalizeRewards
from wrappers.scripted_env import ScriptedEnv, play

numbers = st.floats(-1000, 1000, width=32)
EPSILON = 1e-8


@st.composite
def scripts(draw):
    """Arguments of a `ScriptedEnv` of up to four agents and seven steps."""
    steps, agents = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    return {
        "observations": draw(arrays(np.float32, (steps + 1, agents, 2), elements=numbers)),
        "rewards": draw(arrays(np.float64, (steps, agents), elements=numbers)),
        "deaths": draw(st.lists(st.none() | st.integers(1, steps), min_size=agents, max_size=agents)),
        "persist": draw(st.booleans()),
    }


def dies(script, agent):
    """The step in which an agent dies, infinity if it does not."""
    return script["deaths"][agent] or np.inf


def scaled(value, samples, clip):
    mean, var = (0, 1) if len(samples) < 1 else (np.mean(samples, axis=0), np.var(samples, axis=0))
    return np.clip((value - mean) / np.sqrt((var if len(samples) > 1 else 1) + EPSILON), -clip, clip)


@given(scripts(), st.integers(1, 3))
def test_observations_equal_the_oracle(script, episodes):
    steps, agents = script["rewards"].shape
    env = NormalizeObservations(ScriptedEnv(**script), epsilon=EPSILON, clip=5)
    rows = []
    for _ in range(episodes):
        for time, result in enumerate(play(env)):
            living = [i for i in range(agents) if time < dies(script, i) and time < steps]
            rows += [script["observations"][time, i].astype(np.float64) for i in living]
            for agent, observation in result[0].items():
                i = env.possible_agents.index(agent)
                raw = script["observations"][time, i].astype(np.float64)
                expected = scaled(raw, rows, 5)
                if script["persist"] and time >= dies(script, i):
                    expected = np.where(raw == 0, 0, expected)
                if len(rows) == 0 or np.var(rows, axis=0).min() > 1e-3:  # or else rounding is magnified
                    np.testing.assert_allclose(observation, expected, rtol=1e-4, atol=1e-3)
                assert env.observation_space(agent).contains(observation)
    assert env.moments["blue_0"].count == len(rows)
    np.testing.assert_allclose(env.moments["blue_0"].mean, np.mean(rows, axis=0), rtol=1e-9, atol=1e-6)


@given(scripts(), st.integers(1, 3), st.floats(0, 1))
def test_rewards_equal_the_oracle(script, episodes, gamma):
    agents = len(script["deaths"])
    env = NormalizeRewards(ScriptedEnv(**script), gamma=gamma, epsilon=EPSILON, clip=5)
    samples = []
    for _ in range(episodes):
        returns = np.zeros(agents)
        for time, result in enumerate(play(env)):
            if time == 0:
                continue
            returns = gamma * returns + script["rewards"][time - 1]
            samples += [returns[i] for i in range(agents) if time <= dies(script, i)]
            var = np.var(samples) if len(samples) > 1 else 1
            for agent, reward in result[1].items():
                raw = script["rewards"][time - 1, env.possible_agents.index(agent)]
                if var > 1e-3:
                    assert reward == pytest.approx(np.clip(raw / np.sqrt(var + EPSILON), -5, 5), rel=1e-6)
    assert env.moments.count == len(samples)


def script_of(agents=4, steps=6, **kwargs):
    noise = np.random.default_rng(0)
    return ScriptedEnv(3 + noise.normal(size=(steps + 1, agents, 2)), noise.normal(size=(steps, agents)), **kwargs)


def saved(env):
    """The statistics as `save` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        env.save(Path(folder) / "statistics.json")
        return (Path(folder) / "statistics.json").read_text()


def test_returns_restart_when_the_episode_is_abandoned():
    env = NormalizeRewards(ScriptedEnv(np.zeros((3, 2, 1)), [[1, 2], [3, 4]]), gamma=0.5)
    for steps in (1, 2):
        list(play(env, steps))
    assert env.moments.mean == pytest.approx(np.mean([1, 2, 1, 2, 3.5, 5]))


@pytest.mark.parametrize("wrapper", [NormalizeObservations, NormalizeRewards])
def test_frozen_statistics_stay(wrapper):
    env = wrapper(script_of())
    list(play(env))
    env.freeze()
    before = saved(env)
    first = list(play(env))
    assert env.frozen and saved(env) == before
    np.testing.assert_equal(list(play(env)), first)
    env.unfreeze()
    list(play(env))
    assert not env.frozen and saved(env) != before


def test_returns_accumulate_while_frozen():
    env = NormalizeRewards(ScriptedEnv(np.zeros((3, 2, 1)), [[1, 2], [3, 4]]), gamma=0.5)
    env.freeze()
    list(play(env, 1))
    env.unfreeze()
    env.step(dict.fromkeys(env.agents, 0))
    assert env.moments.mean == pytest.approx((3.5 + 5) / 2)


def test_files_of_other_wrappers_and_spaces_change_nothing(tmp_path):
    env, path = NormalizeObservations(script_of(space="dict")), tmp_path / "statistics.json"
    list(play(env))
    before = saved(env)
    wide = NormalizeObservations(ScriptedEnv(np.zeros((2, 4, 5)), space="dict"))
    for other, message in [
        (NormalizeRewards(script_of()), "got kind 'NormalizeRewards'"),
        (NormalizeObservations(script_of()), r"expected moments of \['blue_0/near/self', .*\], got \['blue_0'\]"),
        (wide, r"blue_0/near/self: expected rows of shape \[2\], got \[5\]"),
    ]:
        other.save(path)
        with pytest.raises(ValueError, match=message):
            env.load(path)
        assert saved(env) == before


class TwoKinds(ScriptedEnv):
    """Reds observe only the first number."""

    def observation_space(self, agent):
        return self.space if agent.startswith("blue") else Box(-np.inf, np.inf, (1,), np.float32)

    def observe(self, agents):
        rows = super().observe(agents)
        return {agent: row if agent.startswith("blue") else row[:1] for agent, row in rows.items()}


def test_agents_with_equal_spaces_share_statistics():
    noise = np.random.default_rng(0).normal(size=(7, 4, 2))
    env = NormalizeObservations(TwoKinds(noise))
    list(play(env))
    np.testing.assert_allclose(env.moments["blue_1"].mean, noise[:-1, [0, 2]].mean(axis=(0, 1)), rtol=1e-6)
    np.testing.assert_allclose(env.moments["red_0"].mean, noise[:-1, [1, 3], :1].mean(axis=(0, 1)), rtol=1e-6)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.moments["blue_0"] is twin.moments["blue_1"]


@pytest.mark.parametrize(
    ("wrapper", "arguments", "message"),
    [
        (NormalizeObservations, {"epsilon": 0}, "epsilon: expected a finite number above 0, got 0"),
        (NormalizeObservations, {"clip": -1}, "clip: expected a finite number above 0 or None, got -1"),
        (NormalizeRewards, {"gamma": 1.1}, "gamma: expected a number from 0 to 1, got 1.1"),
        (NormalizeRewards, {"gamma": float("nan")}, "gamma: expected"),
    ],
)
def test_bad_arguments(wrapper, arguments, message):
    with pytest.raises(ValueError, match=message):
        wrapper(script_of(), **arguments)


def test_non_finite_values_are_refused():
    env = script_of()
    env.script[2, 1, 0] = np.nan
    with pytest.raises(ValueError, match="rows: expected finite"):
        list(play(NormalizeObservations(env)))
