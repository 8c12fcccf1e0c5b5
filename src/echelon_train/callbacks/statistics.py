"""How the last training battles went."""

from __future__ import annotations

from collections import deque

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

WINDOW = 100
"""Battles that the running statistics look back on."""


class BattleStatistics(BaseCallback):  # type: ignore[misc]
    """Outcomes, returns and lengths of the last `WINDOW` battles, logged once a rollout.

    Parameters
    ----------
    team_size
        Rows of a battle.
    """

    def __init__(self, team_size: int) -> None:
        super().__init__()
        self._team_size = team_size
        self._outcomes: deque[int] = deque(maxlen=WINDOW)
        self._returns: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[int] = deque(maxlen=WINDOW)
        self.num_battles = 0

    @property
    def win_rate(self) -> float | None:
        """Share of the last battles that were won; None before the first."""
        return self._share(1)

    @property
    def mean_return(self) -> float | None:
        """Mean return of a mech over the last battles; None before the first."""
        return float(np.mean(self._returns)) if self._returns else None

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        for row in range(0, len(infos), self._team_size):
            if "outcome" in infos[row]:
                episodes = [info["episode"] for info in infos[row : row + self._team_size]]
                self._outcomes.append(infos[row]["outcome"])
                self._returns.append(float(np.mean([episode["r"] for episode in episodes])))
                self._lengths.append(episodes[0]["l"])
                self.num_battles += 1
        return True

    def _on_rollout_end(self) -> None:
        self.logger.record("battle/count", self.num_battles)
        if self._outcomes:
            for name, outcome in (("win", 1), ("draw", 0), ("loss", -1)):
                self.logger.record(f"battle/{name}_rate", self._share(outcome))
            self.logger.record("battle/return", self.mean_return)
            self.logger.record("battle/length", float(np.mean(self._lengths)))

    def _share(self, outcome: int) -> float | None:
        return self._outcomes.count(outcome) / len(self._outcomes) if self._outcomes else None
