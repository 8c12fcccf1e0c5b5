"""Glicko-2 ratings, by rating periods.

Glickman, "Example of the Glicko-2 system", 2013, http://www.glicko.net/glicko/glicko2.pdf. Two things are added.
Results that the model considers almost impossible make the published step 5 diverge, so ratings, deviations,
volatilities and the change in one period are bounded. And a member's strength changes with time only while it is
training: the deviation of a frozen policy never grows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from echelon_env.config.schema import check_fields, quantity
from echelon_env.evaluate.statistics import CONFIDENCE
from echelon_train.league.ratings.results import Results

SCALE: Final = 173.7178
"""Points of a rating per unit of Glicko-2's own scale, 400 / ln 10."""

INITIAL_RATING: Final = 1500.0
RATINGS: Final = (400.0, 4000.0)
DEVIATIONS: Final = (45.0, 500.0)
"""Bounds of the deviations that `rate` returns, points. With a smaller one, a rating would ignore new results."""

VOLATILITIES: Final = (0.01, 0.1)
LARGEST_MOVE: Final = 700.0
"""Points by which a rating may change in one period."""

MOST_ITERATIONS: Final = 1000
"""Iterations of the search for a volatility, at most."""

TAU: Final = 0.5
"""How fast volatilities change; Glickman recommends 0.3 to 1.2."""


REACH: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Half of an interval, in deviations."""


@dataclass(frozen=True)
class Rating:
    """Estimated strength of a member, and its uncertainty. Raises `ConfigError` for values out of range."""

    rating: float = quantity(INITIAL_RATING, "points", *RATINGS)
    deviation: float = quantity(350.0, "points", 0.0, DEVIATIONS[1])  # standard deviation of the rating
    volatility: float = quantity(0.06, "per square root of a period", *VOLATILITIES)

    def __post_init__(self) -> None:
        check_fields(self, "")


def format_rating(rating: Rating) -> str:
    """A rating and half of its interval, such as ``"1523 ± 172"``."""
    return f"{rating.rating:.0f} ± {REACH * rating.deviation:.0f}"


def expected_score(first: Rating, second: Rating) -> float:
    """Expected score of the first against the second, 0 to 1.

    It is the probability of a win, with a draw counted as half a win. Both deviations are taken into account: Glickman,
    "The Glicko system", 1999, equation 16.
    """
    return float(expected_scores(first.rating - second.rating, math.hypot(first.deviation, second.deviation)))


def expected_scores(ahead: Any, deviation: Any) -> Any:
    """As `expected_score`, from the differences of ratings and their deviations, numbers or arrays of points."""
    return expit(ahead / SCALE / np.sqrt(1 + 3 * (deviation / SCALE / math.pi) ** 2))


def rate(
    rating: Rating, opponents: Sequence[Rating], scores: Sequence[float], tau: float = TAU, *, drifting: bool = True
) -> Rating:
    """A member's rating after a period with games. It does not depend on the order of the games, to the last bit.

    Parameters
    ----------
    rating
        Of the member before the period.
    opponents
        Ratings of the opponents before the period, one per game.
    scores
        Of the member in each game, 0 to 1.
    tau
        How fast the volatility changes, 0.1 to 2.
    drifting
        Whether the member's strength changes with time, as Glickman assumes. If not, the volatility is constant and
        does not add to the deviation.

    Raises
    ------
    ValueError
        Without games, for other than one score per game, and for a score or tau out of range.
    """
    _check_tau(tau)
    if not opponents or len(opponents) != len(scores):
        raise ValueError(
            f"expected at least one game and a score of each, got {len(opponents)} opponents, {len(scores)} scores"
        )
    for score in scores:
        _check_score(score)
    games = [(opponent, 1, score) for opponent, score in zip(opponents, scores, strict=True)]
    return _rate(rating, games, tau, drifting=drifting)


def _rate(rating: Rating, results: Sequence[tuple[Rating, int, float]], tau: float, *, drifting: bool) -> Rating:
    """As `rate`, from the opponents' ratings, the number of games against each and the sum of the scores in them."""
    own, deviation, volatility = _internal(rating.rating), rating.deviation / SCALE, rating.volatility
    gains, informations = [], []
    for opponent, games, points in results:
        damping = _damping(opponent.deviation / SCALE)
        ahead = damping * (own - _internal(opponent.rating))
        gains.append(damping * (points - games * _logistic(ahead)))
        informations.append(games * damping**2 * _logistic(ahead) * _logistic(-ahead))
    gain, information = math.fsum(gains), math.fsum(informations)  # exact sums do not depend on the order
    if drifting:
        volatility = _new_volatility(volatility, deviation, gain, information, tau)
        deviation = math.hypot(deviation, volatility)
    variance = deviation**2 / (1 + deviation**2 * information)
    move = _clamp(SCALE * variance * gain, (-LARGEST_MOVE, LARGEST_MOVE))
    return Rating(
        _clamp(rating.rating + move, RATINGS), _clamp(SCALE * math.sqrt(variance), DEVIATIONS), float(volatility)
    )


