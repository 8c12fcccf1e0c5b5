"""Sweeps: many runs with settings that Optuna proposes, in any number of processes.

A sweep is a folder. ``study.journal`` is Optuna's record, and ``trial-0000`` and so on are the runs. A killed process
loses only its trial, which is run again. The objective is the win rate in the last evaluation of a run, on the
validation maps of training; the maps of `echelon evaluate` stay unused for a final evaluation. Processes synchronise
with Unix file locks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console

from echelon_env.config.schema import ConfigError
from echelon_env.networks.weights import CheckpointError
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.errors import NonFiniteError, TrainError
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.training import train

__all__ = ["Search", "Sweep", "Trial", "sweep"]

JOURNAL_FILE = "study.journal"
_LOCKS = "locks"
_NAME = "sweep"
_SETUP, _FAILURE = "setup", "failure"  # attributes of the study, and of trials that failed
_STARTUP = 5  # finished trials before any is pruned

State = Literal["complete", "pruned", "failed", "running"]


@dataclass(frozen=True)
class Search:
    """The search space of a setting of the run config: a range of numbers, or a list of values."""

    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    integer: bool = False
    choices: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Search:
        """Read ``KEY=LOW:HIGH``, ``KEY=log:LOW:HIGH`` (evenly in the logarithm) or ``KEY=A,B,C``.

        A range between two integers yields integers. Raises `ConfigError`.
        """
        key, _, space = text.partition("=")
        if key and "," in space and all(space.split(",")):
            return cls(key, choices=tuple(space.split(",")))
        *kind, low, high = space.split(":") if space.count(":") in (1, 2) else ("", "", "")
        try:
            if not key or kind not in ([], ["log"]):
                raise ValueError
            ends = float(low), float(high)
        except ValueError:
            expected = "KEY=LOW:HIGH, KEY=log:LOW:HIGH or KEY=A,B,C"
            raise ConfigError(f"--search: expected {expected}, got {text!r}") from None
        least = 0.0 if kind else float("-inf")
        if not least < ends[0] < ends[1] < float("inf"):
            above = " above 0" if kind else ""
            raise ConfigError(f"--search {key}: expected LOW < HIGH{above}, got {low} and {high}")
        integer = all(_is_integer(end) for end in (low, high))
        return cls(key, *ends, log=bool(kind), integer=integer)

    def suggest(self, trial: optuna.Trial) -> str:
        """A value for a trial, as text for the run config."""
        if self.choices:
            return str(trial.suggest_categorical(self.key, self.choices))
        if self.integer:
            return str(trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log))
        return repr(trial.suggest_float(self.key, self.low, self.high, log=self.log))

    @property
    def examples(self) -> tuple[str, ...]:
        """The ends of the range, or all values."""
        ends = (str(int(end)) if self.integer else repr(end) for end in (self.low, self.high))
        return self.choices or tuple(ends)


@dataclass(frozen=True)
class Trial:
    """A run of a sweep."""

    number: int
    state: State
    win_rate: float | None  # in its last evaluation; None if there was none
    settings: dict[str, Any]
    run: Path
    failure: str | None  # the reason, if it failed


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
) -> Sweep:
    """Run trials until a sweep has `trials`, alone or together with other processes called with the same arguments.

    Parameters
    ----------
    source, overrides
        The run config and its changes for all trials, see `load_run_config`. All trials have its `seed`, and so the
        same maps and battles.
    searches
        The search spaces, of other keys than the overrides.
    out
        Folder of the sweep, new or to continue.
    trials
        Total number of trials, finished or running, over all processes.
    prune
        Whether to stop a trial at an evaluation with a win rate below the median of the other trials at that point.
    console
        Where to draw the trials' progress.

    Returns
    -------
    All trials of the sweep so far. After SIGINT or SIGTERM the running trial is queued to run again.

    Raises
    ------
    ConfigError
        For an invalid run config, or a search space that contains one.
    TrainError
        If the folder holds another sweep.
    OSError
        If the folder cannot be written.
    """
    config = _checked(source, overrides, searches)
    setup = {"config": config.to_dict(), "searches": [dataclasses.asdict(each) for each in searches]}
    (out / _LOCKS).mkdir(parents=True, exist_ok=True)
    with _quiet():
        study = _open(out, json.loads(json.dumps(setup)), prune)
        interrupted = False
        while not interrupted:
            with contextlib.ExitStack() as held:
                trial = _claim_trial(study, out, trials, held)
                if trial is None:
                    break
                interrupted = _run_trial(study, trial, source, overrides, searches, out, console)
        return Sweep(_trials(study, out), interrupted)


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


def _open(out: Path, setup: Mapping[str, Any], prune: bool) -> optuna.Study:
    """The study in a sweep's folder. Raises TrainError if it belongs to another sweep."""
    storage = JournalStorage(JournalFileBackend(str(out / JOURNAL_FILE)))
    with _exclusive(out / _LOCKS / "all"):
        study = optuna.create_study(storage=storage, study_name=_NAME, direction="maximize", load_if_exists=True)
        kept = study.user_attrs.get(_SETUP)
        if kept is None:
            study.set_user_attr(_SETUP, setup)
        elif kept != setup:
            raise TrainError(f"{out} holds a sweep with another run config or search space; choose another folder")
    # another seed each time, so that processes do not propose the same
    study.sampler = optuna.samplers.TPESampler(seed=len(study.get_trials(deepcopy=False)))
    study.pruner = optuna.pruners.MedianPruner(_STARTUP) if prune else optuna.pruners.NopPruner()
    return study


