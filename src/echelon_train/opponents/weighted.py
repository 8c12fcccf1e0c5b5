"""The opponents of a run without a league: drawn by weights, each with the learner's win rate against it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from echelon_env.config.opponent import HandicapConfig, Opponents
from echelon_env.config.schema import ConfigError
from echelon_train.opponents.auto_handicap import AutoHandicap

WINDOW = 100
"""Battles against an opponent that its win rate covers."""


class WeightedOpponents:
    """Draws a name for every battle, and counts the outcomes by name; names are the texts of the opponents.

    Parameters
    ----------
    opponents
        The opponents and their weights.
    seed
        Of the draws.
    win_rate
        The learner's win rate that the handicaps ``auto`` aim at.
    """

    def __init__(self, opponents: Opponents, seed: int, win_rate: float) -> None:
        self._members = dict(zip(opponents.names, opponents.members, strict=True))
        none = HandicapConfig()
        self._fixed = {name: None if each.handicap == none else each.handicap for name, each in self._members.items()}
        self._shares = np.array(opponents.weights) / sum(opponents.weights)
        self._seed = seed
        self._draws = 0
        self._schedules = {name: each.schedule for name, each in self._members.items() if each.schedule is not None}
        self._remaining = 1.0
        self._automatic = {name: AutoHandicap(win_rate) for name, each in self._members.items() if each.auto}
        self._battles = dict.fromkeys(self._members, 0)
        self._outcomes: dict[str, deque[int]] = {name: deque(maxlen=WINDOW) for name in self._members}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it draws from."""
        return tuple(self._members)

    def draw(self, count: int) -> list[str]:
        """The names of the next `count` battles' opponents."""
        generator = np.random.default_rng([self._seed, self._draws])
        self._draws += count
        names = list(self._members)
        return [names[each] for each in generator.choice(len(names), count, p=self._shares)]

    def player(self, name: str) -> tuple[str, HandicapConfig | None]:
        """The player of a name, a level, ``policy:PATH`` or ``self``, and its present handicap, if it has one."""
        return self._members[name].name, self._handicap(name)

    def set_remaining(self, remaining: float) -> bool:
        """Set the share of the run that is left, from 1 to 0. Returns whether a handicap may have changed."""
        changed, self._remaining = remaining != self._remaining, remaining
        return changed and bool(self._schedules)

    def record(self, name: str, outcome: int) -> bool:
        """Count a battle that the learner has won (1), drawn (0) or lost (-1). Returns whether a handicap changed."""
        self._battles[name] += 1
        self._outcomes[name].append(outcome)
        return name in self._automatic and self._automatic[name].record(outcome > 0)

    def metrics(self) -> dict[str, float]:
        """Win rates over the last `WINDOW` battles, numbers of battles and handicaps that change, by name."""
        found: dict[str, float] = {}
        for name, outcomes in self._outcomes.items():
            found[f"{name}/battles"] = self._battles[name]
            if outcomes:
                found[f"{name}/win_rate"] = outcomes.count(1) / len(outcomes)
            handicap = self._handicap(name)
            for number in self._changing(name):
                found[f"{name}/handicap/{number}"] = getattr(handicap, number)
        return found

    def _handicap(self, name: str) -> HandicapConfig | None:
        if name in self._schedules:
            return self._schedules[name].at(self._remaining)
        return self._automatic[name].handicap if name in self._automatic else self._fixed[name]

    def _changing(self, name: str) -> Sequence[str]:
        """The numbers of a name's handicap that may change during the run."""
        if name in self._schedules:
            return [*self._schedules[name].given]
        return ("fire_rate", "reaction_delay") if name in self._automatic else ()

    def state_dict(self) -> dict[str, Any]:
        """Everything that draws, win rates and handicaps depend on, as plain values for JSON."""
        return {
            "draws": self._draws,
            "battles": dict(self._battles),
            "outcomes": {name: list(outcomes) for name, outcomes in self._outcomes.items()},
            "handicaps": {name: each.state_dict() for name, each in self._automatic.items()},
        }

    def load_state_dict(self, state: Any) -> None:
        """Restore a `state_dict`. Raises `ConfigError` for an invalid one."""
        own = self.state_dict()
        if not isinstance(state, Mapping) or state.keys() != own.keys():
            raise ConfigError(f"opponents: expected a mapping with the keys {list(own)}, got {state!r}")
        for part in ("battles", "outcomes", "handicaps"):
            if not isinstance(state[part], Mapping) or state[part].keys() != own[part].keys():
                raise ConfigError(f"opponents: {part}: expected {list(own[part])}, got {state[part]!r}")
        for count in (state["draws"], *state["battles"].values()):
            if type(count) is not int or count < 0:
                raise ConfigError(f"opponents: expected integers of at least 0, got {count!r}")
        for name, outcomes in state["outcomes"].items():
            known = isinstance(outcomes, list) and len(outcomes) == min(state["battles"][name], WINDOW)
            if not known or not all(type(each) is int and each in (-1, 0, 1) for each in outcomes):
                raise ConfigError(f"opponents: outcomes: expected the last {WINDOW} of -1, 0 or 1, got {outcomes!r}")
        for name, each in self._automatic.items():
            each.load_state_dict(state["handicaps"][name])
        self._draws, self._battles = state["draws"], dict(state["battles"])
        self._outcomes = {name: deque(each, maxlen=WINDOW) for name, each in state["outcomes"].items()}
