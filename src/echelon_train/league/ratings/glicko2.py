"""Glicko-2 ratings, by rating periods.

Glickman, "Example of the Glicko-2 system", 2013, http://www.glicko.net/glicko/glicko2.pdf. Two things are added.
Results that the model considers almost impossible make the published step 5 diverge, so ratings, deviations,
volatilities and the change in one period are bounded. And a member's strength changes with time only while it is
training: the deviation of a frozen policy never grows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from echelon_env.config.schema import check_fields, quantity
from echelon_env.evaluate.estimates import CONFIDENCE
from echelon_train.league.ratings.results import Results

SCALE: Final = 173.7178
"""Points of a rating per unit of Glicko-2's own scale, 400 / ln 10."""

INITIAL_RATING: Final = 1500.0
RATINGS: Final = (400.0, 4000.0)
DEVIATIONS: Final = (45.0, 500.0)
"""Bounds of the deviations after a period, points. With a smaller one, a rating would ignore new results."""

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


def expected_scores(ahead: Any, deviation: Any) -> Any:
    """Expected scores, 0 to 1, from differences of ratings and the deviations of these, numbers or arrays of points.

    They are probabilities of a win, with a draw counted as half a win: Glickman, "The Glicko system", 1999, equation
    16. The deviation of a difference is the root of the sum of the squares of both deviations.
    """
    return expit(ahead / SCALE / np.sqrt(1 + 3 * (deviation / SCALE / math.pi) ** 2))


def _rate(rating: Rating, results: Sequence[tuple[Rating, int, float]], tau: float, *, drifting: bool) -> Rating:
    """A member's rating after a period with games, from the opponents' ratings, numbers of games and sums of scores.

    It does not depend on the order of the games, to the last bit. Without `drifting` the volatility is constant and
    does not add to the deviation.
    """
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


def _without_games(rating: Rating) -> Rating:
    deviation = SCALE * math.hypot(rating.deviation / SCALE, rating.volatility)
    return Rating(rating.rating, _clamp(deviation, DEVIATIONS), rating.volatility)


def rate_period(
    ratings: Mapping[str, Rating],
    results: Results,
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
    results
        The games of the period.
    drifting
        Members whose strength changes with time: those still training. The deviations of others never grow.
    pinned
        Members that keep their ratings exactly, which anchors the scale.
    tau
        How fast volatilities change, 0.1 to 2.

    Raises
    ------
    ValueError
        For members without a rating, and a tau out of range.
    """
    if not 0.1 <= tau <= 2:
        raise ValueError(f"tau: expected a number from 0.1 to 2, got {tau!r}")
    for name in (*drifting, *pinned, *results.members):
        if name not in ratings:
            raise ValueError(f"expected a member that has a rating, got {name!r}")
    after = dict(ratings)
    for name in ratings.keys() - set(pinned):
        played = [(ratings[opponent], *sums) for opponent, sums in results.of(name).items()]
        if played:
            after[name] = _rate(ratings[name], played, tau, drifting=name in drifting)
        elif name in drifting:
            after[name] = _without_games(ratings[name])
    return after


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
