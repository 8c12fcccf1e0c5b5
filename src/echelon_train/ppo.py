"""The algorithm: sb3-contrib's RecurrentPPO, which can go on in another environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.vec_env import VecEnv


class BattlePPO(RecurrentPPO):  # type: ignore[misc]
    """RecurrentPPO whose environment can be replaced between two rollouts, also by one with another number of rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.before_rollout: Callable[[], object] = lambda: None
        """Called before every rollout, and so after the update that follows the last one."""

    def replace_env(self, env: VecEnv, gamma: float) -> None:
        """Begin anew in another environment; the weights, the optimizer's state and all counters stay as they are.

        The old environment is left open.
        """
        self.n_envs = env.num_envs  # the policy knows nothing of rows; only what is set here does
        self.set_env(env)
        self.gamma = gamma
        lstm = self.policy.lstm_actor
        zeros = torch.zeros(lstm.num_layers, self.n_envs, lstm.hidden_size, device=self.device)
        self._last_lstm_states = RNNStates((zeros, zeros.clone()), (zeros.clone(), zeros.clone()))
        self.rollout_buffer = RecurrentRolloutBuffer(
            self.n_steps,
            self.observation_space,
            self.action_space,
            (self.n_steps, *zeros.shape),
            self.device,
            gamma=gamma,
            gae_lambda=self.gae_lambda,
            n_envs=self.n_envs,
        )
        self._last_obs = env.reset()
        self._last_episode_starts = np.ones(self.n_envs, np.bool_)
        self.ep_info_buffer.clear()
        self.ep_success_buffer.clear()

    def collect_rollouts(self, env: Any, callback: Any, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Call `before_rollout`, then collect a rollout in whatever environment it has left."""
        self.before_rollout()
        collected: bool = super().collect_rollouts(self.env, callback, self.rollout_buffer, n_rollout_steps)
        return collected
