"""The learner's results against an opponent."""

from __future__ import annotations

from dataclasses import dataclass

from echelon_env.config.schema import quantity

WINDOW = 100
"""Battles that count, the last ones: the standard error of a win rate is at most 0.05."""


@dataclass
class Results:
    """The battles against an opponent."""

    battles: int = 0
    """All of them."""
    last: tuple[int, ...] = quantity((), "", -1, 1)
    """Outcomes of the last `WINDOW` battles: 1 win, 0 draw, -1 loss."""

    def add(self, outcome: int) -> None:
        """Count a battle."""
        self.battles += 1
        self.last = (*self.last, outcome)[-WINDOW:]

    @property
    def points(self) -> float:
        """Of the last battles, a draw as half a win."""
        return sum(0.5 * (outcome + 1) for outcome in self.last)

    @property
    def score(self) -> float:
        """Points a battle, of the last battles; there must be one."""
        return self.points / len(self.last)

    @property
    def win_rate(self) -> float:
        """Share of wins among the last battles; there must be one."""
        return self.last.count(1) / len(self.last)

    @property
    def win_probability(self) -> float:
        """Of the learner against it, a draw as half a win, by the rule of succession: 1/2 without battles."""
        return (self.points + 1) / (len(self.last) + 2)
