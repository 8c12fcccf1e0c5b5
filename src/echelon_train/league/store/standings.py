"""The places of a league's members."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.payoffs import PairScores
from echelon_train.league.store.members import Member


@dataclass(frozen=True)
class Standing:
    """A member's place in a league."""

    member: Member
    rating: Rating  # after the last period
    games: int  # maps played, also those of unrated matches
    score: float  # mean over these games, 0 to 1; NaN without games


def ranked(members: Iterable[Member], ratings: Mapping[str, Rating], scores: PairScores) -> list[Standing]:
    """The members, the highest rating first. `scores` are the first's scores in all games of the pairs."""
    games = dict.fromkeys(ratings, 0)
    points = dict.fromkeys(ratings, 0.0)
    for (first, second), scored in scores.items():
        won, number = sum(scored), len(scored)
        for name, own in ((first, won), (second, number - won)):
            games[name] += number
            points[name] += own
    standings = []
    for each in members:
        played = games[each.name]
        standings.append(Standing(each, ratings[each.name], played, points[each.name] / played if played else math.nan))
    return sorted(standings, key=lambda each: -each.rating.rating)
