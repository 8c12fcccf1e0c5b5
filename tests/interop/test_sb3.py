"""Stable-Baselines3 and sb3-contrib: on the Gymnasium environments and through SuperSuit.

The known faults of SuperSuit (docs/reference/libraries.md) are asserted, so that the page is corrected when they go.
"""

import warnings

import gymnasium
import numpy as np
import pytest
import supersuit
from gymnasium.error import ResetNeeded
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

import echelon_env
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM

SHORT = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "device": "cpu"}
MECHS = 10


def battle(**options):
    return echelon_env.parallel_env("skirmish", **({"dead_agents": "persist", "max_steps": 6} | options))


def rows(env, battles=2, **options):
    return supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(env), battles, **options)


def sb3_rows(env, battles=2):
    return rows(env, battles, base_class="stable_baselines3")


def learn(algorithm, policy, env, steps=64, **options):
    """Train briefly and check that the parameters have changed."""
    model = algorithm(policy, env, **SHORT, **options)
    before = [parameter.clone() for parameter in model.policy.parameters()]
    model.learn(steps)
    assert model.num_timesteps >= steps
    assert any((old != new).any() for old, new in zip(before, model.policy.parameters(), strict=True))


# The Gymnasium environments


@pytest.mark.parametrize("action", ["continuous", "multi_discrete"])
@pytest.mark.parametrize(("observation", "policy"), [("flat", "MlpPolicy"), ("dict", "MultiInputPolicy")])
def test_ppo(observation, policy, action):
    env = gymnasium.make("echelon/DuelOpen-v1", observation=observation, action=action, max_steps=10)
    with warnings.catch_warnings():  # it advises flattening streams that have rows; the policy does that
        warnings.simplefilter("ignore")
        check_env(env)
    learn(PPO, policy, env, seed=0)


@pytest.mark.parametrize("control", ["pilot", "team"])
def test_maskable_ppo_acts_within_the_masks(control):
    options = {"action": "multi_discrete", "control": control, "max_steps": 10}
    envs = make_vec_env("echelon/Skirmish-v1", 2, env_kwargs=options, seed=0)
    learn(MaskablePPO, "MlpPolicy", envs, seed=0)
    model = MaskablePPO("MlpPolicy", envs, **SHORT, seed=0)
    starts = np.cumsum([0, *envs.action_space.nvec[:-1]])
    observations = envs.reset()
    for _ in range(12):
        masks = np.stack(envs.env_method("action_masks"))
        actions, _ = model.predict(observations, action_masks=masks)
        assert np.take_along_axis(masks, starts + actions, axis=1).all()
        observations, *_ = envs.step(actions)


def test_sb3_reports_what_it_does_not_support():
    with pytest.raises(AssertionError, match="only supports"):
        PPO("MlpPolicy", gymnasium.make("echelon/Duel-v1", action="dict"))
    nested = gymnasium.make("echelon/Duel-v1", action="multi_discrete", mask_in_observation=True)
    with pytest.raises(NotImplementedError, match="Nested"):
        PPO("MultiInputPolicy", nested)


# SuperSuit


@pytest.mark.parametrize("options", [{}, {"action": "multi_discrete"}])
@pytest.mark.parametrize("stack", [None, supersuit.frame_stack_v1, supersuit.frame_stack_v2])
def test_supersuit_rows_train(stack, options):
    env = battle(**options) if stack is None else stack(battle(**options), 2)
    envs = sb3_rows(env)
    assert envs.observation_space.shape == (OBSERVATION_DIM * (1 if stack is None else 2),)
    learn(PPO, "MlpPolicy", envs, steps=2 * MECHS * 16)


def test_supersuit_gives_the_last_observation_of_a_battle():
    envs = sb3_rows(supersuit.frame_stack_v2(battle(), 2))
    envs.reset()
    for _ in range(6):
        observations, _, dones, infos = envs.step(np.ones((2 * MECHS, ACTION_DIM), np.float32))
    assert dones.all()
    first, last = observations[0], infos[0]["terminal_observation"]
    assert np.array_equal(first[:OBSERVATION_DIM], first[OBSERVATION_DIM:])  # version 2 repeats the first frame
    assert not np.array_equal(last[:OBSERVATION_DIM], last[OBSERVATION_DIM:])


# SuperSuit's and the conversion's known faults


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_fault_black_death_never_ends(dead_agents):
    env = supersuit.black_death_v3(battle(dead_agents=dead_agents))
    env.reset(seed=0)
    actions = {agent: np.zeros(ACTION_DIM, np.float32) for agent in env.possible_agents}
    for _ in range(6):
        _, _, terminations, truncations, _ = env.step(actions)
        assert not any(terminations.values()) and not any(truncations.values())
    assert not env.unwrapped.agents
    with pytest.raises(ResetNeeded):
        env.step(actions)


def test_fault_a_seed_of_the_algorithm_is_not_passed_on():
    with pytest.raises(AttributeError, match="seed"):
        PPO("MlpPolicy", sb3_rows(battle()), **SHORT, seed=0)
    envs = sb3_rows(battle())
    first, _ = envs.venv.reset(seed=3)
    again, _ = envs.venv.reset(seed=3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:MECHS], first[MECHS:])


def test_fault_processes_repeat_each_others_seeds():
    envs = rows(battle(), 4, num_cpus=2)
    try:
        observations, _ = envs.reset(seed=5)
    finally:
        envs.close()
    places = observations.reshape(4, -1)
    same = [(i, j) for i in range(4) for j in range(i) if np.array_equal(places[i], places[j])]
    assert same == [(2, 1)]


def test_fault_truncations_look_like_terminations_and_final_infos_are_overwritten():
    envs = sb3_rows(battle())
    envs.reset()
    for _ in range(6):
        _, _, dones, infos = envs.step(np.ones((2 * MECHS, ACTION_DIM), np.float32))
    assert dones.all()
    assert "TimeLimit.truncated" not in infos[0]
    assert infos[0]["reason"] == "" and not infos[0]["episode_statistics"].any()