def _claim_trial(study: optuna.Study, out: Path, wanted: int, held: contextlib.ExitStack) -> optuna.Trial | None:
    """The next trial to run, with its lock held until the stack closes; None if the sweep has all its trials."""
    with _exclusive(out / _LOCKS / "all"):
        for running in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            with contextlib.suppress(BlockingIOError), _exclusive(_lock(out, running.number), wait=False):
                _requeue(study, running)  # its process has ended
        if sum(map(_counts, study.get_trials(deepcopy=False))) >= wanted:
            return None
        trial = study.ask()
        held.enter_context(_exclusive(_lock(out, trial.number), wait=False))
        return trial


def _run_trial(
    study: optuna.Study,
    trial: optuna.Trial,
    source: str | Path,
    overrides: Mapping[str, str],
    searches: Sequence[Search],
    out: Path,
    console: Console | None,
) -> bool:
    """Run a trial. Returns whether it was interrupted."""
    found: list[float] = []

    def should_continue(_: int, evaluation: Evaluation) -> bool:
        found.append(evaluation.wins.estimate)
        trial.report(found[-1], len(found) - 1)
        return not trial.should_prune()

    chosen = {each.key: each.suggest(trial) for each in searches}
    try:
        config = load_run_config(source, {**overrides, **chosen})
        result = train(config, _run_folder(out, trial.number), console=console, should_continue=should_continue)
    except CheckpointError:  # not the fault of the settings
        _requeue(study, trial)
        raise
    except (ConfigError, NonFiniteError) as error:
        trial.set_user_attr(_FAILURE, str(error))
        study.tell(trial, state=TrialState.FAIL)
        return False
    except BaseException:
        _requeue(study, trial)
        raise
    if result.interrupted:
        _requeue(study, trial)
    elif result.done:
        study.tell(trial, found[-1])
    else:
        study.tell(trial, state=TrialState.PRUNED)
    return result.interrupted


def _requeue(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> None:
    """Queue a trial that was not finished to run again, as a new trial."""
    study.tell(trial.number, state=TrialState.FAIL)
    if trial.params:
        study.enqueue_trial(dict(trial.params))


def _counts(trial: FrozenTrial) -> bool:
    """Whether a trial is running or finished."""
    lost = trial.state == TrialState.FAIL and _FAILURE not in trial.user_attrs
    return not lost and trial.state != TrialState.WAITING


def _trials(study: optuna.Study, out: Path) -> list[Trial]:
    """The running and finished trials, the best first."""
    found = [_trial(each, out) for each in study.get_trials() if _counts(each)]
    return sorted(found, key=lambda each: (-1.0 if each.win_rate is None else -each.win_rate, each.number))


def _trial(trial: FrozenTrial, out: Path) -> Trial:
    states: dict[TrialState, State] = {
        TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed",
    }  # fmt: skip
    last = trial.intermediate_values.get(max(trial.intermediate_values, default=0))
    return Trial(
        trial.number,
        states.get(trial.state, "running"),
        last,
        trial.params,
        _run_folder(out, trial.number),
        trial.user_attrs.get(_FAILURE),
    )


def _run_folder(out: Path, number: int) -> Path:
    return out / f"trial-{number:04d}"


def _lock(out: Path, number: int) -> Path:
    return out / _LOCKS / f"{number:04d}"


def _is_integer(text: str) -> bool:
    with contextlib.suppress(ValueError):
        int(text)
        return True
    return False


@contextlib.contextmanager
def _exclusive(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that the operating system releases when the process ends for any reason.

    Raises BlockingIOError if another process holds it and `wait` is false.
    """
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's log messages."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