def without_games(rating: Rating) -> Rating:
    """The rating of a training member after a period without games: its deviation grows."""
    deviation = SCALE * math.hypot(rating.deviation / SCALE, rating.volatility)
    return Rating(rating.rating, _clamp(deviation, DEVIATIONS), rating.volatility)


def rate_period(
    ratings: Mapping[str, Rating],
    games: Iterable[tuple[str, str, float]] | Results,
    *,
    drifting: Collection[str] = (),
    pinned: Collection[str] = (),
    tau: float = TAU,
) -> dict[str, Rating]:
    """All ratings after a period, each computed from those before it.

    Parameters
    ----------
    ratings
        By member.
    games
        First member, second member, the first's score from 0 to 1, in any order; or the `Results`.
    drifting
        Members whose strength changes with time: those still training. The deviations of others never grow.
    pinned
        Members that keep their ratings exactly, which anchors the scale.
    tau
        See `rate`.

    Raises
    ------
    ValueError
        For members without a rating, games of a member against itself, and a score or tau out of range.
    """
    _check_tau(tau)
    for name in (*drifting, *pinned):
        _check_member(name, ratings)
    results = games if isinstance(games, Results) else Results(games)
    for name in results.members:
        _check_member(name, ratings)
    after = dict(ratings)
    for name in ratings.keys() - set(pinned):
        played = [(ratings[opponent], *sums) for opponent, sums in results.of(name).items()]
        if played:
            after[name] = _rate(ratings[name], played, tau, drifting=name in drifting)
        elif name in drifting:
            after[name] = without_games(ratings[name])
    return after


def _check_tau(tau: float) -> None:
    if not 0.1 <= tau <= 2:
        raise ValueError(f"tau: expected a number from 0.1 to 2, got {tau!r}")


def _check_score(score: float) -> None:
    if not 0 <= score <= 1:
        raise ValueError(f"score: expected a number from 0 to 1, got {score!r}")


def _check_member(name: str, ratings: Mapping[str, Rating]) -> None:
    if name not in ratings:
        raise ValueError(f"expected a member that has a rating, got {name!r}")


def _internal(rating: float) -> float:
    return (rating - INITIAL_RATING) / SCALE


def _damping(deviation: float) -> float:
    """Glickman's g: the weight of a result, which is smaller if the opponent's rating is uncertain."""
    return 1 / math.sqrt(1 + 3 * (deviation / math.pi) ** 2)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))  # within the bounds of the ratings there is no overflow


def _clamp(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


def _new_volatility(volatility: float, deviation: float, gain: float, information: float, tau: float) -> float:
    """Step 5: the volatility with the highest posterior density after the period's results, within bounds."""
    known = deviation**2 + 1 / information
    excess = (gain / information) ** 2 - known
    before = 2 * math.log(volatility)

    def slope(logarithm: float) -> float:
        """Derivative of the log posterior density by the logarithm of the squared volatility."""
        square = math.exp(logarithm)
        return square * (excess - square) / (2 * (known + square) ** 2) - (logarithm - before) / tau**2

    low, high = (2 * math.log(bound) for bound in VOLATILITIES)
    if slope(low) <= 0:
        return VOLATILITIES[0]
    if slope(high) >= 0:
        return VOLATILITIES[1]
    root = brentq(slope, low, high, xtol=1e-12, maxiter=MOST_ITERATIONS)
    return _clamp(math.exp(root / 2), VOLATILITIES)
