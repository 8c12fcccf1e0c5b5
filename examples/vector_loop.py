"""Gymnasium's vector environment: sixteen duels on one engine."""

import gymnasium
import numpy as np

import echelon_env  # noqa: F401  (registers the environments)

envs = gymnasium.make_vec(
    "echelon/Duel-v0", num_envs=16, vectorization_mode="vector_entry_point", control="team", opponent="trivial"
)
observations, infos = envs.reset(seed=0)
ended = 0
for _ in range(600):
    observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    ended += int(np.sum(terminated | truncated))
print(f"{ended} battles ended, observations {observations.shape}")
envs.close()
