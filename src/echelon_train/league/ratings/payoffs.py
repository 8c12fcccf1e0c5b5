"""The mean score of every pair of a league, and where the ratings predict something else.

A game is one map of a match, played from both sides; its score is the mean of its two battles, 1 for a win, 0.5 for a
draw and 0 for a loss. `bradley_terry`, `nash_averaging` and `cycles` start from the `Payoffs` that are made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from scipy.stats import false_discovery_control

from echelon_env.evaluate.statistics import CONFIDENCE, score_interval
from echelon_train.league.ratings.glicko2 import Rating, expected_score

SIGNIFICANCE = 1 - CONFIDENCE
"""Share of false alarms that a warning may have."""

_PRIOR_FREEDOM = 2.0  # games' worth of belief that a map's two battles always end alike
_PAIR_GAMES = 20  # of a pair, that say as much about its dispersion as the league does
_EVEN_VARIANCE = 0.25  # of one battle between equals

PairScores = Mapping[tuple[str, str], ArrayLike]
"""(first, second) -> scores (games,) of the first."""


@dataclass(frozen=True)
class Payoffs:
    """Every member (row) against every other (column), P members, arrays (P, P).

    For pairs that have not played, and on the diagonal, `games` and `squares` are 0 and the others NaN. The cell
    of b against a is the mirror image of a against b.
    """

    members: tuple[str, ...]  # rows and columns
    games: NDArray[np.int64]
    score: NDArray[np.float64]  # mean of the row's game scores, 0 to 1
    low: NDArray[np.float64]  # `score_interval` of the score
    high: NDArray[np.float64]
    squares: NDArray[np.float64]  # sum of the squared deviations of a pair's game scores from their mean

    @property
    def played(self) -> NDArray[np.bool_]:
        """(P, P) whether the two have played."""
        return self.games > 0

    @property
    def dispersion(self) -> NDArray[np.float64]:
        """(P, P) variance of a pair's game scores in units of p (1 - p), 0 to 1; NaN where they have not played.

        It is 1 where a map's two battles always end alike, 1/2 where they are independent, and lower where many are
        drawn or the place decides. It is estimated from the spread within the pair, and from the league's as far as the
        pair has few games. No pair contributes more than a few games to the league's, so that one with many games,
        all of them drawn, does not make the others look certain; a belief in 1 that is worth two games keeps it from 0.
        """
        pairs = np.nonzero(np.triu(self.played))
        n, squares = self.games[pairs], self.squares[pairs]
        alike = _alike(n, self.score[pairs], squares)
        share = np.minimum(1.0, _PAIR_GAMES / n)
        prior = _PRIOR_FREEDOM * _EVEN_VARIANCE
        common = (share @ squares + prior) / (share @ alike + prior)
        belief = _PAIR_GAMES * _EVEN_VARIANCE
        own = np.minimum(1.0, (squares + belief * common) / (alike + belief))  # above 1 by rounding only
        dispersion = np.full(self.games.shape, np.nan)
        dispersion[pairs] = dispersion.T[pairs] = own
        return dispersion


@dataclass(frozen=True)
class Misprediction:
    """A pair whose games contradict the ratings."""

    first: str  # the one that scores more than predicted
    second: str
    games: int
    predicted: float  # the first's expected score by the ratings
    score: float  # the first's measured score, with its interval
    low: float
    high: float
    q_value: float  # false discovery rate at which the pair is just reported


def payoffs(members: Sequence[str], scores: PairScores) -> Payoffs:
    """Put the scores of all games into matrices.

    Parameters
    ----------
    members
        Names, in the order of the rows, all different, at least one.
    scores
        Of the games of each pair. A pair may be there in either order or in both, which are then taken together.

    Raises
    ------
    ValueError
        If there are no members, a name comes twice, a pair's member is unknown or its own opponent, or a score is not
        between 0 and 1.
    """
    members = tuple(members)
    if not members or len(set(members)) < len(members):
        raise ValueError(f"members: expected at least one and all different, got {members}")
    places = {name: place for place, name in enumerate(members)}
    together: dict[tuple[int, int], list[NDArray[np.float64]]] = {}
    for (first, second), given in scores.items():
        if first not in places or second not in places or first == second:
            raise ValueError(f"pair {(first, second)}: expected two different ones of the members {members}")
        values = np.asarray(given, dtype=np.float64)
        if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
            raise ValueError(f"pair {(first, second)}: expected scores (games,) between 0 and 1, got {values}")
        i, j = places[first], places[second]
        together.setdefault((min(i, j), max(i, j)), []).append(values if i < j else 1 - values)
    size = len(members)
    games = np.zeros((size, size), dtype=np.int64)
    squares = np.zeros((size, size))
    score, low, high = np.full((3, size, size), np.nan)
    for (i, j), parts in together.items():
        values = np.concatenate(parts)
        if not values.size:
            continue
        interval = score_interval({None: values})
        games[i, j] = games[j, i] = values.size
        squares[i, j] = squares[j, i] = np.square(values - values.mean()).sum()
        score[i, j], low[i, j], high[i, j] = interval.estimate, interval.low, interval.high
        score[j, i], low[j, i], high[j, i] = 1 - interval.estimate, 1 - interval.high, 1 - interval.low
    return Payoffs(members, games, score, low, high, squares)


def member_ratings(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> list[Rating]:
    """The members' ratings in their order. Raises ValueError if a member has none."""
    missing = [name for name in payoffs.members if name not in ratings]
    if missing:
        raise ValueError(f"ratings: expected one of every member, got none of {missing}")
    return [ratings[name] for name in payoffs.members]


