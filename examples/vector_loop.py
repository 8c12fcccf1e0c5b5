"""Gymnasium's vector environment: sixteen duels on one engine, and episode statistics from the infos."""

import argparse

import gymnasium
import numpy as np

import echelon_env  # noqa: F401  (registers the environments)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--decisions", type=int, default=600)
arguments = parser.parse_args()

envs = gymnasium.make_vec(
    "echelon/Duel-v1", num_envs=16, vectorization_mode="vector_entry_point", control="team", opponent="trivial", maps=50
)
envs.action_space.seed(0)
observations, infos = envs.reset(seed=0)
returns, lost = [], 0
for _ in range(arguments.decisions):
    # The default mode is NEXT_STEP: after an end the next step only starts a new battle; learners skip that step.
    observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    ended = terminated | truncated
    returns += infos["episode_statistics"][ended, 0].tolist()  # envs.metadata["episode_statistics"] names the columns
    lost += int(np.sum(infos["outcome"][ended] == -1))
print(
    f"{len(returns)} battles ended, {lost} lost, mean return {np.mean(returns):.2f}; observations {observations.shape}"
)
envs.close()
