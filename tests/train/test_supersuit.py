"""SuperSuit converts the environment for stable-baselines3; the trainer does not depend on it."""

import gymnasium
import numpy as np
import supersuit
from stable_baselines3 import PPO

import echelon_env
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM


def make_env():
    # SuperSuit's conversion needs the same agents in all steps, so dead mechs must persist
    env = echelon_env.parallel_env("skirmish", dead_agents="persist", max_steps=6)
    return supersuit.pettingzoo_env_to_vec_env_v1(env)


def test_each_mech_is_a_row_that_restarts():
    rows = supersuit.concat_vec_envs_v1(make_env(), 2, base_class="stable_baselines3")
    observations = rows.reset()
    assert observations.shape == (20, OBSERVATION_DIM)
    ended = 0
    for _ in range(14):
        observations, _, dones, _ = rows.step(np.zeros((20, ACTION_DIM), np.float32))
        ended += int(dones.sum())
    assert ended == 2 * 20
    assert np.isfinite(observations).all()


def test_sb3_ppo_trains():
    rows = supersuit.concat_vec_envs_v1(make_env(), 2, base_class="stable_baselines3")
    PPO("MlpPolicy", rows, n_steps=8, batch_size=32, n_epochs=1, device="cpu").learn(160)


def test_copies_of_a_gymnasium_environment():
    rows = supersuit.stable_baselines3_vec_env_v0(gymnasium.make("echelon/DuelOpen-v0"), 2)
    assert rows.reset().shape == (2, OBSERVATION_DIM)
    observations, *_ = rows.step(np.zeros((2, ACTION_DIM), np.float32))
    assert observations.shape == (2, OBSERVATION_DIM)
