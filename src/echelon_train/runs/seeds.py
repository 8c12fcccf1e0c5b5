"""One configuration trained with several seeds, as one experiment.

Its folder has a run's folder for each seed, ``seed-<seed>``; ``seeds.json`` with the configuration, the win rates of
the finished runs in their last evaluations, their summary, and why other runs failed; and ``curves.png`` with the win
rates in evaluations of all finished runs. A run that diverges does not end the experiment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.evaluate.statistics import CONFIDENCE, Interval, interquartile_mean, stratified_bootstrap
from echelon_env.storage.atomic import write_json
from echelon_env.storage.reading import parse_json, read_regular_file
from echelon_train.config.train import TrainConfig
from echelon_train.console import PrintableConsole
from echelon_train.errors import NonFiniteError, RunFolderError
from echelon_train.ppo import distributed
from echelon_train.runs.folder import RUN_FILE, SEEDS_FILE, claimed, locked, read_metrics, read_wandb
from echelon_train.runs.plots import CURVES_FILE, save_comparison
from echelon_train.runs.training import resume, train

FORMAT, VERSION = "echelon-seeds", 1
METRIC = "eval/win_rate"
MAX_SEEDS = 1_000
MAX_BYTES = 1 << 22


@dataclass(frozen=True)
class SeedsResult:
    """The runs of an experiment."""

    folder: Path
    win_rates: Mapping[int, float]
    """Of the finished runs in their last evaluations, by seed."""
    failures: Mapping[int, str]
    """Why training diverged, by seed. The statistics do not have these runs."""
    missing: Sequence[int]
    """Seeds whose runs are not finished, because the experiment was interrupted."""

    @property
    def median(self) -> float:
        """Median of the win rates; NaN without any."""
        return float(np.median([*self.win_rates.values()])) if self.win_rates else float("nan")

    @property
    def interquartile_mean(self) -> Interval:
        """Interquartile mean of the win rates, with its bootstrap interval over the seeds.

        With fewer than ten seeds such an interval is a rough one: see `stratified_bootstrap`. Raises ValueError
        without any win rate.
        """
        return stratified_bootstrap({"": np.array([*self.win_rates.values()])}, interquartile_mean)

    def summary(self) -> dict[str, Any] | None:
        """Median, interquartile mean and its interval, as plain values for JSON; None without any win rate."""
        if not self.win_rates:
            return None
        mean = self.interquartile_mean
        return {
            "runs": len(self.win_rates),
            "median": self.median,
            "interquartile_mean": mean.estimate,
            "interval": [mean.low, mean.high],
            "confidence": CONFIDENCE,
        }


def train_seeds(
    config: TrainConfig, out: Path, count: int, *, console: Console | None = None, wandb: str | None = None
) -> SeedsResult:
    """Train a configuration with `count` seeds, one after the other: its own seed and those that follow.

    Parameters
    ----------
    config
        The configuration; it needs evaluations.
    out
        Folder of the experiment; it must not exist, or be empty.
    count
        Number of seeds.
    console, wandb
        As for `train`.

    Raises
    ------
    ConfigError
        For another number of seeds than 1 to `MAX_SEEDS`, a configuration without evaluations, one in a league, and
        under torchrun.
    RunFolderError, OSError
        If the folder cannot be used. Further errors are those of `train`. If the first run cannot start, the folder is
        removed again.
    """
    if distributed.world_size() > 1:
        raise ConfigError("seeds: torchrun starts one run; use --processes for several processes", "seeds")
    if check_integer("seeds", count) > MAX_SEEDS:
        raise ConfigError(f"seeds: expected at most {MAX_SEEDS:,}, got {count:,}")
    if not config.eval_every:
        raise ConfigError("seeds: expected eval_every above 0: the runs are compared by their evaluations")
    if config.league.path:
        raise ConfigError("seeds: a run in a league cannot be repeated: the league is another one afterwards")
    seeds = [dataclasses.replace(config, seed=config.seed + number).seed for number in range(count)]
    with claimed(out, lambda: any((out / f"seed-{seed}").exists() for seed in seeds)):
        _write(out, config, seeds, SeedsResult(out, {}, {}, seeds))
        return _train_missing(out, config, seeds, {}, {}, console, wandb)


def resume_seeds(out: Path, *, console: Console | None = None, wandb: str | None = None) -> SeedsResult:
    """Continue an experiment that was interrupted: its run in progress, and the seeds that have not begun.

    Raises RunFolderError if the folder holds no experiment, or another process trains in it; further errors are those
    of `train` and `resume`.
    """
    _read(out)  # before a lock is written into a folder that holds no experiment
    with locked(out):
        return _train_missing(out, *_read(out), console, wandb)


def _train_missing(
    out: Path,
    config: TrainConfig,
    seeds: Sequence[int],
    finished: dict[int, float],
    failures: dict[int, str],
    console: Console | None,
    wandb: str | None,
) -> SeedsResult:
    begun = [out / f"seed-{seed}" for seed in seeds if (out / f"seed-{seed}" / RUN_FILE).exists()]
    wandb = wandb or next(filter(None, map(read_wandb, begun)), None)
    for number, seed in enumerate(seeds, start=1):
        if seed in finished or seed in failures:
            continue
        (console or PrintableConsole()).print(f"Seed {seed}, {number} of {len(seeds)}", highlight=False)
        folder = out / f"seed-{seed}"
        try:
            if (folder / RUN_FILE).exists():
                result = resume(folder, console=console, wandb=wandb)
            else:
                result = train(dataclasses.replace(config, seed=seed), folder, console=console, wandb=wandb)
            if not result.done:
                break
            rates = (line[METRIC] for line in reversed(read_metrics(folder)) if line.get(METRIC) is not None)
            finished[seed] = next(rates)
            interrupted = result.interrupted  # in its last iteration
        except NonFiniteError as error:
            failures[seed], interrupted = str(error), False
        _write(out, config, seeds, _result(out, seeds, finished, failures))
        if seed in finished:
            runs = [read_metrics(out / f"seed-{each}") for each in finished]
            save_comparison(out / CURVES_FILE, {out.resolve().name: runs}, METRIC)
        if interrupted:
            break
    return _result(out, seeds, finished, failures)


def _result(out: Path, seeds: Sequence[int], finished: Mapping[int, float], failures: Mapping[int, str]) -> SeedsResult:
    missing = [seed for seed in seeds if seed not in finished and seed not in failures]
    return SeedsResult(out, dict(finished), dict(failures), missing)


def _write(out: Path, config: TrainConfig, seeds: Sequence[int], result: SeedsResult) -> None:
    document = {
        "format": FORMAT,
        "version": VERSION,
        "config": config.to_dict(),
        "seeds": list(seeds),
        "win_rates": {str(seed): win_rate for seed, win_rate in result.win_rates.items()},
        "summary": result.summary(),
        "failures": {str(seed): reason for seed, reason in result.failures.items()},
    }
    write_json(out / SEEDS_FILE, document)


def _read(out: Path) -> tuple[TrainConfig, list[int], dict[int, float], dict[int, str]]:
    """Configuration, seeds, win rates and failures of an experiment. Raises RunFolderError."""
    path = out / SEEDS_FILE
    try:
        document = parse_json(read_regular_file(path, MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise RunFolderError(f"{out} is no experiment of several seeds: it has no {SEEDS_FILE}") from None
    except ValueError as error:
        raise RunFolderError(f"{path}: expected JSON: {error}") from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (FORMAT, VERSION):
        raise RunFolderError(f"{path}: expected an experiment of several seeds, version {VERSION}")
    seeds, win_rates = document.get("seeds"), document.get("win_rates")
    if not isinstance(seeds, list) or not 1 <= len(seeds) <= MAX_SEEDS or any(type(seed) is not int for seed in seeds):
        raise RunFolderError(f"{path}: seeds: expected 1 to {MAX_SEEDS:,} integers")
    names = {str(seed): seed for seed in seeds}
    if not isinstance(win_rates, dict) or not all(
        name in names and type(share) in (int, float) and 0 <= share <= 1 for name, share in win_rates.items()
    ):
        raise RunFolderError(f"{path}: win_rates: expected shares from 0 to 1 of these seeds")
    failures = document.get("failures")
    if not isinstance(failures, dict) or not all(
        name in names and name not in win_rates and isinstance(reason, str) for name, reason in failures.items()
    ):
        raise RunFolderError(f"{path}: failures: expected reasons of other seeds than those with a win rate")
    try:
        config = TrainConfig.from_dict(document.get("config", {}))
    except ConfigError as error:
        raise RunFolderError(f"{path}: config: {error}") from None
    finished = {names[name]: float(share) for name, share in win_rates.items()}
    return config, seeds, finished, {names[name]: reason for name, reason in failures.items()}
