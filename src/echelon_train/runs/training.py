"""Start a training run, or resume one that was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorboard  # noqa: F401  (SB3 would silently skip a missing one)
from rich.console import Console
from stable_baselines3.common.logger import Logger

from echelon_env.config.schema import ConfigError
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    has_checkpoint,
    load_checkpoint,
    load_training_state,
)
from echelon_train.config.train import TrainConfig
from echelon_train.ppo import distributed
from echelon_train.runs.ancestry import Start, load_start, named_policies
from echelon_train.runs.device import resolve_device
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.folder import (
    differences_from,
    locked,
    read_run_config,
    read_wandb,
    record_resume,
    run_folder,
)
from echelon_train.runs.loggers import check_wandb, open_logger
from echelon_train.runs.processes import processes
from echelon_train.runs.run import Run, TrainResult
from echelon_train.threads import torch_threads


def train(
    config: TrainConfig,
    out: Path | str,
    *,
    console: Console | None = None,
    wandb: str | None = None,
    should_continue: Callable[[int, Evaluation], bool] | None = None,
) -> TrainResult:
    """Train a policy, with all files of the run in the folder `out`.

    With `TrainConfig.processes` this process starts the others, which end with it. Under torchrun
    (`distributed.process_group`) its processes train together. The first process writes the folder. `resume` continues
    a run that was killed.

    Parameters
    ----------
    config
        The run.
    out
        Folder of the run; it must not exist, or be empty.
    console
        Where to draw the progress display; standard output by default.
    wandb
        Project of Weights & Biases to log to as well.
    should_continue
        Called after every evaluation with the samples so far and the evaluation. If false, training stops before the
        next rollout, with a checkpoint.

    Raises
    ------
    DeviceError
        For a device that this machine does not have.
    TrainError
        If Weights & Biases is requested and not installed.
    CheckpointError
        If the run cannot start from the checkpoint of `TrainConfig.init`, with the reason.
    ConfigError
        If torchrun has started another number of processes than `config` wants.
    RunFolderError, OSError
        If the folder cannot be used. All of these are raised before training starts.
    ProcessError
        If another process of the run fails.
    """
    out = Path(out)
    count = distributed.world_size()
    if count > 1 and config.processes not in (1, count):
        raise ConfigError(f"processes: expected the {count} that torchrun has started, got {config.processes}")
    config = dataclasses.replace(config, processes=max(count, config.processes))
    resolve_device(config.device)
    if wandb is not None:
        check_wandb()
    start = load_start(config)
    first = distributed.rank() == 0
    with contextlib.ExitStack() as stack:
        if first:
            stack.enter_context(run_folder(out, config, wandb, start.facts()))
        stack.enter_context(processes(config.processes, "train", str(out), config=config.to_dict()))
        stack.enter_context(torch_threads(config.torch_threads))
        device = str(resolve_device(config.device))
        run = Run(config, out, device, console or Console(), should_continue, start.policy)
        return _learn(run, lambda: open_logger(out, config, wandb=wandb) if first else Logger(None, []))


def resume(
    run: Path | str,
    *,
    console: Console | None = None,
    wandb: str | None = None,
    **changes: Any,
) -> TrainResult:
    """Continue a run from its last checkpoint, as if it had never stopped; from its start if it has none.

    It has as many processes as before, which this one starts unless torchrun has.

    On the CPU, with the same number of threads on the same type of processor, the result is bit for bit that of an
    uninterrupted run, unless `max_minutes` or `max_cpu_minutes` makes its schedules depend on the clock. Differences
    that could change the result are printed to standard error.

    Parameters
    ----------
    run
        The run's folder.
    console
        As for `train`.
    wandb
        As for `train`; by default the project that the run was logged to, if any.
    **changes
        New values of settings in `CHANGEABLE`, by their dotted names: `steps`, `max_minutes`, `max_cpu_minutes` and
        `max_battles` of the whole run (schedules then refer to the new end), `device`, `threads`, `torch_threads`,
        `compile`;
        `maps` and, as ``**{"league.path": ...}``, the present place of the directory of recipes and of the league;
        ``league.mixture.*``.

    Raises
    ------
    RunFolderError
        If the folder holds no run, or another process trains in it.
    CheckpointError
        If its last checkpoint cannot be resumed from, with the reason, or torchrun has started another number of
        processes than the run has. A run without a checkpoint needs that of `TrainConfig.init` again.
    ConfigError
        For an impossible setting.
    DeviceError, TrainError, OSError, ProcessError
        As for `train`.
    """
    run = Path(run)
    read_run_config(run)  # before anything is written into a folder that holds no run
    with locked(run) if distributed.rank() == 0 else contextlib.nullcontext():
        config = read_run_config(run).with_overrides(**changes)
        count = distributed.world_size()
        if count > 1 and config.processes != count:
            raise CheckpointError(
                f"{run}: the run had {config.processes} processes and has {count} now; it needs as many as before"
            )
        with processes(config.processes, "resume", str(run), changes=changes):
            return _resume(run, config, console or Console(), wandb or read_wandb(run))


def _resume(run: Path, config: TrainConfig, console: Console, wandb: str | None) -> TrainResult:
    """Resume a run whose lock this process holds."""
    device = resolve_device(config.device)
    if wandb is not None:
        check_wandb()
    last = _last_state(run)
    # the ancestor of a run with checkpoints may be gone
    start = Start(policies=named_policies(config, missing=True)) if last else load_start(config)
    if last and distributed.rank() == 0:
        for difference in differences_from(run, config, start.policies):
            print(f"changed since the run was started: {difference}; the result may differ", file=sys.stderr)

    def begin() -> Logger:
        """Restore the run and write to the folder only once the checkpoint has proved valid."""
        if last:
            restored.restore(*last)
        if distributed.rank() > 0:
            return Logger(None, [])
        steps = last[0].steps if last else 0
        logger = open_logger(run, config, resumed_at=steps, wandb=wandb)
        try:
            record_resume(run, config, steps, wandb, {} if last else start.facts(), start.policies)
        except OSError:
            logger.close()
            raise
        return logger

    with torch_threads(config.torch_threads):
        restored = Run(config, run, str(device), console, initial=start.policy)
        return _learn(restored, begin)


def _last_state(run: Path) -> tuple[Checkpoint, TrainingState] | None:
    """The last checkpoint of a run; None if it was killed before its first."""
    return (load_checkpoint(run), load_training_state(run)) if has_checkpoint(run) else None


def _learn(run: Run, begin: Callable[[], Logger]) -> TrainResult:
    """Train a run with the logger that `begin` opens, close both, and draw the curves."""
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
