"""Training with sb3-contrib's RecurrentPPO as it comes: what our trainer's results are compared with."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import JSONOutputFormat, Logger
from stable_baselines3.common.vec_env import VecNormalize

from echelon_env.evaluate import Player
from echelon_env.layout.observations import STREAMS, Self
from echelon_train.config.train import TrainConfig
from echelon_train.policy.encoders import FlatEncoder
from echelon_train.runs.building import make_env
from echelon_train.runs.callbacks import BattleStatistics
from echelon_train.runs.folder import METRICS_FILE

SETTINGS: dict[str, Any] = {
    "learning_rate": 3e-4, "n_steps": 64, "batch_size": 2048, "n_epochs": 4, "clip_range": 0.2, "ent_coef": 0.0,
    "vf_coef": 0.5, "max_grad_norm": 0.5,
}  # fmt: skip
"""Of the algorithm, where an experiment changes nothing; what was tried is in docs/learning.md."""


def train_stock(
    config: TrainConfig, out: Path, max_seconds: float, changes: dict[str, Any] | None = None, slim: bool = False
) -> tuple[int, Player]:
    """Train on the battles of a run, with the discount and the widths of its network; decisions, and who came of it.

    The time is the process's own, on a processor. Rewards are normalised, as is usual; observations are in [-1, 1]
    already. `changes` are of `SETTINGS`. A slim network has a layer before its LSTM, and its critic no separate LSTM,
    which makes it about as small as ours.
    """
    out.mkdir(parents=True)
    torch.set_num_threads(1)
    env = VecNormalize(make_env(config), norm_obs=False, gamma=config.ppo.gamma.start)
    network: dict[str, Any] = {
        "lstm_hidden_size": config.network.width, "net_arch": [config.network.head],
        "log_std_init": math.log(config.network.initial_std), "activation_fn": torch.nn.ReLU,
    }  # fmt: skip
    if slim:
        network |= {
            "features_extractor_class": FlatEncoder,
            "features_extractor_kwargs": {"features_dim": config.network.width},
            "shared_lstm": True,
            "enable_critic_lstm": False,
        }
    model = RecurrentPPO(
        "MlpLstmPolicy", env, gamma=config.ppo.gamma.start, gae_lambda=config.ppo.gae_lambda, policy_kwargs=network,
        seed=config.seed, device="cpu", **SETTINGS | (changes or {}),
    )  # fmt: skip
    model.set_logger(Logger(str(out), [JSONOutputFormat(str(out / METRICS_FILE))]))
    try:
        model.learn(config.steps, callback=[BattleStatistics(), _Decisions(max_seconds)])
    finally:
        model.logger.close()
        env.close()
    policy = model.policy
    return int(model.num_timesteps), Player("stock", "sampled", lambda battle, noise: _StockPlayer(policy))


class _StockPlayer:
    """A policy of sb3-contrib in battles, sampling as in training."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._state: Any = None
        self._starts: NDArray[np.bool_] | None = None

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        if self._starts is None or len(self._starts) != len(mask):
            self._state, self._starts = None, np.ones(len(mask), np.bool_)
        self._starts |= mask

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) for observations (R, D)."""
        actions, self._state = self._policy.predict(observations, self._state, self._starts)
        self._starts = np.zeros(len(observations), np.bool_)
        return np.asarray(actions, np.float32)


class _Decisions(BaseCallback):  # type: ignore[misc]
    """Counts living mechs only, as our trainer does, and ends training when the process has had its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.process_time() + seconds

    def _on_step(self) -> bool:
        alive = self.locals["obs_tensor"][:, STREAMS["self"].start + Self.ALIVE] > 0.5
        self.model.num_timesteps -= int((~alive).sum())
        return time.process_time() < self._end
