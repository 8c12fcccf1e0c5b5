"""Ratings of newcomers, computed from all of their games at once.

Glicko-2 rates games one period at a time. Its deviations shrink with a member's first games, however uncertain the
opponents' ratings were, and later games move its rating less and less. Where several members join at once, their
ratings stay too close to each other. So a newcomer's games are fitted jointly, by the model that Glicko-2 approximates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Final

from echelon_train.league.matchmaking.scheduling import joint_ratings
from echelon_train.league.ratings.glicko2 import DEVIATIONS, RATINGS, TAU, Rating, rate_period
from echelon_train.league.ratings.results import Results

PROVISIONAL: Final = 120
"""A member with at most this many games is a newcomer: its rating is the one that explains all of them best."""


def rate_members(
    ratings: Mapping[str, Rating],
    results: Results,
    all_results: Results,
    *,
    drifting: Collection[str] = (),
    pinned: Collection[str] = (),
    tau: float = TAU,
) -> dict[str, Rating]:
    """All ratings after a period: Glicko-2's, and those of newcomers by all of their games.

    Others meet a newcomer at the rating that its games show. At the initial rating, a strong newcomer would take points
    from its opponents. A newcomer that is still training and did not play in the period does not become more
    certain.

    Parameters
    ----------
    ratings, results, drifting, pinned, tau
        As for `rate_period`.
    all_results
        The games of the period and of all before it.
    """
    fitted = rate_newcomers(ratings, all_results, pinned)
    met = {name: fitted[name] if results.of(name) else rating for name, rating in ratings.items()}
    rated = rate_period(met, results, drifting=drifting, pinned=pinned, tau=tau)
    after = rate_newcomers(rated, all_results, pinned)
    for name in drifting:
        if not results.of(name) and after[name].deviation < rated[name].deviation:
            after[name] = dataclasses.replace(after[name], deviation=rated[name].deviation)
    return after


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
