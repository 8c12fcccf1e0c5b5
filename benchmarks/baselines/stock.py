"""Methods of stable-baselines3 and sb3-contrib as they come, on battles of whole teams."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from benchmarks.baselines.budget import Clock
from benchmarks.baselines.discrete import ALIVE
from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import BattleNoise, Player
from echelon_env.spaces import ObservedMasks, read_action
from echelon_env.storage.atomic import write_json
from echelon_train import BattleVecEnv, DiscreteActions

MODEL, REWARDS, PROGRESS = "model.zip", "rewards.pkl", "progress.json"
SAVE_EVERY = 120.0
"""Seconds on the processor between two saves."""

GAMMA = 0.995
_SHARED: dict[str, Any] = {"gamma": GAMMA, "gae_lambda": 0.95, "device": "cpu"}
_NETWORK: dict[str, Any] = {"net_arch": [128, 128], "activation_fn": torch.nn.ReLU}
_GAUSSIAN: dict[str, Any] = {"log_std_init": math.log(0.5)}

ALGORITHMS: dict[str, Any] = {"ppo": PPO, "recurrent-ppo": RecurrentPPO, "maskable-ppo": MaskablePPO}
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {
        "policy": "MlpPolicy", "policy_kwargs": _NETWORK | _GAUSSIAN, **_SHARED,
        "n_steps": 64, "batch_size": 1024, "n_epochs": 5, "learning_rate": 3e-4,
    },
    "recurrent-ppo": {
        "policy": "MlpLstmPolicy", **_SHARED,
        "policy_kwargs": _NETWORK | _GAUSSIAN | {"net_arch": [64], "lstm_hidden_size": 128},
        "n_steps": 64, "batch_size": 2048, "n_epochs": 3, "learning_rate": 3e-4, "clip_range": 0.3,
        "max_grad_norm": 1.0,
    },
    "maskable-ppo": {
        "policy": "MlpPolicy", "policy_kwargs": _NETWORK, **_SHARED,
        "n_steps": 64, "batch_size": 1024, "n_epochs": 5, "learning_rate": 3e-4, "ent_coef": 0.003,
    },
}  # fmt: skip
"""Arguments of the algorithms; the others are the libraries' defaults."""


def train(method: str, env: BattleVecEnv, seed: int, out: Path, clock: Clock) -> int:
    """Train until the time is over, or go on with the last save. Returns the decisions of living mechs."""
    torch.set_num_threads(1)
    algorithm = ALGORITHMS[method]
    battles: VecEnv = DiscreteActions(env) if method == "maskable-ppo" else env
    decisions = 0
    if (out / PROGRESS).exists():
        progress = json.loads((out / PROGRESS).read_text())
        decisions, clock.before = progress["decisions"], progress["seconds"]
        rewards = VecNormalize.load(str(out / REWARDS), battles)
        model = algorithm.load(out / MODEL, env=rewards, device="cpu")
    else:
        rewards = VecNormalize(battles, norm_obs=False, gamma=GAMMA)
        model = algorithm(env=rewards, seed=seed, **SETTINGS[method])
    callback = _Saves(out, clock, decisions)
    model.learn(10**12, callback=callback, reset_num_timesteps=False)
    callback.save()
    return callback.decisions


class _Saves(BaseCallback):  # type: ignore[misc]
    """Counts decisions of living mechs, saves now and then, and ends training when the time is over."""

    def __init__(self, out: Path, clock: Clock, decisions: int) -> None:
        super().__init__()
        self._out, self._clock, self.decisions = out, clock, decisions
        self._saved = time.process_time()

    def save(self) -> None:
        """Write the model; the progress comes last, and says that the rest is whole."""
        self._out.mkdir(parents=True, exist_ok=True)
        self.training_env.save(str(self._out / REWARDS))
        self.model.save(self._out / "new.zip")
        (self._out / "new.zip").replace(self._out / MODEL)
        write_json(self._out / PROGRESS, {"decisions": self.decisions, "seconds": self._clock.used})
        self._saved = time.process_time()

    def _on_rollout_start(self) -> None:
        if time.process_time() > self._saved + SAVE_EVERY:
            self.save()

    def _on_step(self) -> bool:
        self.decisions += int((self.locals["obs_tensor"][:, ALIVE] > 0.5).sum())
        return not self._clock.over


def player(method: str, out: Path) -> Player:
    """The trained policy; it samples its actions."""
    model = ALGORITHMS[method].load(out / MODEL, device="cpu")
    torch.set_num_threads(1)
    if method == "maskable-ppo":
        return Player(method, "sampled", lambda config, noise: MaskedPlayer(model.policy, config, noise))
    return Player(method, "sampled", lambda config, noise: _StockPlayer(model.policy, noise))


class _StockPlayer:
    """A policy of stable-baselines3 or sb3-contrib's recurrent one in battles."""

    def __init__(self, policy: Any, noise: BattleNoise) -> None:
        self._policy = policy
        torch.manual_seed(noise.seeds[0])
        self._state: Any = None
        self._starts = np.ones(len(noise.seeds) * noise.team_size, np.bool_)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        self._starts |= mask

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) for observations (R, D)."""
        actions, self._state = self._policy.predict(observations, self._state, self._starts)
        self._starts = np.zeros(len(observations), np.bool_)
        return np.asarray(actions, np.float32)


class MaskedPlayer:
    """A policy with discrete actions and masks in battles: ``predict(observations, action_masks=...)``."""

    def __init__(self, policy: Any, config: BattleConfig, noise: BattleNoise) -> None:
        self._policy = policy
        torch.manual_seed(noise.seeds[0])
        self._masks = ObservedMasks(config)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """It has no memory."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) for observations (R, D)."""
        choices, _ = self._policy.predict(observations, action_masks=self._masks(observations))
        return read_action("multi_discrete", choices, batch=len(observations))
