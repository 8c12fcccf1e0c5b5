"""Results of the last training battles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.config.schema import quantity
from echelon_train.ppo.teacher import BY_TEACHER

WINDOW = 100
"""Battles that the running statistics cover."""


@dataclass
class StatisticsState:
    """The last battles, at most `WINDOW` of each kind, and the number of all."""

    num_battles: int = 0
    outcomes: tuple[int, ...] = quantity((), "", -1, 1)
    own_outcomes: tuple[int, ...] = quantity((), "", -1, 1)
    """Of those that the learner has played itself; empty without a teacher."""
    returns: tuple[float, ...] = quantity((), "", -math.inf, math.inf)
    lengths: tuple[int, ...] = ()

    def add(self, outcome: int, mean_return: float, length: int, by_learner: bool) -> None:
        """Add a battle; `by_learner` says whether the learner has played it in a run with a teacher."""
        self.num_battles += 1
        self.outcomes = (*self.outcomes, outcome)[-WINDOW:]
        self.own_outcomes = (*self.own_outcomes, *[outcome] * by_learner)[-WINDOW:]
        self.returns = (*self.returns, mean_return)[-WINDOW:]
        self.lengths = (*self.lengths, length)[-WINDOW:]


def finished_battles(
    env: VecEnv, infos: list[dict[str, Any]], by_teacher: bool = False
) -> Iterator[list[dict[str, Any]]]:
    """The infos of the learner's rows of every battle of a `BattleVecEnv` that ended: of one team in self-play.

    With `by_teacher` also of those that the teacher has played in the learner's place.
    """
    team_size, num_battles = env.get_attr("team_size", 0)[0], env.get_attr("num_battles", 0)[0]
    for row in range(0, num_battles * team_size, team_size):
        if "outcome" in infos[row] and (by_teacher or not infos[row].get(BY_TEACHER)):
            yield infos[row : row + team_size]


class BattleStatistics(BaseCallback):  # type: ignore[misc]
    """Outcomes, returns and lengths of the last `WINDOW` battles of the environment, logged once per rollout.

    In runs with a teacher they include its battles; the win rate of the learner alone is logged beside them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._env: VecEnv | None = None
        self.state = StatisticsState()

    @property
    def win_rate(self) -> float | None:
        """Share of the last battles that were won; None before the first."""
        return _share(self.state.outcomes, 1)

    @property
    def learner_win_rate(self) -> float | None:
        """That of battles which the learner has played itself; None without a teacher, and before the first."""
        return _share(self.state.own_outcomes, 1)

    @property
    def mean_return(self) -> float | None:
        """Mean return of a mech over the last battles; None before the first."""
        return float(np.mean(self.state.returns)) if self.state.returns else None

    def _on_rollout_start(self) -> None:
        if self._env is not None and self._env is not self.training_env:
            self.state = StatisticsState(self.state.num_battles)
        self._env = self.training_env

    def _on_step(self) -> bool:
        for infos in finished_battles(self.training_env, self.locals["infos"], by_teacher=True):
            by_learner = getattr(self.model, "teacher", None) is not None and not infos[0].get(BY_TEACHER)
            mean_return = float(np.mean([info["episode"]["r"] for info in infos]))
            self.state.add(infos[0]["outcome"], mean_return, infos[0]["episode"]["l"], by_learner)
        return True

    def _on_rollout_end(self) -> None:
        self.logger.record("battle/count", self.state.num_battles)
        if self.state.outcomes:
            for name, outcome in (("win", 1), ("draw", 0), ("loss", -1)):
                self.logger.record(f"battle/{name}_rate", _share(self.state.outcomes, outcome))
            self.logger.record("battle/return", self.mean_return)
            self.logger.record("battle/length", float(np.mean(self.state.lengths)))
        if self.learner_win_rate is not None:
            self.logger.record("battle/learner_win_rate", self.learner_win_rate)


def _share(outcomes: Sequence[int], outcome: int) -> float | None:
    return outcomes.count(outcome) / len(outcomes) if outcomes else None
