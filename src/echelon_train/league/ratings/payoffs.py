"""The mean score of every pair of a league, and the pairs whose games contradict the ratings.

A game is one map of a match, played from both sides. Its score is the mean of its two battles: 1 for a win, 0.5 for a
draw and 0 for a loss. `bradley_terry` and `cycles` take the `Payoffs` that are made here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc
from scipy.stats import false_discovery_control

from echelon_env.evaluate.estimates import CONFIDENCE, score_ends
from echelon_train.league.ratings.glicko2 import Rating, expected_scores

SIGNIFICANCE = 1 - CONFIDENCE
"""Largest share of false alarms among warnings."""

_PRIOR_FREEDOM = 2.0  # weight, in games, of the prior that a map's two battles always end alike
_PAIR_GAMES = 20  # weight, in games of a pair, of the league's dispersion
_EVEN_VARIANCE = 0.25  # variance of one battle between equals

PairScores = Mapping[tuple[str, str], Sequence[float]]
"""(first, second) -> scores (games,) of the first."""


@dataclass(frozen=True)
class Payoffs:
    """Results of every member (row) against every other (column): P members, arrays (P, P).

    For pairs that have not played, and on the diagonal, `games` and `squares` are 0 and the others NaN. The cell of b
    against a mirrors that of a against b.
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

        It is 1 where a map's two battles always end alike and 1/2 where they are independent. It is lower where many
        are drawn, or where the spawn place decides. The estimate combines the spread within the pair with that of the
        league, which counts more for pairs with few games. No pair contributes more than a few games to the league's
        dispersion, so a pair with many draws does not make the others look certain. A prior of 1 that weighs two games
        keeps it above 0.
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

    def among(self, members: Sequence[str]) -> Payoffs:
        """The games among some of the members, in their order."""
        places = {name: place for place, name in enumerate(self.members)}
        cells = np.ix_(*[[places[name] for name in members]] * 2)
        floats = (self.score, self.low, self.high, self.squares)
        return Payoffs(tuple(members), self.games[cells], *(each[cells] for each in floats))


@dataclass(frozen=True)
class Misprediction:
    """A pair whose games contradict the ratings."""

    first: str  # the member that scores more than predicted
    second: str
    games: int
    predicted: float  # the first's expected score by the ratings
    score: float  # the first's measured score, with its interval
    low: float
    high: float
    q_value: float  # smallest false discovery rate at which the pair is reported


def payoffs(members: Sequence[str], scores: PairScores) -> Payoffs:
    """Arrange the scores of all games in matrices.

    The rows are the members in their order. A pair may appear in either order, or in both; its games are combined.

    Raises ValueError if there are no members or a name is duplicate; if a pair has an unknown member or one member
    twice; if a score is not between 0 and 1.
    """
    members = tuple(members)
    if not members or len(set(members)) < len(members):
        raise ValueError(f"members: expected at least one and all different, got {members}")
    places = {name: place for place, name in enumerate(members)}
    for first, second in scores:
        if first not in places or second not in places or first == second:
            raise ValueError(f"pair {(first, second)}: expected two different ones of the members {members}")
    pairs = [(places[first], places[second]) for first, second in scores]
    owners = np.repeat(np.arange(len(pairs)), [*map(len, scores.values())])
    values = np.array([*itertools.chain.from_iterable(scores.values())], dtype=np.float64)
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if wrong.size:
        place = owners[wrong[0]]
        raise ValueError(
            f"pair {[*scores][place]}: expected scores (games,) between 0 and 1, got {[*scores.values()][place]}"
        )
    return _arranged(members, np.array(pairs, dtype=np.int64).reshape(-1, 2)[owners], values)


def _arranged(members: tuple[str, ...], pairs: NDArray[np.int64], values: NDArray[np.float64]) -> Payoffs:
    """The payoffs of games: the pair (games, 2) of each, and the first's score."""
    size = len(members)
    values = np.where(pairs[:, 0] < pairs[:, 1], values, 1 - values)
    cells, owners = np.unique(np.sort(pairs) @ [size, 1], return_inverse=True)
    upper, lower = cells // size, cells % size
    number = np.bincount(owners, minlength=len(cells))
    mean = np.bincount(owners, values, len(cells)) / number
    spread = np.bincount(owners, np.square(values - mean[owners]), len(cells))
    ends = score_ends(number, mean, spread)
    games = np.zeros((size, size), dtype=np.int64)
    squares = np.zeros((size, size))
    score, low, high = np.full((3, size, size), np.nan)
    games[upper, lower] = games[lower, upper] = number
    squares[upper, lower] = squares[lower, upper] = spread
    score[upper, lower], low[upper, lower], high[upper, lower] = mean, *ends
    score[lower, upper], low[lower, upper], high[lower, upper] = 1 - mean, 1 - ends[1], 1 - ends[0]
    return Payoffs(members, games, score, low, high, squares)


def predicted_scores(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> NDArray[np.float64]:
    """The scores (P, P) of row against column that the ratings predict, see `glicko2.expected_scores`.

    Raises ValueError if a member has no rating.
    """
    missing = [name for name in payoffs.members if name not in ratings]
    if missing:
        raise ValueError(f"ratings: expected one of every member, got none of {missing}")
    points, deviations = np.array([(ratings[name].rating, ratings[name].deviation) for name in payoffs.members]).T
    return np.asarray(expected_scores(np.subtract.outer(points, points), np.hypot.outer(deviations, deviations)))


def mispredictions(payoffs: Payoffs, ratings: Mapping[str, Rating]) -> list[Misprediction]:
    """The pairs whose games contradict the ratings.

    Every pair that has played is tested with the tails of a binomial distribution. The number of trials is that of
    independent battles with the variance of the pair's games, and the measured score itself counts half. The dispersion
    of a pair is `Payoffs.dispersion` or that of its games alone, whichever is larger. A pair is reported if the
    prediction is outside its interval and the false discovery rate is at most `SIGNIFICANCE`, so that many pairs do not
    cause many false alarms.

    Measured: with correct ratings, 0 to 3 % of leagues have a false alarm. A cycle of three members that beat each
    other at 92 % is reported in 84 % of leagues with five games per pair; one at 65 %, in 50 % with 20 games.

    The pairs furthest from the prediction come first. Raises ValueError if a member has no rating.

    References
    ----------
    E. L. Korn, B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201: the exact tails with effective trials.
    H. O. Lancaster (1961), Significance tests in discrete distributions. JASA 56, 223-234: the mid-p value.
    Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate. JRSS B 57, 289-300.
    """
    predicted = predicted_scores(payoffs, ratings)
    rows, columns = np.nonzero(np.triu(payoffs.played))
    if not rows.size:
        return []
    q_values = false_discovery_control(_tails(payoffs, predicted, rows, columns))
    inside = (payoffs.low <= predicted) & (predicted <= payoffs.high)
    chosen = (q_values <= SIGNIFICANCE) & ~inside[rows, columns]
    found = []
    for i, j, q_value in zip(*(each[chosen].tolist() for each in (rows, columns, q_values)), strict=True):
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
    """Two-sided p-values (pairs,) of the measured scores under the predictions."""
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
    """Expected value of `squares` if a map's two battles always ended alike and never in a draw."""
    # score (1 - score) is p (1 - p) without the variance of the score
    return np.asarray((games - 1) * score * (1 - score) + squares / games)
