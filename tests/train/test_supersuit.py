"""SuperSuit converts the environment for stable-baselines3; the trainer does not depend on it."""

import supersuit
from stable_baselines3 import PPO

import echelon_env


def make_env():
    # SuperSuit's conversion needs the same agents in all steps, so dead mechs must persist
    env = echelon_env.parallel_env("skirmish", dead_agents="persist", max_steps=6)
    return supersuit.pettingzoo_env_to_vec_env_v1(env)


def test_sb3_ppo_trains():
    rows = supersuit.concat_vec_envs_v1(make_env(), 2, base_class="stable_baselines3")
    PPO("MlpPolicy", rows, n_steps=8, batch_size=32, n_epochs=1, device="cpu").learn(160)
