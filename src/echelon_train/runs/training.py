"""Training runs: a new one, and going on with one that was stopped."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorboard  # noqa: F401  (SB3 would hide that it is missing)
from rich.console import Console
from stable_baselines3.common.logger import Logger

from echelon_train.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    has_begun,
    load_checkpoint,
    load_training_state,
)
from echelon_train.config.train import TrainConfig
from echelon_train.ppo import distributed
from echelon_train.runs.device import resolve_device
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.folder import (
    differences_from,
    occupied,
    read_run_config,
    read_wandb,
    record_resume,
    run_folder,
)
from echelon_train.runs.loggers import check_wandb, open_logger
from echelon_train.runs.run import Run, TrainResult
from echelon_train.threads import torch_threads


def train(
    config: TrainConfig,
    out: Path,
    *,
    console: Console | None = None,
    max_seconds: float | None = None,
    wandb: str | None = None,
    go_on: Callable[[int, Evaluation], bool] | None = None,
) -> TrainResult:
    """Train a policy and keep everything about it in the folder `out`.

    Of several processes (`distributed.process_group`) the first one has the folder. A run that is killed
    leaves a folder that `resume` goes on from.

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
    go_on
        Asked after every evaluation, with the samples so far. Where it says no, training ends after the next rollout,
        as if its time were up.

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
    first = distributed.rank() == 0
    with run_folder(out, config, wandb) if first else contextlib.nullcontext(), torch_threads(config.torch_threads):
        run = Run(config, out, str(device), console or Console(), max_seconds, go_on)
        return _learn(run, lambda: open_logger(out, config, wandb=wandb) if first else Logger(None, []))


def resume(
    run: Path,
    *,
    console: Console | None = None,
    max_seconds: float | None = None,
    wandb: str | None = None,
    **changes: Any,
) -> TrainResult:
    """Go on with a run from its last checkpoint, as if it had never stopped; from its beginning if it has none yet.

    On the CPU, with the same number of threads on the same type of processor, everything comes out as in the run that
    was not interrupted, to the last bit. Standard error is told what is not as it was and could change that.

    Parameters
    ----------
    run
        The run's folder.
    console, max_seconds
        As for `train`.
    wandb
        As for `train`; by default the project that the run is logged to already, if it is.
    **changes
        Settings of the run that shall be others from now on, out of `config.CHANGEABLE`, by their dotted names: `steps`
        (schedules then follow from the new number), `device`, `threads`, `torch_threads`; `maps` and, given as
        ``**{"league.path": ...}``, where the directory of recipes and the league are now; ``league.mixture.*``.

    Raises
    ------
    RunFolderError
        If the folder holds no run, or another process is at it.
    CheckpointError
        If its last checkpoint cannot be resumed from, with the reason.
    ConfigError
        For an impossible setting.
    DeviceError, TrainError, OSError
        As for `train`.
    """
    read_run_config(run)  # before anything is written into a folder that is no run's
    with occupied(run) if distributed.rank() == 0 else contextlib.nullcontext():
        config = read_run_config(run).with_overrides(**changes)
        return _go_on(run, config, console or Console(), max_seconds, wandb or read_wandb(run))


def _go_on(
    run: Path, config: TrainConfig, console: Console, max_seconds: float | None, wandb: str | None
) -> TrainResult:
    """Resume a run that this process has for itself."""
    device = resolve_device(config.device)
    if wandb is not None:
        check_wandb()
    last = _last_state(run)
    if last and distributed.rank() == 0:
        for difference in differences_from(run, config):
            print(f"not as before: {difference}; the run may come out differently", file=sys.stderr)

    def begin() -> Logger:
        """Change the folder, now that nothing can be wrong with the checkpoint any more."""
        if last:
            restored.restore(*last)
        if distributed.rank() > 0:
            return Logger(None, [])
        steps = last[0].steps if last else 0
        logger = open_logger(run, config, resumed_at=steps, wandb=wandb)
        try:
            record_resume(run, config, steps, wandb)
        except OSError:
            logger.close()
            raise
        return logger

    with torch_threads(config.torch_threads):
        restored = Run(config, run, str(device), console, max_seconds)
        return _learn(restored, begin)


def _last_state(run: Path) -> tuple[Checkpoint, TrainingState] | None:
    """Where a run is to go on; None for one that was killed before its first checkpoint."""
    return (load_checkpoint(run), load_training_state(run)) if has_begun(run) else None


def _learn(run: Run, begin: Callable[[], Logger]) -> TrainResult:
    """Let a run learn, with the logger that `begin` opens, close both, and draw its curves."""
    try:
        logger = begin()
        try:
            result = run.learn(logger)
        finally:
            logger.close()
    finally:
        run.close()
    run.draw_curves()
    return result
