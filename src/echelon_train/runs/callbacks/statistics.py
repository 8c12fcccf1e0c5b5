"""Results of the last training battles."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.config.schema import ConfigError
from echelon_train.ppo.teacher import BY_TEACHER

WINDOW = 100
"""Battles that the running statistics cover."""

_OUTCOMES: tuple[str, Callable[[Any], bool]] = (
    "outcomes of -1, 0 or 1",
    lambda value: type(value) is int and value in (-1, 0, 1),
)
_VALID: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "outcomes": _OUTCOMES,
    "own_outcomes": _OUTCOMES,
    "returns": ("finite numbers", lambda value: type(value) is float and math.isfinite(value)),
    "lengths": ("integers of at least 1", lambda value: type(value) is int and value >= 1),
}
"""Valid values of the battles' statistics in a state."""


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
        self._outcomes: deque[int] = deque(maxlen=WINDOW)
        self._own_outcomes: deque[int] = deque(maxlen=WINDOW)  # empty without a teacher
        self._returns: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[int] = deque(maxlen=WINDOW)
        self.num_battles = 0

    @property
    def win_rate(self) -> float | None:
        """Share of the last battles that were won; None before the first."""
        return _share(self._outcomes, 1)

    @property
    def learner_win_rate(self) -> float | None:
        """That of battles which the learner has played itself; None without a teacher, and before the first."""
        return _share(self._own_outcomes, 1)

    @property
    def mean_return(self) -> float | None:
        """Mean return of a mech over the last battles; None before the first."""
        return float(np.mean(self._returns)) if self._returns else None

    @property
    def _windows(self) -> dict[str, deque[Any]]:
        return {
            "outcomes": self._outcomes,
            "own_outcomes": self._own_outcomes,
            "returns": self._returns,
            "lengths": self._lengths,
        }

    def state_dict(self) -> dict[str, Any]:
        """The statistics as plain values for JSON."""
        return {"num_battles": self.num_battles, **{name: list(each) for name, each in self._windows.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict`, in an environment whose battles continue.

        Raises `ConfigError`, with nothing changed, for an invalid one.
        """
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise ConfigError(f"statistics: expected a mapping with the keys {list(self.state_dict())}, got {state!r}")
        count = state["num_battles"]
        if type(count) is not int or count < 0:
            raise ConfigError(f"statistics: num_battles: expected an integer of at least 0, got {count!r}")
        window = min(count, WINDOW)
        for name, (expected, valid) in _VALID.items():
            values = state[name]
            if not isinstance(values, list) or len(values) > window or not all(map(valid, values)):
                raise ConfigError(f"statistics: {name}: expected up to {window} {expected}, got {values!r}")
        if len({len(state[name]) for name in ("outcomes", "returns", "lengths")}) > 1:
            raise ConfigError("statistics: expected as many outcomes as returns and lengths")
        self.num_battles = count
        for name, battles in self._windows.items():
            battles.clear()
            battles.extend(state[name])

    def _on_rollout_start(self) -> None:
        if self._env is not None and self._env is not self.training_env:
            for battles in self._windows.values():
                battles.clear()
        self._env = self.training_env

    def _on_step(self) -> bool:
        for infos in finished_battles(self.training_env, self.locals["infos"], by_teacher=True):
            if getattr(self.model, "teacher", None) is not None and not infos[0].get(BY_TEACHER):
                self._own_outcomes.append(infos[0]["outcome"])
            self._outcomes.append(infos[0]["outcome"])
            self._returns.append(float(np.mean([info["episode"]["r"] for info in infos])))
            self._lengths.append(infos[0]["episode"]["l"])
            self.num_battles += 1
        return True

    def _on_rollout_end(self) -> None:
        self.logger.record("battle/count", self.num_battles)
        if self._outcomes:
            for name, outcome in (("win", 1), ("draw", 0), ("loss", -1)):
                self.logger.record(f"battle/{name}_rate", _share(self._outcomes, outcome))
            self.logger.record("battle/return", self.mean_return)
            self.logger.record("battle/length", float(np.mean(self._lengths)))
        if self.learner_win_rate is not None:
            self.logger.record("battle/learner_win_rate", self.learner_win_rate)


def _share(outcomes: deque[int], outcome: int) -> float | None:
    return outcomes.count(outcome) / len(outcomes) if outcomes else None
