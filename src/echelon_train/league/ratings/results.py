"""The results of a league's pairs. Ratings depend on the sums of a pair's scores, and not on every game."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from echelon_env.config.schema import ConfigError


class Results:
    """How many games the members of every pair have played, and how they scored.

    Parameters
    ----------
    games
        First member, second member, the first's score from 0 to 1, in any order.
    """

    def __init__(self, games: Iterable[tuple[str, str, float]] = ()) -> None:
        self._of: dict[str, dict[str, tuple[int, float]]] = {}
        self._games: Counter[str] = Counter()
        for first, second, score in games:
            self.add(first, second, 1, score)

    def add(self, first: str, second: str, games: int, points: float) -> None:
        """Add games of two members. `points` is the sum of the first's scores.

        Raises ConfigError for a member against itself and for scores that are not between 0 and 1.
        """
        if first == second:
            raise ConfigError(f"expected a game of two members, got {first!r} against itself")
        if not 0 <= points <= games:
            raise ConfigError(f"score: expected a number from 0 to 1, got {points / games!r}")
        self._add(first, second, games, points)
        self._add(second, first, games, games - points)

    def update(self, other: Results) -> None:
        """Add all games of other results."""
        for name, opponents in other._of.items():
            for opponent, (games, points) in opponents.items():
                self._add(name, opponent, games, points)

    def _add(self, name: str, opponent: str, games: int, points: float) -> None:
        of = self._of.setdefault(name, {})
        number, before = of.get(opponent, (0, 0.0))
        of[opponent] = number + games, before + points
        self._games[name] += games

    @property
    def members(self) -> Iterable[str]:
        """All members that have played."""
        return self._of.keys()

    def of(self, name: str) -> Mapping[str, tuple[int, float]]:
        """Opponent -> number of games, and the sum of the member's scores in them."""
        return self._of.get(name, {})

    def games(self, name: str) -> int:
        """Number of a member's games."""
        return self._games[name]

    def score(self, name: str) -> float:
        """Mean of a member's scores; NaN without games."""
        points = sum(points for _, points in self.of(name).values())
        return points / self._games[name] if self._games[name] else math.nan
