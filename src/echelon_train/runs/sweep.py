"""Sweeps: many runs with settings that Optuna proposes, in any number of processes or on a Ray cluster.

A sweep is a folder. ``study.journal`` is Optuna's record, and ``trial-0000`` and so on are the runs. A killed process
loses only its trials, which are run again. The objective is the win rate in the last evaluation of a run, on the
validation maps of training; the maps of `echelon evaluate` stay unused for a final evaluation. Processes synchronise
with Unix file locks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from rich.console import Console

from echelon_env.config.schema import ConfigError
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.ray_trials import RayTrials
from echelon_train.runs.study import Claim, Search, Study, Trial, is_failure
from echelon_train.runs.training import train

__all__ = ["RayTrials", "Search", "Sweep", "Trial", "sweep"]


@dataclass(frozen=True)
class Sweep:
    """The trials of a sweep: the best first, those without a result last."""

    trials: list[Trial]
    interrupted: bool  # by a signal, in this process


def sweep(
    source: str | Path,
    overrides: Mapping[str, str],
    searches: Sequence[Search],
    out: Path,
    *,
    trials: int = 20,
    prune: bool = True,
    console: Console | None = None,
    cluster: RayTrials | None = None,
) -> Sweep:
    """Run trials until a sweep has `trials`, alone or together with other processes called with the same arguments.

    Parameters
    ----------
    source, overrides
        The run config and its changes for all trials, see `load_run_config`. All trials have its `seed`, and so the
        same maps and battles.
    searches
        The search spaces, of other keys than the overrides.
    prune
        Whether to stop a trial at an evaluation with a win rate below the median of the other trials at that point.
    cluster
        Trains the trials, several at a time. By default this process does, one at a time.

    Returns
    -------
    All trials of the sweep so far. After a signal the running trials are queued to run again.

    Raises
    ------
    ConfigError
        For an invalid run config, or a search space that contains one.
    TrainError, OSError
        If the folder holds another sweep, or cannot be written, or the cluster cannot be reached or is lost; the sweep
        can be continued.
    """
    config = _checked(source, overrides, searches)
    setup = {"config": config.to_dict(), "searches": [dataclasses.asdict(each) for each in searches]}

    def make_config(claim: Claim) -> TrainConfig:
        return load_run_config(source, {**overrides, **claim.suggest(searches)})

    with cluster or contextlib.nullcontext(), _quiet():
        study = Study(out, json.loads(json.dumps(setup)), prune)
        run = _run_here if cluster is None else cluster.run
        interrupted = run(study, trials, make_config, console)
        return Sweep(study.trials(), interrupted)


def _checked(source: str | Path, overrides: Mapping[str, str], searches: Sequence[Search]) -> TrainConfig:
    """The run config, checked with the ends of every search space. Raises ConfigError."""
    config = load_run_config(source, overrides)
    if not config.eval_every:
        raise ConfigError("eval_every: a sweep needs evaluations, got 0", "eval_every")
    if not searches:
        raise ConfigError("a sweep needs a search space: --search KEY=LOW:HIGH")
    keys = [*overrides, *(each.key for each in searches)]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise ConfigError(f"--search {twice}: is already set or searched")
    for each in searches:
        for value in each.examples:
            load_run_config(source, {**overrides, each.key: value})
    return config


def _run_here(study: Study, wanted: int, make_config: Callable[[Claim], TrainConfig], console: Console | None) -> bool:
    """Run trials in this process, one after the other. Returns whether one was interrupted."""
    interrupted = False
    while not interrupted:
        claim = study.claim(wanted)
        if claim is None:
            break
        interrupted = _run_trial(claim, make_config, console)
    return interrupted


def _run_trial(claim: Claim, make_config: Callable[[Claim], TrainConfig], console: Console | None) -> bool:
    """Run a trial. Returns whether it was interrupted."""

    def should_continue(_: int, evaluation: Evaluation) -> bool:
        return claim.report(evaluation.wins.estimate)

    try:
        result = train(make_config(claim), claim.run, console=console, should_continue=should_continue)
    except BaseException as error:
        if not is_failure(error):
            claim.requeue()
            raise
        claim.fail(str(error))
        return False
    if result.interrupted and not result.done:
        claim.requeue()
    else:
        claim.finish(result.done)
    return result.interrupted


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's log messages."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
