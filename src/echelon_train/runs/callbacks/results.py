"""Results of the last training battles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.evaluate.battle_totals import Sums, ratio
from echelon_train.ppo.teacher import BY_TEACHER
from echelon_train.runs.battle_metrics import added

OUTCOMES = {1: "wins", 0: "draws", -1: "losses"}
"""Outcome -> the sum that counts it."""
_METRICS = {"win_rate": "wins", "draw_rate": "draws", "loss_rate": "losses", "return": "return", "length": "length"}


@dataclass
class ResultsState:
    """Sums over the last battles, whose weights decay as in `RecentBattles`, and the number of all battles."""

    num_battles: int = 0
    sums: Sums = field(default_factory=dict, metadata={"low": -math.inf})  # returns may be negative
    own_sums: Sums = field(default_factory=dict, metadata={"low": -math.inf})
    """Of those that the learner has played itself; empty without a teacher."""

    def add(self, outcome: int, mean_return: float, length: int, by_learner: bool) -> None:
        """Add a battle; `by_learner` says whether the learner has played it in a run with a teacher."""
        self.num_battles += 1
        battle = {"battles": 1.0, OUTCOMES[outcome]: 1.0, "return": mean_return, "length": float(length)}
        self.sums = added(self.sums, battle)
        if by_learner:
            self.own_sums = added(self.own_sums, battle)


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


class BattleResults(BaseCallback):  # type: ignore[misc]
    """Outcomes, returns and lengths of the last battles of the environment, logged once per rollout.

    In runs with a teacher they include its battles; the win rate of the learner alone is logged beside them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._env: VecEnv | None = None
        self.state = ResultsState()

    @property
    def win_rate(self) -> float | None:
        """Share of the last battles that were won; None before the first."""
        return ratio(self.state.sums, "wins", "battles")

    @property
    def learner_win_rate(self) -> float | None:
        """That of battles which the learner has played itself; None without a teacher, and before the first."""
        return ratio(self.state.own_sums, "wins", "battles")

    @property
    def mean_return(self) -> float | None:
        """Mean return of a mech over the last battles; None before the first."""
        return ratio(self.state.sums, "return", "battles")

    def _on_rollout_start(self) -> None:
        if self._env is not None and self._env is not self.training_env:
            self.state = ResultsState(self.state.num_battles)
        self._env = self.training_env

    def _on_step(self) -> bool:
        for infos in finished_battles(self.training_env, self.locals["infos"], by_teacher=True):
            by_learner = getattr(self.model, "teacher", None) is not None and not infos[0].get(BY_TEACHER)
            mean_return = float(np.mean([info["episode"]["r"] for info in infos]))
            self.state.add(infos[0]["outcome"], mean_return, infos[0]["episode"]["l"], by_learner)
        return True

    def _on_rollout_end(self) -> None:
        self.logger.record("battle/count", self.state.num_battles)
        if self.state.sums:
            for name, of_sum in _METRICS.items():
                self.logger.record(f"battle/{name}", ratio(self.state.sums, of_sum, "battles"))
        if self.learner_win_rate is not None:
            self.logger.record("battle/learner_win_rate", self.learner_win_rate)
