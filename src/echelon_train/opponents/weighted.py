"""The opponents of a run without a league: drawn by weights, each with the learner's win rate against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from echelon_env.config.opponent import HandicapConfig, Opponents
from echelon_env.config.schema import ConfigError, quantity
from echelon_train.opponents.auto_handicap import AutoHandicap

WINDOW = 100
"""Battles against an opponent that its win rate covers."""


@dataclass
class Results:
    """The battles against an opponent."""

    battles: int = 0
    last: tuple[int, ...] = quantity((), "", -1, 1)
    """Outcomes of the last `WINDOW` battles: 1 win, 0 draw, -1 loss."""


@dataclass
class OpponentsState:
    """Everything that draws, win rates and handicaps of `WeightedOpponents` depend on."""

    draws: int = 0
    results: dict[str, Results] = field(default_factory=dict)
    handicaps: dict[str, AutoHandicap] = field(default_factory=dict)


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
        self._schedules = {name: each.schedule for name, each in self._members.items() if each.schedule is not None}
        self._remaining = 1.0
        automatic = {name: AutoHandicap(win_rate) for name, each in self._members.items() if each.auto}
        self.state = OpponentsState(results={name: Results() for name in self._members}, handicaps=automatic)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it draws from."""
        return tuple(self._members)

    def draw(self, count: int) -> list[str]:
        """The names of the next `count` battles' opponents."""
        generator = np.random.default_rng([self._seed, self.state.draws])
        self.state.draws += count
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
        results, handicaps = self.state.results[name], self.state.handicaps
        results.battles += 1
        results.last = (*results.last, outcome)[-WINDOW:]
        return name in handicaps and handicaps[name].record(outcome > 0)

    def metrics(self) -> dict[str, float]:
        """Win rates over the last `WINDOW` battles, numbers of battles and handicaps that change, by name."""
        found: dict[str, float] = {}
        for name, results in self.state.results.items():
            found[f"{name}/battles"] = results.battles
            if results.last:
                found[f"{name}/win_rate"] = results.last.count(1) / len(results.last)
            handicap = self._handicap(name)
            for number in self._changing(name):
                found[f"{name}/handicap/{number}"] = getattr(handicap, number)
        return found

    def _handicap(self, name: str) -> HandicapConfig | None:
        if name in self._schedules:
            return self._schedules[name].at(self._remaining)
        automatic = self.state.handicaps.get(name)
        return self._fixed[name] if automatic is None else automatic.handicap

    def _changing(self, name: str) -> Sequence[str]:
        """The numbers of a name's handicap that may change during the run."""
        if name in self._schedules:
            return [*self._schedules[name].given]
        return ("fire_rate", "reaction_delay") if name in self.state.handicaps else ()

    def restore(self, state: OpponentsState) -> None:
        """Continue from another state. Raises `ConfigError` if it is of other opponents."""
        for part in ("results", "handicaps"):
            own, given = getattr(self.state, part), getattr(state, part)
            if own.keys() != given.keys():
                raise ConfigError(f"opponents: {part}: expected {list(own)}, got {list(given)}")
        self.state = state
