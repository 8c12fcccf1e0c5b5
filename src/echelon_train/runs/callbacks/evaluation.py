"""Periodic evaluation on unseen maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from echelon_env.config.schema import quantity
from echelon_train.runs.battle_metrics import MAIN, chosen_measures
from echelon_train.runs.callbacks.every import EveryCallback
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.metrics import EVALUATION_STEPS


@dataclass(frozen=True)
class BestEvaluation:
    """The evaluation with the highest win rate in the current stage of a curriculum."""

    win_rate: float = quantity(-1.0, "", -1, 1)
    """-1 before the first."""
    moves: int = 0
    """Changes of the stage before it."""
    steps: int | None = None
    """Samples of the policy."""


class EvaluationCallback(EveryCallback):
    """Evaluates the policy every so many decisions and at the end, and logs the result.

    `keep` is called after an evaluation with the highest win rate so far in the current stage of a curriculum, or the
    same. `moves` returns the changes of the stage so far. The other arguments are those of `EveryCallback`.
    """

    def __init__(
        self,
        every: int,
        evaluate: Callable[[], Evaluation],
        keep: Callable[[], None],
        moves: Callable[[], int],
        stopping: Callable[[], bool],
    ) -> None:
        super().__init__(every, self._record, stopping)
        self._evaluate, self._keep, self._moves = evaluate, keep, moves
        self.best = BestEvaluation()

    def _record(self) -> None:
        result = self._evaluate()
        self.logger.record(EVALUATION_STEPS, self.model.num_timesteps)
        for name, share in (("win", result.wins), ("draw", result.draws), ("loss", result.losses)):
            self.logger.record(f"eval/{name}_rate", share.estimate)
        self.logger.record("eval/win_rate_low", result.wins.low)
        self.logger.record("eval/win_rate_high", result.wins.high)
        if result.maps_trained_on:
            self.logger.record("eval/maps_trained_on", result.maps_trained_on)
        if len(result.win_rates) > 1:
            for name, share in result.win_rates.items():
                self.logger.record(f"eval/win_rate/{name}", share.estimate)
        for name, value in chosen_measures("eval", MAIN, result.totals.sums("own")).items():
            self.logger.record(name, value)
        rate, moves = float(result.wins.estimate), self._moves()
        if rate >= self.best.win_rate or moves != self.best.moves:
            self.best = BestEvaluation(rate, moves, self.model.num_timesteps)
            self._keep()
