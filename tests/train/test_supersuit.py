"""SuperSuit's conversion stays usable for those who compose wrappers; our trainer does not sit on it."""

import numpy as np
import supersuit
from stable_baselines3 import PPO

import echelon_env
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM


def make():
    # The dead persist: SuperSuit's conversion needs the same agents from the first step to the last.
    env = echelon_env.parallel_env("skirmish", dead_agents="persist", max_steps=6)
    return supersuit.pettingzoo_env_to_vec_env_v1(env)


def test_every_mech_becomes_a_row_that_restarts():
    rows = supersuit.concat_vec_envs_v1(make(), 2, base_class="stable_baselines3")
    observations = rows.reset()
    assert observations.shape == (20, OBSERVATION_DIM)
    ended = 0
    for _ in range(14):
        observations, _, dones, _ = rows.step(np.zeros((20, ACTION_DIM), np.float32))
        ended += int(dones.sum())
    assert ended == 2 * 20
    assert np.isfinite(observations).all()


def test_stock_ppo_trains_on_it():
    rows = supersuit.concat_vec_envs_v1(make(), 2, base_class="stable_baselines3")
    PPO("MlpPolicy", rows, n_steps=8, batch_size=32, n_epochs=1, device="cpu").learn(160)
