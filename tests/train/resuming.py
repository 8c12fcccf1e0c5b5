"""Interrupting runs at a given step, and comparing two runs."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from echelon_env.networks.config import NetworkConfig
from echelon_train.checkpoints.checkpoint import load_checkpoint, load_training_state, weights_of
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import TrainConfig
from echelon_train.runs.folder import read_metrics
from echelon_train.vec_env import BattleVecEnv
from train.small import small_run

QUIET = Console(quiet=True)
OPTIONS = {  # of the command line
    "battle.max_steps": "12",
    "battles": "2",
    "opponent": "trivial",
    "steps": "160",
    "maps": "3",
    "device": "cpu",
    "eval_every": "0",
    "checkpoint_every": "64",
    "network.width": "8",
    "ppo.n_steps": "16",
    "ppo.batch_size": "16",
}


def resumable_run(network: dict | None = None, ppo: dict | None = None, **overrides: object) -> TrainConfig:
    """A run of five iterations, whose battles do not end together with its rollouts."""
    return small_run(
        network=NetworkConfig(width=8, head=8, set_width=4, map_channels=2, **(network or {})),
        ppo=PPOConfig(**({"n_steps": 16, "chunk": 8, "batch_size": 16, "n_epochs": 2} | (ppo or {}))),
        **({"steps": 160, "maps": 3, "checkpoint_every": 32} | overrides),
    )


def at_step(monkeypatch: pytest.MonkeyPatch, step: int, function: Callable[[], object]) -> None:
    """Call a function in the given step of the environment, counted from now."""
    stock, left = BattleVecEnv.step_wait, [step]

    def step_wait(self):
        left[0] -= 1
        if left[0] == 0:
            function()
        return stock(self)

    monkeypatch.setattr(BattleVecEnv, "step_wait", step_wait)


def differences(first: Path, second: Path) -> list[str]:
    """Bitwise differences of two runs in their last checkpoints and all metrics, except times."""
    return [*_state_differences(first, second), *_metrics_differences(first, second)]


def _state_differences(first: Path, second: Path) -> list[str]:
    ours, theirs = _state(first), _state(second)
    names = ours.keys() | theirs.keys()
    return sorted(name for name in names if name not in ours or name not in theirs or ours[name] != theirs[name])


def _state(run: Path) -> dict[str, object]:
    checkpoint, training = load_checkpoint(run), load_training_state(run)
    tensors = weights_of(checkpoint.policy) | dict(training.tensors)
    state = {name: (str(t.dtype), tuple(t.shape), t.numpy().tobytes()) for name, t in tensors.items()}
    values = _without_times(training.values)
    facts = {field.name: getattr(checkpoint, field.name) for field in dataclasses.fields(checkpoint)}
    return state | values | facts | {"policy": None}


def _without_times(values: Any) -> Any:
    """The values of a state, in all processes, without times: of the run, and at which episodes ended."""
    if isinstance(values, list):
        return [_without_times(each) for each in values]
    if not isinstance(values, Mapping):
        return values
    return {
        key: _without_times(value)
        for key, value in values.items()
        if key != "clock" and not (key == "t" and "r" in values)
    }


def _metrics_differences(first: Path, second: Path) -> list[str]:
    ours, theirs = _metrics(first), _metrics(second)
    if len(ours) != len(theirs):
        return [f"{len(ours)} and {len(theirs)} lines of metrics"]
    return [
        f"line {number}: {name}"
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]


def _metrics(run: Path) -> list[dict[str, object]]:
    return [
        {
            name: "nan" if isinstance(value, float) and math.isnan(value) else value
            for name, value in line.items()
            if name == "time/total_timesteps" or not name.startswith("time/")
        }
        for line in read_metrics(run)
    ]
