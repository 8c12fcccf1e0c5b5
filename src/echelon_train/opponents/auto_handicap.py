"""The handicap `auto`: an opponent that is held where the learner wins a chosen share of the battles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from echelon_env.config.opponent import HandicapConfig
from echelon_env.config.schema import ConfigError

_WEAKEST_FIRE = 0.1
RUNGS = (
    *(HandicapConfig(fire_rate=round(1.0 - 0.05 * step, 2)) for step in range(19)),
    *(HandicapConfig(fire_rate=_WEAKEST_FIRE, reaction_delay=0.25 * step) for step in range(1, 9)),
)
"""The handicaps from none to the heaviest: a lower rate of fire down to 0.1, then a delay of up to 2 s."""

START = 15
"""The rung at the start, a rate of fire of 0.25: a learner loses less to an opponent that is too weak at first than to
one that it never beats."""

BATTLES = 32
"""Battles on a rung before it can change; the rate is computed from the last so many."""

BAND = 0.1
"""Distance from the target that the win rate must reach; the standard deviation of 32 battles is at most 0.09."""


class AutoHandicap:
    """One opponent's handicap, which follows the learner's win rate against it.

    After `BATTLES` battles on a rung a win rate of `BAND` above the target leads to the next stronger rung, one of
    `BAND` below it to the next weaker one. Each rung begins with no battles.

    Parameters
    ----------
    target
        The win rate to stay near, 0 to 1.
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._rung = START
        self._won: list[bool] = []

    @property
    def handicap(self) -> HandicapConfig:
        """The present handicap."""
        return RUNGS[self._rung]

    def record(self, won: bool) -> bool:
        """Count a battle; a draw is no win. Returns whether the handicap has changed."""
        self._won = [*self._won, bool(won)][-BATTLES:]
        if len(self._won) < BATTLES:
            return False
        rate = sum(self._won) / BATTLES
        stronger, weaker = rate >= min(1.0, self._target + BAND), rate <= max(0.0, self._target - BAND)
        rung = min(max(self._rung - stronger + weaker, 0), len(RUNGS) - 1)
        if rung == self._rung:
            return False
        self._rung, self._won = rung, []
        return True

    def state_dict(self) -> dict[str, Any]:
        """The rung and its battles, as plain values for JSON."""
        return {"rung": self._rung, "won": list(self._won)}

    def load_state_dict(self, state: Any) -> None:
        """Restore a `state_dict`. Raises `ConfigError`, with nothing changed, for an invalid one."""
        valid = isinstance(state, Mapping) and state.keys() == self.state_dict().keys()
        if not valid or type(state["rung"]) is not int or not 0 <= state["rung"] < len(RUNGS):
            raise ConfigError(f"handicap: expected a rung from 0 to {len(RUNGS) - 1} and 'won', got {state!r}")
        won = state["won"]
        if not isinstance(won, list) or len(won) > BATTLES or not all(isinstance(each, bool) for each in won):
            raise ConfigError(f"handicap: won: expected up to {BATTLES} booleans, got {won!r}")
        self._rung, self._won = state["rung"], list(won)
