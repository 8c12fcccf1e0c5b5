"""The record of a sweep: an Optuna study in a folder, shared by processes with Unix file locks.

``study.journal`` is Optuna's record. A process holds a lock for every trial that it runs, so that the trials of a
process that has ended, for any reason, are queued to run again.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from echelon_env.config.schema import ConfigError
from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.reading import open_regular_file, without_waiting
from echelon_train.errors import NonFiniteError, TrainError

if sys.platform != "win32":
    import fcntl

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


class Study:
    """The trials of a sweep, in its folder, which is new or continued. `setup` identifies the sweep, fit for JSON.

    Trials that do worse than most are stopped if `prune` is true. Raises TrainError if the folder holds another sweep
    or anything else or is damaged, and on Windows, and OSError if it cannot be written.
    """

    def __init__(self, out: Path, setup: Mapping[str, Any], prune: bool) -> None:
        if sys.platform == "win32":
            raise TrainError("a sweep needs the file locks of Unix, which Windows does not have")
        if out.is_dir() and {each.name for each in out.iterdir()} - {_LOCKS} and not (out / JOURNAL_FILE).exists():
            raise TrainError(f"{out} is not an empty folder, and holds no sweep; choose another folder")
        self._out = out
        (out / _LOCKS).mkdir(parents=True, exist_ok=True)
        with _exclusive(out / _LOCKS / "all"):
            study = _opened(out / JOURNAL_FILE)
            kept = study.user_attrs.get(_SETUP)
            if kept is None:
                study.set_user_attr(_SETUP, setup)
            elif kept != setup:
                raise TrainError(f"{out} holds a sweep with another run config or search space; choose another folder")
        # n_warmup_steps: the first evaluation is that of the initial weights
        median = optuna.pruners.MedianPruner(_STARTUP, n_warmup_steps=1)
        study.pruner = median if prune else optuna.pruners.NopPruner()
        self._study = study

    def claim(self, wanted: int) -> Claim | None:
        """The next trial to run; None if so many trials are running or finished, over all processes."""
        with _exclusive(self._out / _LOCKS / "all"):
            for running in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                with contextlib.suppress(BlockingIOError), _exclusive(self._lock(running.number), wait=False):
                    _requeue(self._study, running)  # its process has ended
            if sum(map(_counts, self._study.get_trials(deepcopy=False))) >= wanted:
                return None
            # another seed each time, so that processes do not propose the same
            self._study.sampler = optuna.samplers.TPESampler(seed=len(self._study.get_trials(deepcopy=False)))
            trial = self._study.ask()
            lock = contextlib.ExitStack()
            lock.enter_context(_exclusive(self._lock(trial.number), wait=False))
            return Claim(self._study, trial, self._run(trial.number), lock)

    def trials(self) -> list[Trial]:
        """The running and finished trials: the best first, those without a result last."""
        found = [self._trial(each) for each in self._study.get_trials() if _counts(each)]
        return sorted(found, key=lambda each: (-1.0 if each.win_rate is None else -each.win_rate, each.number))

    def _trial(self, trial: FrozenTrial) -> Trial:
        states: dict[TrialState, State] = {
            TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed",
        }  # fmt: skip
        state, last = states.get(trial.state, "running"), max(trial.intermediate_values, default=0)
        win_rate, failure = trial.intermediate_values.get(last), trial.user_attrs.get(_FAILURE)
        return Trial(trial.number, state, win_rate, trial.params, self._run(trial.number), failure)

    def _run(self, number: int) -> Path:
        return self._out / f"trial-{number:04d}"

    def _lock(self, number: int) -> Path:
        return self._out / _LOCKS / f"{number:04d}"


class Claim:
    """A trial that this process runs, until one of `finish`, `fail` and `requeue`."""

    def __init__(self, study: optuna.Study, trial: optuna.Trial, run: Path, lock: contextlib.ExitStack) -> None:
        self._study, self._trial, self._held = study, trial, lock
        self._found: list[float] = []
        self.run = run
        """Folder of its run."""

    @property
    def number(self) -> int:
        """Its number."""
        return self._trial.number

    @property
    def settings(self) -> str:
        """Its settings as text."""
        return ", ".join(f"{key}={value}" for key, value in self._trial.params.items())

    @property
    def evaluations(self) -> int:
        """How many win rates were reported."""
        return len(self._found)

    def suggest(self, searches: Sequence[Search]) -> dict[str, str]:
        """Its settings, as text for the run config."""
        return {each.key: each.suggest(self._trial) for each in searches}

    def report(self, win_rate: float) -> bool:
        """Record the win rate of its next evaluation. Returns whether the trial goes on."""
        self._found.append(win_rate)
        self._trial.report(win_rate, len(self._found) - 1)
        return not self._trial.should_prune()

    def finish(self, done: bool) -> None:
        """Record that its run was completed, or pruned after an evaluation."""
        with self._held:
            if done:
                self._study.tell(self._trial, self._found[-1])
            else:
                self._study.tell(self._trial, state=TrialState.PRUNED)

    def fail(self, reason: str) -> None:
        """Record that its settings cannot be trained with."""
        with self._held:
            self._trial.set_user_attr(_FAILURE, reason)
            self._study.tell(self._trial, state=TrialState.FAIL)

    def requeue(self) -> None:
        """Queue it to run again, as a new trial, because it was not finished."""
        with self._held:
            _requeue(self._study, self._trial)


def _opened(journal: Path) -> optuna.Study:
    """The study of a journal, which is new or continued. Raises TrainError if it is damaged, and OSError."""
    try:
        if journal.exists():
            with open_regular_file(journal):
                pass
        storage = JournalStorage(JournalFileBackend(str(journal)))
        return optuna.create_study(storage=storage, study_name=_NAME, direction="maximize", load_if_exists=True)
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise TrainError(f"{journal}: is damaged ({error!r}); start a new sweep in another folder") from error


def is_failure(error: BaseException) -> bool:
    """Whether an error of a training is the fault of the settings, so that a trial is not run again."""
    return isinstance(error, (ConfigError, NonFiniteError)) and not isinstance(error, CheckpointError)


def _requeue(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> None:
    study.tell(trial.number, state=TrialState.FAIL)
    if trial.params:
        study.enqueue_trial(dict(trial.params))


def _counts(trial: FrozenTrial) -> bool:
    """Whether a trial is running or finished."""
    lost = trial.state == TrialState.FAIL and _FAILURE not in trial.user_attrs
    return not lost and trial.state != TrialState.WAITING


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
    with open(path, "ab", opener=without_waiting) as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
