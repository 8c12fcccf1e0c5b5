"""Periodic evaluation on unseen maps."""

from __future__ import annotations

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.evaluation import Evaluation


class EvaluationCallback(BaseCallback):  # type: ignore[misc]
    """Evaluates at the start, at the end, and between two updates whenever enough samples have come; logs the result.

    Parameters
    ----------
    every
        Samples between two evaluations.
    evaluate
        Evaluates the policy as it is.
    stopped
        Whether the user wants the run to end, so that the last evaluation is left out.
    """

    def __init__(self, every: int, evaluate: Callable[[], Evaluation], stopped: Callable[[], bool]) -> None:
        super().__init__()
        self._stopped = stopped
        self._every = every
        self._evaluate = evaluate
        self._due = 0

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._due:
            self._due = self.num_timesteps + self._every
            self._record()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if not self._stopped():
            self._record()

    def _record(self) -> None:
        result = self._evaluate()
        for name, share in (("win", result.wins), ("draw", result.draws), ("loss", result.losses)):
            self.logger.record(f"eval/{name}_rate", share.estimate)
        self.logger.record("eval/win_rate_low", result.wins.low)
        self.logger.record("eval/win_rate_high", result.wins.high)
