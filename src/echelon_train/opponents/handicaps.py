"""Handicaps of opponents by name; `auto` holds an opponent where the learner wins a chosen share of its battles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from echelon_env.config.opponent import HandicapConfig, Opponent
from echelon_env.config.schema import measure, quantity
from echelon_train.opponents.results import Results

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


@dataclass
class AutoHandicap:
    """One opponent's handicap, which follows the learner's win rate against it.

    After `BATTLES` battles on a rung a win rate of `BAND` above the target leads to the next stronger rung, one of
    `BAND` below it to the next weaker one. Each rung begins with no battles.

    The fields are its complete state.
    """

    target: float = measure("", 0, 1)
    """The win rate to stay near."""
    rung: int = quantity(START, "", 0, len(RUNGS) - 1)
    since: int = 0
    """Battles against the opponent when the rung began."""

    @property
    def handicap(self) -> HandicapConfig:
        """The present handicap."""
        return RUNGS[self.rung]

    def follow(self, results: Results) -> bool:
        """Move to another rung if the results against the opponent, a draw as no win, ask for it; returns whether."""
        if results.battles - self.since < BATTLES:
            return False
        rate = results.last[-BATTLES:].count(1) / BATTLES
        stronger, weaker = rate >= min(1.0, self.target + BAND), rate <= max(0.0, self.target - BAND)
        rung = min(max(self.rung - stronger + weaker, 0), len(RUNGS) - 1)
        if rung == self.rung:
            return False
        self.rung, self.since = rung, results.battles
        return True


@cache
def handicapped(name: str) -> Opponent | None:
    """The opponent of a name with a handicap; None for another name, such as a member's."""
    return Opponent.parse(name) if "@" in name else None


def player_of(name: str) -> str:
    """The player of a name, without the handicap."""
    opponent = handicapped(name)
    return name if opponent is None else opponent.name


def present_handicap(name: str, automatic: Mapping[str, AutoHandicap], remaining: float) -> HandicapConfig | None:
    """The handicap of an opponent with a share of the run left; None if it has none."""
    opponent = handicapped(name)
    if opponent is None:
        return None
    if opponent.schedule is not None:
        return opponent.schedule.at(remaining)
    if opponent.auto:
        return automatic[name].handicap
    return None if opponent.handicap == HandicapConfig() else opponent.handicap
