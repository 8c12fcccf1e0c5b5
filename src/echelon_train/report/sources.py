"""Runs and experiments of several seeds, as a report reads them. Reading executes nothing and takes bounded memory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from echelon_train.config.train import TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.runs.curves import EVALUATION
from echelon_train.runs.experiment import read_experiment
from echelon_train.runs.folder import (
    METRICS_FILE,
    RUN_FILE,
    SEEDS_FILE,
    RunRecord,
    read_metrics,
    read_record,
    recorded_config,
)
from echelon_train.runs.metrics import STEPS, Metrics, is_number
from echelon_train.runs.state import flat

MAX_RUNS = 200
"""Of a report."""
_NO_DIFFERENCE = ("seed", "device", "threads", "torch_threads", "compile", "max_minutes", "max_cpu_minutes")
"""Settings in which runs of one group may differ."""


@dataclass(frozen=True)
class RunSource:
    """A run's folder as read."""

    path: Path
    record: RunRecord
    config: TrainConfig
    metrics: Metrics
    failure: str | None = None
    """Why its training failed, as the experiment of several seeds says."""
    unfinished: bool = False
    """Whether the experiment of several seeds has no result of it yet."""

    @property
    def name(self) -> str:
        """The name of the folder; of one run of several seeds with the experiment's."""
        path = self.path.resolve()
        return f"{path.parent.name}/{path.name}" if (path.parent / SEEDS_FILE).is_file() else path.name

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings by dotted names, as texts."""
        return texts(self.record.config)

    @property
    def steps(self) -> int:
        """Samples of the last line of the metrics."""
        return int(self.metrics[-1][STEPS]) if self.metrics else 0

    @property
    def evaluation(self) -> tuple[float | None, float | None, float | None]:
        """The win rate of the last evaluation, and the ends of its interval."""
        return self.last(EVALUATION), self.last(f"{EVALUATION}_low"), self.last(f"{EVALUATION}_high")

    def last(self, metric: str) -> float | None:
        """The last number of a metric; None if there is none."""
        return next((line[metric] for line in reversed(self.metrics) if is_number(line.get(metric))), None)


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds only."""

    label: str
    runs: Sequence[RunSource]
    failed: Sequence[RunSource] = ()
    """Runs that failed; the statistics do not have them."""


def metrics_of(groups: Sequence[Group]) -> dict[str, list[Metrics]]:
    """The metrics of the runs of groups, by the group's label."""
    return {group.label: [run.metrics for run in group.runs] for group in groups}


def read_run(path: Path) -> RunSource:
    """Read a run's folder. Raises RunFolderError, with the reason, and OSError."""
    metrics = read_metrics(path) if (path / METRICS_FILE).exists() else []
    record = read_record(path)
    return RunSource(path, record, recorded_config(path, record), metrics)


def read_groups(paths: Sequence[Path]) -> list[Group]:
    """The runs in folders, also in those of experiments, as groups that differ in more than the seed.

    Raises RunFolderError, with the reason, and OSError.
    """
    runs: list[tuple[str, RunSource]] = []
    for path in paths:
        for label, folder, failure, unfinished in _runs_in(path):
            if folder.resolve() in [run.path.resolve() for _, run in runs]:
                raise RunFolderError(f"{folder} is named twice")
            if len(runs) == MAX_RUNS:
                raise RunFolderError(f"expected at most {MAX_RUNS} runs")
            run = dataclasses.replace(read_run(folder), failure=failure, unfinished=unfinished)
            runs.append((label, run))
    together: dict[tuple[tuple[str, str], ...], list[tuple[str, RunSource]]] = {}
    for label, run in runs:
        key = tuple((name, value) for name, value in run.settings.items() if name not in _NO_DIFFERENCE)
        together.setdefault(key, []).append((label, run))
    labels: set[str] = set()
    groups = []
    for members in together.values():
        names = list(dict.fromkeys(label for label, _ in members))
        label = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        if label in labels:
            label = f"{label} ({members[0][1].path})"
        labels.add(label)
        usable = [run for _, run in members if run.failure is None]
        groups.append(Group(label, usable, [run for _, run in members if run.failure is not None]))
    return groups


def texts(plain: Any) -> dict[str, str]:
    """The values of nested objects by dotted names, as texts."""
    return {name: each if isinstance(each, str) else json.dumps(each) for name, each in flat(plain).items()}


def _runs_in(path: Path) -> Iterator[tuple[str, Path, str | None, bool]]:
    """(label, folder, failure, whether unfinished) of a run, or of the runs of an experiment that have begun."""
    if not (path / SEEDS_FILE).is_file():
        yield path.resolve().name, path, None, False
        return
    experiment = read_experiment(path)
    begun = [str(seed) for seed in experiment.seeds if (path / f"seed-{seed}" / RUN_FILE).is_file()]
    if not begun:
        raise RunFolderError(f"{path}: none of its runs has begun")
    for seed in begun:
        unfinished = int(seed) in experiment.missing
        yield path.resolve().name, path / f"seed-{seed}", experiment.failures.get(seed), unfinished
