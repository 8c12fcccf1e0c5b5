"""Training runs: a new one, and going on with one that was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import tensorboard  # noqa: F401  (SB3 would hide that it is missing)
from rich.console import Console
from rich.markup import escape
from stable_baselines3.common.logger import Logger

from echelon_train.algorithm import ranks
from echelon_train.checkpoint import load_checkpoint, load_training_state
from echelon_train.config import TrainConfig
from echelon_train.device import resolve_device
from echelon_train.loggers import check_wandb, open_logger
from echelon_train.plots import save_run_curves
from echelon_train.run import Run, TrainResult
from echelon_train.run_folder import differences_from, read_run_config, record_resume, run_folder
from echelon_train.threads import torch_threads


def train(
    config: TrainConfig,
    out: Path,
    *,
    console: Console | None = None,
    max_seconds: float | None = None,
    wandb: str | None = None,
) -> TrainResult:
    """Train a policy and keep everything about it in the folder `out`.

    Of several processes that train together (`ranks.process_group`) the first one has the folder.

    Parameters
    ----------
    config
        The run.
    out
        Folder to make; it must not exist or be empty.
    console
        Where to draw the progress display; standard output by default.
    max_seconds
        Time after which training ends, once the present iteration is over.
    wandb
        Project of Weights & Biases to log to as well.

    Raises
    ------
    DeviceError
        For an absent device.
    TrainError
        If Weights & Biases is asked for and not there.
    RunFolderError, OSError
        If the folder cannot be used. All these before anything is computed.
    """
    device = resolve_device(config.device)
    if wandb is not None:
        check_wandb()
    first = ranks.rank() == 0
    with run_folder(out, config) if first else contextlib.nullcontext(), torch_threads(config.torch_threads):
        run = Run(config, out, str(device), console or Console(), max_seconds)
        return _learn(run, out, lambda: open_logger(out, config, wandb=wandb) if first else Logger(None, []))


def resume(
    run: Path,
    *,
    steps: int | None = None,
    console: Console | None = None,
    max_seconds: float | None = None,
    wandb: str | None = None,
) -> TrainResult:
    """Go on with a run from its last checkpoint, as if it had never stopped.

    On the CPU, with the same number of threads on the same type of processor, everything comes out as in the run that
    was not interrupted, to the last bit.

    Parameters
    ----------
    run
        The run's folder.
    steps
        Samples to train on in all, if they are others than before; schedules then follow from the new number.
    console, max_seconds, wandb
        As for `train`.

    Raises
    ------
    RunFolderError
        If the folder holds no run.
    CheckpointError
        If its last checkpoint cannot be resumed from, with the reason.
    ConfigError
        For an impossible number of steps.
    DeviceError, TrainError, OSError
        As for `train`.
    """
    console = console or Console()
    config = read_run_config(run)
    if steps is not None:
        config = dataclasses.replace(config, steps=steps)
    device = resolve_device(config.device)
    if wandb is not None:
        check_wandb()
    checkpoint, state = load_checkpoint(run), load_training_state(run)
    for difference in differences_from(run):
        console.print(f"[yellow]Not as before: {escape(difference)}; the run may come out differently.[/]")

    def begin() -> Logger:
        """Change the folder, now that nothing can be wrong with the checkpoint any more."""
        restored.restore(checkpoint, state)
        if ranks.rank() > 0:
            return Logger(None, [])
        logger = open_logger(run, config, resumed_at=checkpoint.steps, wandb=wandb)
        record_resume(run, config, checkpoint.steps)
        return logger

    with torch_threads(config.torch_threads):
        restored = Run(config, run, str(device), console, max_seconds)
        return _learn(restored, run, begin)


def _learn(run: Run, out: Path, begin: Callable[[], Logger]) -> TrainResult:
    """Let a run learn, with the logger that `begin` opens, close both, and draw its curves."""
    try:
        logger = begin()
        try:
            result = run.learn(logger)
        finally:
            logger.close()
    finally:
        run.close()
    if ranks.rank() == 0:
        save_run_curves(out)
    return result
