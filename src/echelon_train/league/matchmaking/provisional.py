"""Ratings of newcomers, computed from all of their games at once.

Glicko-2 rates games one period at a time. Its deviations shrink with a member's first games, however uncertain the
opponents' ratings were, and later games move its rating less and less. Where several members join at once, their
ratings stay too close to each other. So a newcomer's games are fitted jointly, by the model that Glicko-2 approximates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

from echelon_train.league.matchmaking.scheduling import joint_ratings
from echelon_train.league.ratings.glicko2 import DEVIATIONS, RATINGS, Rating
from echelon_train.league.ratings.results import Results

PROVISIONAL: Final = 120
"""A member with at most this many games is a newcomer: its rating is the one that explains all of them best."""


def rate_newcomers(ratings: Mapping[str, Rating], results: Results, pinned: Collection[str]) -> dict[str, Rating]:
    """The Glicko-2 ratings after a period, in which newcomers that have played get jointly fitted ratings instead.

    `results` has all games so far. The pinned members keep their ratings. Raises ConfigError as `joint_ratings` does.
    """
    newcomers = {name for name in ratings if name not in pinned and 0 < results.games(name) <= PROVISIONAL}
    if not newcomers:
        return dict(ratings)
    involved = newcomers.union(pinned, *(results.of(name) for name in newcomers))
    among = {name: rating for name, rating in ratings.items() if name in involved}
    joint = joint_ratings(among, results, among.keys() - newcomers)
    after = dict(ratings)
    for name, points, variance in zip(joint.members, joint.ratings, joint.covariance.diagonal(), strict=True):
        if name in newcomers:
            deviation = min(max(math.sqrt(variance), DEVIATIONS[0]), Rating().deviation)  # games never add uncertainty
            rating = min(max(float(points), RATINGS[0]), RATINGS[1])
            after[name] = Rating(rating, deviation, ratings[name].volatility)
    return after
