"""Retirement: which members a league no longer needs.

A member is weak if its rating, even one deviation better, has been far below the champion's in each of the last rating
periods. It is no reason to lose it if it beats somebody whom hardly anybody beats: a learner that never meets such a
counter has no reason to mend what the counter exploits, and ratings, which only know who wins how much on the whole, do
not show it.

An *answer* to a member scores at least so much against it, over all their games, with an interval that is above one
half. A weak member is a rare counter while it is an answer to a member that is not weak, and fewer than `ANSWERS`
others that stay are. It is asked of one weak member after the other, the weakest first, so that of several that are the
last ones together, the strongest stay; nobody loses its last answers because each of them pointed at the others. What
weak members do to each other does not count: among those who meet only their neighbours, everybody would be a counter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from echelon_train.league.matchmaking.opponents import NEWCOMER_GAMES
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.payoffs import Payoffs, payoffs
from echelon_train.league.store.champions import Promotion
from echelon_train.league.store.database import reading
from echelon_train.league.store.periods import next_period
from echelon_train.league.store.promotion import EVEN_SCORE, conservative_score
from echelon_train.league.store.registry import League, Standing

MARGIN: Final = 400.0
"""Points behind the champion from which on a member is weak: whom it is expected to beat in 91 of 100 games."""

PERIODS: Final = 5
"""Closed periods in a row for which a weak member has been behind."""

RARE_COUNTER: Final = 0.55
"""Least score of an answer."""

ANSWERS: Final = 2
"""Answers that a member keeps if it has them; of what looks like one at 95 %, one in forty even pairs is none."""


@dataclass(frozen=True)
class Verdict:
    """A weak member, and whether the league can do without it."""

    member: str
    behind: float  # points that its rating + deviation was behind, in the best of the periods
    counters: tuple[str, ...]  # members that would have too few answers without it; none: it may retire

    @property
    def retires(self) -> bool:
        """Whether it may retire."""
        return not self.counters


def retirements(
    league: League, *, margin: float = MARGIN, periods: int = PERIODS, rare_counter: float = RARE_COUNTER
) -> list[Verdict]:
    """The active members that are weak, the weakest first, and which of them may retire.

    Scripted members, the champion and members that still learn are never weak; neither are newcomers, and who was not
    rated in each of the periods. What a member is compared with in a period is the rating of whoever was champion then;
    before the first promotion, of the active member that had the best conservative score.

    Parameters
    ----------
    margin
        Points, at least 0.
    periods
        How many of the last closed periods, at least 1.
    rare_counter
        The least score of an answer, from 0.5 to 1.

    Raises
    ------
    ValueError
        For a number out of range.
    LeagueError, OSError
        As the methods of `League`.
    """
    _check(margin, periods, rare_counter)
    standings = [each for each in league.standings() if each.member.state == "active"]
    names = [each.member.name for each in standings]
    behind = _behind(league, standings, periods)
    weak = [name for name, points in behind.items() if points > margin]
    scores = {pair: games for pair, games in league.pair_scores().items() if set(pair) <= set(names)}
    counters = rare_counters(payoffs(names, scores), weak, rare_counter)
    return [Verdict(name, behind[name], counters[name]) for name in weak]


def retire_weak(
    league: League, *, margin: float = MARGIN, periods: int = PERIODS, rare_counter: float = RARE_COUNTER
) -> list[Verdict]:
    """Retire the members that `retirements`, which see, finds; their matches stay. Returns all verdicts.

    If it ends before its end, calling it again goes on.
    """
    verdicts = retirements(league, margin=margin, periods=periods, rare_counter=rare_counter)
    for verdict in verdicts:
        if verdict.retires:
            league.retire(verdict.member)
    return verdicts


def rare_counters(
    matrix: Payoffs, weak: Sequence[str], rare_counter: float = RARE_COUNTER
) -> dict[str, tuple[str, ...]]:
    """Weak member -> the members that would have fewer than `ANSWERS` answers without it, which it is one of.

    Parameters
    ----------
    matrix
        Of the active members.
    weak
        Some of them, the weakest first; whoever is rare for nobody is taken as retired when the next one is looked at.
    rare_counter
        The least score of an answer.
    """
    places = {name: place for place, name in enumerate(matrix.members)}
    answers = (matrix.score >= rare_counter) & (matrix.low > EVEN_SCORE)  # not of two that have not met: NaN
    answers[:, [places[name] for name in weak]] = False
    staying = np.ones(len(places), dtype=np.bool_)
    counters = {}
    for name in weak:
        own = answers[places[name]]
        needed = own & (answers[staying].sum(axis=0) - own < ANSWERS)
        staying[places[name]] = needed.any()
        counters[name] = tuple(matrix.members[place] for place in np.flatnonzero(needed))
    return counters


def _check(margin: float, periods: int, rare_counter: float) -> None:
    if not (math.isfinite(margin) and margin >= 0):
        raise ValueError(f"margin: expected points, at least 0, got {margin!r}")
    if isinstance(periods, bool) or not isinstance(periods, int) or periods < 1:
        raise ValueError(f"periods: expected an integer of at least 1, got {periods!r}")
    if not EVEN_SCORE <= rare_counter <= 1:
        raise ValueError(f"rare counter: expected a score from {EVEN_SCORE} to 1, got {rare_counter!r}")


def _behind(league: League, standings: Sequence[Standing], periods: int) -> dict[str, float]:
    """How far, in the best of the last periods, the members that could be weak were behind, the weakest first."""
    with reading(league.path) as connection:
        learning = next_period(connection, league.settings).drifting
    history, reigns = league.history(), league.promotions()
    last = sorted(history)[-periods:]
    if len(last) < periods:
        return {}
    active = [each.member.name for each in standings]
    bars = {number: _bar(history[number], number, reigns, active) for number in last}
    behind = {}
    for each in reversed(standings):
        name = each.member.name
        safe = each.member.kind == "scripted" or each.member.id in learning
        if safe or each.games < NEWCOMER_GAMES or any(name not in history[number] for number in last):
            continue
        ratings = {number: history[number][name] for number in last}
        behind[name] = min(bars[number] - ratings[number].rating - ratings[number].deviation for number in last)
    return behind


def _bar(ratings: Mapping[str, Rating], period: int, reigns: Sequence[Promotion], active: Sequence[str]) -> float:
    """The rating of whoever was champion after a period, or of the best of the active members if nobody was."""
    champions = [reign.member for reign in reigns if reign.period <= period]
    if champions:
        return ratings[champions[-1]].rating
    return max((ratings[name] for name in active if name in ratings), key=conservative_score).rating
