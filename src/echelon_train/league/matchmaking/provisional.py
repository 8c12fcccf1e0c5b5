"""Newcomers' ratings: from all of their games at once.

Glicko-2 takes games period by period. Its deviations shrink with the first few, whatever the opponents' ratings were
worth by then, and after that its ratings move ever less: where several members join at once, they stay too close to one
another. So a member's first games are explained together, by the model that Glicko-2 approximates.
`python -m benchmarks.league_placement` measures what that is worth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from echelon_train.league.matchmaking.scheduling import Game, joint_ratings
from echelon_train.league.ratings.glicko2 import DEVIATIONS, RATINGS, Rating

PROVISIONAL: Final = 120
"""Games up to which a member's rating is that by which all of them are explained best."""


def rate_newcomers(
    ratings: Mapping[str, Rating], games: Sequence[tuple[str, str, float]], pinned: Collection[str]
) -> dict[str, Rating]:
    """The ratings after a period, with those of newcomers that have played in place of what Glicko-2 makes of them.

    Parameters
    ----------
    ratings
        By member, by Glicko-2.
    games
        First member, second member, the first's score from 0 to 1: all games of the members so far.
    pinned
        Members that keep their ratings, at least one.

    Raises
    ------
    ConfigError
        As `joint_ratings` does.
    """
    played = Counter(name for game in games for name in game[:2])
    newcomers = {name for name in ratings if name not in pinned and 0 < played[name] <= PROVISIONAL}
    if not newcomers:
        return dict(ratings)
    relevant = [Game(*game, 0) for game in games if newcomers.intersection(game[:2])]
    joint = joint_ratings(ratings, relevant, ratings.keys() - newcomers)
    after = dict(ratings)
    for name, points, variance in zip(joint.members, joint.ratings, joint.covariance.diagonal(), strict=True):
        if name in newcomers:
            deviation = min(max(math.sqrt(variance), DEVIATIONS[0]), Rating().deviation)  # no game takes certainty away
            rating = min(max(float(points), RATINGS[0]), RATINGS[1])
            after[name] = Rating(rating, deviation, ratings[name].volatility)
    return after
