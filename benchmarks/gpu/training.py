"""Trainers that the parts share: a run of the shipped kind, an iteration at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.gpu.setting import Setting
from benchmarks.machine import cores
from benchmarks.training import Learner
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import PolicyLike
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.runs.building import build_model, make_env

MAPS = 16
BEFORE = 300
"""Decisions with random actions before the first iteration: by then all battles have ended once, out of step."""


def config_of(setting: Setting, scenario: str, battles: int, width: int, **ppo: Any) -> TrainConfig:
    """A run with a shared critic against novices; the battles have a thread for every core."""
    settings = {"n_steps": 32, "chunk": 16, "batch_size": 16_384, "n_epochs": 3, **ppo}
    if setting.small:
        settings |= {"n_steps": 8, "chunk": 4, "batch_size": 40, "n_epochs": 1}
    changes = {f"ppo.{name}": str(value) for name, value in settings.items()}
    sizes = {"width": width, "head": width // 2, "set_width": width // 4, "critic": "shared"}
    changes |= {f"network.{name}": str(value) for name, value in sizes.items()}
    threads = min(cores(), battles)
    return load_run_config(
        scenario,
        changes | {"battles": str(battles), "maps": str(MAPS), "opponent": "novice", "threads": str(threads)},
    )


class Trainer(Learner):
    """Iterations of a run."""

    def __init__(
        self, setting: Setting, config: TrainConfig, opponent: PolicyLike | None = None, **arguments: Any
    ) -> None:
        self.config = config
        torch.set_num_threads(config.torch_threads)
        self.env = make_env(config, opponent=opponent)
        model = build_model(config, self.env, str(setting.device))
        super().__init__(rebuilt(model, **arguments) if arguments else model)
        rng = np.random.default_rng(0)
        for _ in range(2 if setting.small else BEFORE):
            actions = rng.uniform(-1, 1, (self.env.num_envs, ACTION_DIM)).astype(np.float32)
            self.model._last_obs, *_ = self.env.step(actions)

    @property
    def samples(self) -> int:
        """Samples of a rollout."""
        return int(self.env.num_envs * self.config.ppo.n_steps)

    def close(self) -> None:
        """Stop the threads."""
        self.env.close()


def rebuilt(model: Any, **arguments: Any) -> Any:
    """The same algorithm with other arguments, such as `dense`, and the same weights."""
    for name, value in arguments.items():
        setattr(model, name, value)
    weights = model.policy.state_dict()
    model._setup_model()
    model.policy.load_state_dict(weights)
    model.policy.set_battle(model.env.battles.config)
    return model
