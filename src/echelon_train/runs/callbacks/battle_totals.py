"""Battle statistics of a run: metrics of the last battles, and the totals of the run's file of statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from echelon_env.config.schema import ConfigError, measure
from echelon_env.evaluate.battle_observer import BattleObserver
from echelon_env.evaluate.battle_record import BattleRecord
from echelon_env.evaluate.battle_totals import BattleTotals
from echelon_env.evaluate.statistics_file import (
    MAX_EVALUATIONS,
    MAX_PERIODS,
    STATISTICS_FILE,
    EvaluationTotals,
    Period,
    StatisticsFile,
    write_statistics,
)
from echelon_env.storage.arrays import named, part_of
from echelon_env.storage.reading import parse_json
from echelon_train.runs.battle_metrics import RecentBattles
from echelon_train.runs.loggers import NOT_TEXT
from echelon_train.tensor_files import part_of as tensors_of
from echelon_train.vec_env import BattleVecEnv

MAX_NAMES = 32
"""Opponents with totals of their own. Of more, those that were not played for longest are counted together."""

HISTOGRAMS = {"return": "reward", "damage_dealt": "damage_dealt"}
"""Histograms of the mechs' battles since the last line of metrics -> the sums that they show."""

TENSORS = "totals."
"""Prefix of the names of the state's tensors."""

_DOCUMENT = "document"


@dataclass(frozen=True)
class TotalsState:
    """The small parts of the state of a `BattleTotalsCallback`."""

    names: tuple[str, ...]
    """Opponents with totals; the one that was played last is the last one."""
    recent: RecentBattles
    rollouts_last: int
    """Rollouts of the last period so far."""
    rollouts_each: int = measure("rollouts", 1, math.inf)
    """Rollouts of a period."""


