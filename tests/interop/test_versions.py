"""What the oldest and the newest Gymnasium, PettingZoo, NumPy and Numba must all let through."""

import warnings

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test

import echelon_env
from echelon_env.wrappers import single, vector

FORMATS = [
    {"observation": observation, "action": action, "mask_in_observation": masked}
    for observation in ("flat", "dict")
    for action in ("continuous", "dict", "multi_discrete", "discrete")
    for masked in (False, True)
    if action.endswith("discrete") or not masked
]
CHECKED = [
    formats
    for formats in FORMATS
    if hasattr(pettingzoo, "register") or not formats["mask_in_observation"] or formats["action"] == "discrete"
]
"""Before its version 1.27 PettingZoo's checker takes a mask in the observation for that of a single choice."""

SHORT = {"max_steps": 12}


@pytest.mark.parametrize("formats", FORMATS, ids=lambda formats: "-".join(map(str, formats.values())))
@pytest.mark.parametrize("control", ["pilot", "team"])
def test_gymnasiums_checker(control, formats):
    check_env(gymnasium.make("echelon/Skirmish-v1", control=control, **formats, **SHORT).unwrapped)


@pytest.mark.parametrize("formats", CHECKED, ids=lambda formats: "-".join(map(str, formats.values())))
@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_pettingzoos_checkers(dead_agents, formats):
    def make():
        return echelon_env.parallel_env("skirmish", dead_agents=dead_agents, **formats, **SHORT)

    with warnings.catch_warnings():  # they warn of spaces that are not [0, 1], of images, and of dict spaces
        warnings.simplefilter("ignore")
        parallel_api_test(make(), num_cycles=30)
        parallel_seed_test(make)
        api_test(echelon_env.env("skirmish", dead_agents=dead_agents, **formats, **SHORT), num_cycles=30)


@pytest.mark.parametrize("control", ["pilot", "team"])
def test_a_battle_in_gymnasium(control):
    env = gymnasium.make("echelon/Skirmish-v1", control=control, render_mode="rgb_array", **SHORT)
    env = single.NormalizeObservations(gymnasium.wrappers.RecordEpisodeStatistics(env))
    env.reset(seed=0)
    done = False
    while not done:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        done = terminated or truncated
    statistics = dict(zip(env.metadata["episode_statistics"], info["episode_statistics"], strict=True))
    assert info["episode"]["l"] == statistics["l"] <= 12
    assert info["episode"]["r"] == pytest.approx(statistics["r"])
    assert env.render().dtype == np.uint8


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_battles_in_gymnasiums_vector_environment(mode):
    envs = gymnasium.make_vec(
        "echelon/DuelOpen-v1", 3, vectorization_mode="vector_entry_point", autoreset_mode=mode, **SHORT
    )
    envs = vector.NormalizeRewards(vector.NormalizeObservations(envs))
    envs.reset(seed=0)
    ends = 0
    for _ in range(30):
        _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
        ended = terminated | truncated
        ends += int(ended.sum())
        if mode == AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
    assert ends == 6
    envs.close()


def test_battles_in_gymnasiums_own_vector_environments():
    envs = gymnasium.make_vec("echelon/DuelOpen-v1", 2, vectorization_mode="sync", **SHORT)
    observations, _ = envs.reset(seed=0)
    native = echelon_env.BattleVectorEnv("duel-open", 2, **SHORT)
    assert np.array_equal(observations, native.reset(seed=0)[0])
    actions = envs.action_space.sample()
    assert np.array_equal(envs.step(actions)[0], native.step(actions)[0])


def test_a_battle_in_pettingzoo():
    env = echelon_env.parallel_env("skirmish", **SHORT)
    env.reset(seed=0)
    steps = 0
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        steps += 1
    assert steps == 12
    turns = echelon_env.env("skirmish", **SHORT)
    turns.reset(seed=0)
    for agent in turns.agent_iter():
        *_, termination, truncation, _ = turns.last()
        turns.step(None if termination or truncation else turns.action_space(agent).sample())
    assert not turns.agents


def test_pettingzoos_registry_where_there_is_one():
    if hasattr(pettingzoo, "register"):
        env = pettingzoo.make("parallel", "echelon/Skirmish-v1", **SHORT)
        assert len(env.possible_agents) == 10
    else:
        assert tuple(map(int, pettingzoo.__version__.split(".")[:2])) < (1, 27)