def predicted_scores(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> NDArray[np.float64]:
    """The scores (P, P) of row against column that the ratings predict, see `glicko2.expected_score`.

    Raises
    ------
    ValueError
        If a member has no rating.
    """
    of_members = member_ratings(payoffs, ratings)
    return np.array([[expected_score(row, column) for column in of_members] for row in of_members])


def mispredictions(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> list[Misprediction]:
    """The pairs whose games contradict what the ratings predict.

    Every pair that has played is tested with the tails of a binomial distribution, of as many trials as independent
    battles would have the variance of its games; what comes out exactly as measured counts half. A pair's dispersion is
    `Payoffs.dispersion` or that of its games alone, whichever is greater. A pair is reported if its interval does not
    have the prediction in it and, so that many pairs do not make many false alarms, the rate of false discoveries is at
    most `SIGNIFICANCE`.

    Measured: with ratings that are right, 0 to 3 % of leagues have a false alarm. With three members that beat each
    other in a cycle at 92 % each, five games of each pair show it in 84 % of leagues; at 65 %, 20 games do in 50 %.

    Parameters
    ----------
    ratings
        Of every member, by its name.

    Returns
    -------
    The pairs, those first that are furthest from what was predicted.

    Raises
    ------
    ValueError
        If a member has no rating.

    References
    ----------
    E. L. Korn, B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201: the exact tails with effective trials.
    H. O. Lancaster (1961), Significance tests in discrete distributions. JASA 56, 223-234: what counts half.
    Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate. JRSS B 57, 289-300.
    """
    predicted = predicted_scores(payoffs, ratings)
    rows, columns = np.nonzero(np.triu(payoffs.played))
    if not rows.size:
        return []
    q_values = false_discovery_control(_tails(payoffs, predicted, rows, columns))
    found = []
    for i, j, q_value in zip(rows.tolist(), columns.tolist(), q_values.tolist(), strict=True):
        inside = payoffs.low[i, j] <= predicted[i, j] <= payoffs.high[i, j]
        if q_value <= SIGNIFICANCE and not inside:
            a, b = (i, j) if payoffs.score[i, j] > predicted[i, j] else (j, i)
            found.append(
                Misprediction(
                    first=payoffs.members[a],
                    second=payoffs.members[b],
                    games=int(payoffs.games[a, b]),
                    predicted=float(predicted[a, b]),
                    score=float(payoffs.score[a, b]),
                    low=float(payoffs.low[a, b]),
                    high=float(payoffs.high[a, b]),
                    q_value=q_value,
                )
            )
    return sorted(found, key=lambda pair: pair.predicted - pair.score)


def _tails(
    payoffs: Payoffs, predicted: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Two-sided probabilities (pairs,) of scores as far off as the measured ones, if the predictions were true."""
    pairs = rows, columns
    n, score, squares = payoffs.games[pairs], payoffs.score[pairs], payoffs.squares[pairs]
    alike = _alike(n, score, squares)
    own = np.divide(squares, alike, out=np.zeros(len(n)), where=alike > 0)
    trials = n / np.maximum(own, payoffs.dispersion[pairs])
    wins, losses = trials * score, trials * (1 - score)
    above, below = np.ones((2, len(n)))  # all scores are at least 0 and at most 1
    some = wins > 0
    above[some] = betainc(wins[some], losses[some] + 1, predicted[pairs][some])
    some = losses > 0
    below[some] = betainc(losses[some], wins[some] + 1, 1 - predicted[pairs][some])
    same = np.maximum(0.0, above + below - 1)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(above, below) - same))


def _alike(games: NDArray[np.int64], score: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """What `squares` would be on the average, if maps' two battles always ended alike and never in a draw."""
    # score (1 - score) is p (1 - p) without the variance of the score
    return np.asarray((games - 1) * score * (1 - score) + squares / games)