class BattleTotalsCallback(BaseCallback):  # type: ignore[misc]
    """Measures the training battles of this process, logs metrics of them, and keeps their totals for the run's file.

    The totals are those of periods of training. A period covers some rollouts; when there would be more than
    `MAX_PERIODS`, neighbours are joined and the periods are twice as long. So memory and file are bounded. Without the
    run's folder it does nothing, as in all processes of a run but the first.
    """

    def __init__(self, run: Path | None) -> None:
        super().__init__()
        self._run = run
        self._env: BattleVecEnv | None = None
        self._observer: BattleObserver | None = None
        self._sides: NDArray[np.int64] = np.zeros(0, np.int64)
        self._rollout = BattleTotals()
        self._values: dict[str, list[float]] = {name: [] for name in HISTOGRAMS}
        self._recent = RecentBattles()
        self._names: dict[str, None] = {}  # see `TotalsState`
        self._periods: list[Period] = []
        self._rollouts_last, self._rollouts_each = 0, 1  # see `TotalsState`
        self._evaluations: list[EvaluationTotals] = []

    def add_evaluation(self, steps: int, scenario: str, totals: BattleTotals) -> None:
        """Add the statistics of an evaluation after `steps` decisions. Only the last one keeps its heat maps."""
        earlier = [EvaluationTotals(e.steps, e.scenario, BattleTotals(e.totals.opponents)) for e in self._evaluations]
        if len(earlier) == MAX_EVALUATIONS:
            earlier = earlier[::2]
        self._evaluations = [*earlier, EvaluationTotals(steps, scenario, totals)]

    def write(self, steps: int) -> None:
        """Write the run's file of statistics, after `steps` decisions. Raises OSError."""
        if self._run is not None:
            write_statistics(self._run / STATISTICS_FILE, self._file(self._run.resolve().name, steps))

    @property
    def state(self) -> TotalsState | None:
        """The complete state with `state_tensors`, between two rollouts; None if it does nothing."""
        if self._run is None:
            return None
        return TotalsState(tuple(self._names), self._recent, self._rollouts_last, self._rollouts_each)

    def state_tensors(self) -> dict[str, Tensor]:
        """The large parts of the state; names begin with `TENSORS`."""
        if self._run is None:
            return {}
        document = self._file("run", 0).to_dict(exact=True)
        observed = {} if self._observer is None else self._observer.state_arrays()
        arrays = {_DOCUMENT: np.frombuffer(json.dumps(document).encode(), np.uint8), **named("battles", observed)}
        return {f"{TENSORS}{name}": torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def restore(self, state: TotalsState | None, tensors: Mapping[str, Tensor], env: VecEnv) -> None:
        """Restore a state for the next rollout, in a `BattleVecEnv` that has been restored.

        Raises ValueError for an invalid one.
        """
        if self._run is None or state is None:
            return
        arrays = {name: tensor.numpy() for name, tensor in tensors_of(tensors, TENSORS).items()}
        document = arrays.get(_DOCUMENT)
        if document is None or document.dtype != np.uint8:
            raise ConfigError(f"battle totals: expected the bytes of {TENSORS}{_DOCUMENT}")
        file = StatisticsFile.from_dict(parse_json(document.tobytes()))
        self._names, self._recent = dict.fromkeys(state.names), state.recent
        self._rollouts_last, self._rollouts_each = state.rollouts_last, state.rollouts_each
        self._periods, self._evaluations = list(file.training), list(file.evaluations)
        battles = part_of(arrays, "battles")
        if battles:
            self._observe(env).restore_arrays(battles)

    def _on_rollout_start(self) -> None:
        if self._run is not None and self._env is not self.training_env:
            self._observe(self.training_env)
        if self._env is not None:
            self._sides = self._env.battles.side

    def _on_step(self) -> bool:
        env, observer = self._env, self._observer
        if env is not None and observer is not None and observer.finished:
            for battle, record in sorted(observer.finished.items()):
                info = self.locals["infos"][battle * env.team_size]
                self._add(record, info.get("opponent", "opponent"), int(self._sides[battle]))
            observer.finished.clear()
            self._sides = env.battles.side  # of the next battles
        return True

    def _on_rollout_end(self) -> None:
        self._add_rollout(self.model.num_timesteps)
        for name, value in self._recent.metrics().items():
            self.logger.record(name, value)
        for name, values in self._values.items():
            if values:
                self.logger.record(f"battle/histogram/{name}", torch.tensor(values), exclude=NOT_TEXT)
                values.clear()

    def _file(self, player: str, steps: int) -> StatisticsFile:
        return StatisticsFile(player, steps, tuple(self._periods), tuple(self._evaluations))

    def _observe(self, env: VecEnv) -> BattleObserver:
        """Observe an environment's battles, in the place of the last one's."""
        if not isinstance(env, BattleVecEnv):
            raise TypeError(f"expected a BattleVecEnv, got {type(env).__name__}")
        if self._observer is not None:
            self._observer.close()
        self._env, self._observer = env, BattleObserver(env.engine)
        return self._observer

    def _add(self, record: BattleRecord, opponent: str, side: int) -> None:
        """Add a battle of the learner's team `side`."""
        self._names.pop(opponent, None)
        self._names[opponent] = None
        if len(self._names) > MAX_NAMES:
            oldest = next(iter(self._names))
            del self._names[oldest]
            for totals in (self._rollout, *(period.totals for period in self._periods)):
                totals.fold(oldest)
        totals = record.totals(opponent, side)
        self._rollout.add(totals)
        self._recent.add(opponent, totals.by_class("own"))
        own = record.sums[record.teams == side]
        for name, of_sum in HISTOGRAMS.items():
            self._values[name] += own[:, record.names.index(of_sum)].tolist()

    def _add_rollout(self, steps: int) -> None:
        """Add the battles of the rollout that ends after `steps` decisions to the last period, or begin one."""
        if self._periods and self._rollouts_last < self._rollouts_each:
            last = self._periods.pop()
            last.totals.add(self._rollout)
            self._periods.append(Period(last.first, steps, last.totals))
            self._rollouts_last += 1
        else:
            if len(self._periods) == MAX_PERIODS:
                pairs = zip(self._periods[::2], self._periods[1::2], strict=True)
                self._periods = [
                    Period(one.first, two.last, BattleTotals.merged([one.totals, two.totals])) for one, two in pairs
                ]
                self._rollouts_each *= 2
            self._periods.append(Period(self._periods[-1].last if self._periods else 0, steps, self._rollout))
            self._rollouts_last = 1
        self._rollout = BattleTotals()
