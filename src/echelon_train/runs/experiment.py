"""One configuration trained with several seeds, as one experiment.

Its folder has a run's folder for each seed, ``seed-<seed>``; ``seeds.json`` with the configuration, the win rates of
the finished runs in their last evaluations, their summary, and why other runs failed; and ``curves.png`` with the win
rates in evaluations of all finished runs. A run that diverges does not end the experiment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from echelon_env.config.schema import ConfigError, build, check_fields, check_integer, to_plain
from echelon_env.evaluate.estimates import CONFIDENCE, interquartile_mean, stratified_bootstrap
from echelon_env.storage.atomic import write_json
from echelon_train.config.train import TrainConfig
from echelon_train.console import PrintableConsole
from echelon_train.errors import NonFiniteError, RunFolderError
from echelon_train.runs.curves import CURVES_FILE, save_comparison
from echelon_train.runs.folder import RUN_FILE, SEEDS_FILE, claimed, locked, read_json, read_metrics
from echelon_train.runs.training import resume, train

FORMAT, VERSION = "echelon-seeds", 1
METRIC = "eval/win_rate"
MAX_SEEDS = 1_000


@dataclass
class Experiment:
    """What the file ``seeds.json`` holds. Raises `ConfigError` for a result of another seed, and for two of one."""

    config: dict[str, Any]  # of `TrainConfig`
    seeds: tuple[int, ...]
    win_rates: dict[str, float] = field(default_factory=dict, metadata={"low": 0.0, "high": 1.0})
    """Of the finished runs in their last evaluations, by seed."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why training diverged, by seed. The statistics do not have these runs."""
    summary: dict[str, Any] | None = None
    """Median, interquartile mean and its bootstrap interval over the seeds; None without any win rate.

    With fewer than ten seeds such an interval is a rough one: see `stratified_bootstrap`.
    """
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        check_fields(self, "")
        if (self.format, self.version) != (FORMAT, VERSION):
            raise ConfigError(f"expected an experiment of several seeds, version {VERSION}")
        if not 1 <= len(self.seeds) <= MAX_SEEDS:
            raise ConfigError(f"seeds: expected 1 to {MAX_SEEDS:,} integers")
        if not set(map(str, self.seeds)).issuperset(results := [*self.win_rates, *self.failures]):
            raise ConfigError("win_rates, failures: expected those of its seeds")
        if len({*results}) < len(results):
            raise ConfigError("failures: expected reasons of seeds without a win rate")

    @property
    def missing(self) -> list[int]:
        """The seeds without a result, because the experiment was interrupted."""
        return [each for each in self.seeds if str(each) not in self.win_rates | self.failures]


def train_seeds(config: TrainConfig, out: Path, count: int, *, console: Console | None = None) -> Experiment:
    """Train a configuration with `count` seeds, one after the other: its own seed and those that follow.

    The configuration needs evaluations. The folder `out` must not exist, or be empty.

    Raises
    ------
    ConfigError
        For another number of seeds than 1 to `MAX_SEEDS`, a configuration without evaluations, and one in a league.
    RunFolderError, OSError
        If the folder cannot be used. Further errors are those of `train`. If the first run cannot start, the folder is
        removed again.
    """
    if check_integer("seeds", count) > MAX_SEEDS:
        raise ConfigError(f"seeds: expected at most {MAX_SEEDS:,}, got {count:,}")
    if not config.eval_every:
        raise ConfigError("seeds: expected eval_every above 0: the runs are compared by their evaluations")
    if config.league.path:
        raise ConfigError("seeds: a run in a league cannot be repeated: the league is another one afterwards")
    seeds = [dataclasses.replace(config, seed=config.seed + number).seed for number in range(count)]
    with claimed(out, lambda: any((out / f"seed-{seed}").exists() for seed in seeds)):
        experiment = Experiment(config.to_dict(), tuple(seeds))
        _write(out, experiment)
        return _train_missing(out, experiment, console)


def resume_seeds(out: Path, *, console: Console | None = None) -> Experiment:
    """Continue an experiment that was interrupted: its run in progress, and the seeds that have not begun.

    Raises RunFolderError if the folder holds no experiment, or another process trains in it; further errors are those
    of `train` and `resume`.
    """
    read_experiment(out)  # before a lock is written into a folder that holds no experiment
    with locked(out):
        return _train_missing(out, read_experiment(out), console)


def read_experiment(out: Path) -> Experiment:
    """What the folder of an experiment holds. Raises RunFolderError, with the reason, and OSError."""
    document = read_json(out / SEEDS_FILE, f"{out} is no experiment of several seeds: it has no {SEEDS_FILE}")
    try:
        experiment: Experiment = build(Experiment, document, "")
    except ConfigError as error:
        raise RunFolderError(f"{out / SEEDS_FILE}: {error}") from None
    return experiment


def _train_missing(out: Path, experiment: Experiment, console: Console | None) -> Experiment:
    try:
        config = TrainConfig.from_dict(experiment.config)
    except ConfigError as error:
        raise RunFolderError(f"{out / SEEDS_FILE}: config: {error}") from None
    for seed in experiment.missing:
        number = f"{experiment.seeds.index(seed) + 1} of {len(experiment.seeds)}"
        (console or PrintableConsole()).print(f"Seed {seed}, {number}", highlight=False)
        folder, interrupted = out / f"seed-{seed}", False
        try:
            if (folder / RUN_FILE).exists():
                result = resume(folder, console=console)
            else:
                result = train(dataclasses.replace(config, seed=seed), folder, console=console)
            if not result.done:
                break
            rates = (line[METRIC] for line in reversed(read_metrics(folder)) if line.get(METRIC) is not None)
            experiment.win_rates[str(seed)] = next(rates)
            interrupted = result.interrupted  # in its last iteration
        except NonFiniteError as error:
            experiment.failures[str(seed)] = str(error)
        _write(out, experiment)
        if str(seed) in experiment.win_rates:
            runs = [read_metrics(out / f"seed-{each}") for each in experiment.win_rates]
            name = out.resolve().name
            save_comparison(out / CURVES_FILE, name, {name: runs})
        if interrupted:
            break
    experiment.summary = _summary(experiment.win_rates)  # that of the file is unchecked
    return experiment


def _write(out: Path, experiment: Experiment) -> None:
    experiment.summary = _summary(experiment.win_rates)
    write_json(out / SEEDS_FILE, to_plain(experiment))


def _summary(win_rates: Mapping[str, float]) -> dict[str, Any] | None:
    if not win_rates:
        return None
    rates = np.array([*win_rates.values()])
    mean = stratified_bootstrap({"": rates}, interquartile_mean)
    return {
        "runs": len(rates),
        "median": float(np.median(rates)),
        "interquartile_mean": mean.estimate,
        "interval": [mean.low, mean.high],
        "confidence": CONFIDENCE,
    }
