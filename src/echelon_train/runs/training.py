"""Start a training run, or resume one that was stopped."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorboard  # noqa: F401  (SB3 would silently skip a missing one)
import torch
from rich.console import Console
from stable_baselines3.common.logger import Logger

from echelon_env.networks.checkpoint import LAST_FILE, errors_in
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import (
    checkpoints_to_resume,
    load_checkpoint,
    load_training_state,
    name_last,
    newest_policy,
)
from echelon_train.config.train import TrainConfig
from echelon_train.console import PrintableConsole
from echelon_train.errors import RunFolderError
from echelon_train.ppo import distributed
from echelon_train.runs.ancestry import Start, load_start, named_policies
from echelon_train.runs.device import resolve_device
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.folder import (
    differences_from,
    locked,
    read_run_config,
    record_resume,
    run_folder,
)
from echelon_train.runs.loggers import open_logger
from echelon_train.runs.processes import processes
from echelon_train.runs.run import Run, TrainResult
from echelon_train.threads import torch_threads


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    """Raise MemoryError where torch has no memory, on the CPU or on a GPU, in one line."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            raise MemoryError(str(error).partition("\n")[0].rpartition("Allocator: ")[2]) from error
        raise


def train(
    config: TrainConfig,
    out: Path | str,
    *,
    console: Console | None = None,
    should_continue: Callable[[int, Evaluation], bool] | None = None,
) -> TrainResult:
    """Train a policy, with all files of the run in the folder `out`.

    With `TrainConfig.processes` this process starts the others, which end with it. The first process writes the folder.
    `resume` continues a run that was killed.

    Parameters
    ----------
    config
        The run.
    out
        Folder of the run; it must not exist, or be empty.
    console
        Where to draw the progress display; standard output by default.
    should_continue
        Called after every evaluation with the samples so far and the evaluation. If false, training stops before the
        next rollout, with a checkpoint.

    Raises
    ------
    DeviceError
        For a device that this machine does not have.
    CheckpointError
        If the run cannot start from the checkpoint of `TrainConfig.init`, with the reason.
    RunFolderError, OSError
        If the folder cannot be used. All of these are raised before training starts.
    ProcessError
        If another process of the run fails.
    MemoryError
        If the memory of this machine or of the device is used up. The run can be resumed from its last checkpoint.
    """
    out = Path(out)
    resolve_device(config.device)
    start = load_start(config)
    first = distributed.rank() == 0
    with contextlib.ExitStack() as stack:
        if first:
            stack.enter_context(run_folder(out, config, start.facts()))
        stack.enter_context(processes(config.processes, "train", str(out), config=config.to_dict()))
        stack.enter_context(torch_threads(config.torch_threads))
        stack.enter_context(_memory_errors())
        device = str(resolve_device(config.device))
        run = Run(config, out, device, console or PrintableConsole(), should_continue, start.policy)
        return _learn(run, lambda: open_logger(out) if first else Logger(None, []))


def resume(
    run: Path | str,
    *,
    console: Console | None = None,
    **changes: Any,
) -> TrainResult:
    """Continue a run from its last checkpoint, as if it had never stopped; from its start if it has none.

    If the last checkpoint is damaged, the run goes on from the one before it, with a warning on standard error.

    It has as many processes as before, which this one starts.

    On the CPU, with the same number of threads on the same type of processor, the result is bit for bit that of an
    uninterrupted run, unless `max_minutes` or `max_cpu_minutes` makes its schedules depend on the clock. Differences
    that could change the result are printed to standard error.

    Parameters
    ----------
    run
        The run's folder.
    console
        As for `train`.
    **changes
        New values of settings in `CHANGEABLE`, by their dotted names: `steps`, `max_minutes`, `max_cpu_minutes` and
        `max_battles` of the whole run (schedules then refer to the new end), `device`, `threads`, `torch_threads`,
        `compile`; `maps` and, as ``**{"league.path": ...}``, the present place of the directory of recipes and of the
        league.

    Raises
    ------
    RunFolderError
        If the folder holds no run, or another process trains in it.
    CheckpointError
        If its last checkpoints cannot be resumed from, with the reason. A run without a checkpoint needs that of
        `TrainConfig.init` again.
    ConfigError
        For an impossible setting.
    DeviceError, OSError, ProcessError, MemoryError
        As for `train`.
    """
    run = Path(run)
    try:
        read_run_config(run)  # before anything is written into a folder that holds no run
    except RunFolderError as error:
        raise RunFolderError(f"{error}{_way_out(run)}") from error
    with locked(run) if distributed.rank() == 0 else contextlib.nullcontext():
        config = read_run_config(run).with_overrides(**changes)
        with processes(config.processes, "resume", str(run), changes=changes):
            return _resume(run, config, console or PrintableConsole())


@_memory_errors()
def _resume(run: Path, config: TrainConfig, console: Console) -> TrainResult:
    """Resume a run whose lock this process holds."""
    device = resolve_device(config.device)
    checkpoints = checkpoints_to_resume(run)
    # the ancestor of a run with checkpoints may be gone
    start = Start(policies=named_policies(config, missing=True)) if checkpoints else load_start(config)
    if checkpoints and distributed.rank() == 0:
        for difference in differences_from(run, config, start.policies):
            print(f"changed since the run was started: {difference}; the result may differ", file=sys.stderr)

    def make() -> Run:
        return Run(config, run, str(device), console, initial=start.policy)

    with torch_threads(config.torch_threads):
        restored, usable = _restore(run, checkpoints, make) if checkpoints else (make(), [])

        def begin() -> Logger:
            """Write to the folder, only now that the checkpoint has proved valid."""
            if distributed.rank() > 0:
                return Logger(None, [])
            steps = restored.model.num_timesteps
            logger = open_logger(run, resumed_at=steps)
            try:
                if usable and name_last(run, *usable[:2]):
                    print(f"{run / LAST_FILE}: now names {usable[0].name}", file=sys.stderr)
                record_resume(run, config, steps, {} if usable else start.facts(), start.policies)
            except OSError:
                logger.close()
                raise
            return logger

        return _learn(restored, begin)


def _restore(run: Path, checkpoints: Sequence[Path], make: Callable[[], Run]) -> tuple[Run, Sequence[Path]]:
    """A run at the first of its checkpoints that it can be resumed from, and the checkpoints from this one on.

    Raises CheckpointError.
    """
    errors: list[CheckpointError] = []
    for number, folder in enumerate(checkpoints):
        restored = None
        try:
            checkpoint, state = load_checkpoint(folder), load_training_state(folder)
            restored = make()
            with errors_in(folder):
                restored.restore(checkpoint, state)
        except BaseException as error:
            if restored is not None:
                restored.close()
            others = restored is not None and distributed.world_size() > 1  # may have restored theirs
            if others or not isinstance(error, CheckpointError):
                raise
            errors.append(error)
        else:
            if distributed.rank() == 0:
                for each in errors:
                    print(f"{each}; the run goes on from {folder.name}", file=sys.stderr)
            return restored, checkpoints[number:]
    raise CheckpointError(f"{errors[0]}{_way_out(run)}") from errors[0]


def _way_out(run: Path) -> str:
    """What to do with a run that cannot be resumed, as the end of an error message; empty if nothing can be done."""
    older = newest_policy(run)
    if older is None:
        return ""
    return f"; a new run can start from a policy of this one: echelon train --init {shlex.quote(str(older))}"


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
