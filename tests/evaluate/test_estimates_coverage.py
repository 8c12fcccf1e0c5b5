"""Coverage of the intervals, for map scores with a known distribution.

With one stratum of a few dozen maps and no draws the coverage is computed exactly by enumeration. Otherwise it is
simulated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from echelon_env.evaluate.estimates import (
    Interval,
    interquartile_mean,
    probability_of_improvement,
    score_interval,
    stratified_bootstrap,
    wilson,
)

Array = NDArray[np.float64]

SCORES = np.array([0, 0.25, 0.5, 0.75, 1])
ROUNDING = 1e-9

COUPLINGS = (-0.9, -0.4, 0.0, 0.4, 0.7, 1.0)
MIDDLE = (0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97)
EDGES = (0.001, 0.005, 0.01, 0.02, 0.98, 0.99, 0.995, 0.999)


def chances(win: float, coupling: float, draw: float = 0.0) -> Array:
    """The probability (5,) of every score of a map.

    In a share `coupling` of the maps both battles have the same outcome (opposite outcomes for negative values). In the
    other maps they are independent. Draws have the share `draw`, half of it taken from wins and half from losses.
    """
    ends = np.cumsum([1 - win - draw / 2, draw, win - draw / 2])
    each = np.diff(ends, prepend=0)
    starts = ends - each
    if coupling >= 0:
        coupled = np.diag(each)
    else:
        overlap = np.minimum(ends[:, None], 1 - starts) - np.maximum(starts[:, None], 1 - ends)
        coupled = np.clip(overlap, 0, None)
    both = abs(coupling) * coupled + (1 - abs(coupling)) * np.outer(each, each)
    scores = [np.trace(both[::-1], offset=k) for k in range(-2, 3)]
    return np.clip(scores, 0, None) / np.sum(scores)


def true_iqm(probabilities: Sequence[Array]) -> float:
    """The interquartile mean of the distribution of strata of equal size."""
    ends = np.clip(np.cumsum(np.mean(probabilities, axis=0)), 0.25, 0.75)
    return float(np.diff(ends, prepend=0.25) @ SCORES / 0.5)


def holds(interval: Interval, truth: float) -> bool:
    return interval.low - ROUNDING <= truth <= interval.high + ROUNDING


class Exact:
    """The intervals of all possible results of so many maps without draws, and their exact coverage."""

    def __init__(self, maps: int, interval: Callable[[Array], Interval]) -> None:
        self.maps = maps
        self.results = np.array([(a, b, maps - a - b) for a in range(maps + 1) for b in range(maps + 1 - a)])
        self.intervals = [interval(np.repeat(SCORES[::2], result)) for result in self.results]

    def coverage(self, probabilities: Array, truth: float) -> float:
        held = np.array([holds(interval, truth) for interval in self.intervals])
        return float(stats.multinomial.pmf(self.results, self.maps, probabilities[::2])[held].sum())


def coverage(
    strata: Sequence[Array], maps: int, truth: float, interval: Callable[[dict[int, Array]], Interval], trials: int
) -> float:
    """Simulated coverage, for strata with these score probabilities."""
    rng = np.random.default_rng(0)
    counts = np.stack([rng.multinomial(maps, each, trials) for each in strata], axis=1)
    return float(np.mean([holds(interval(drawn(each)), truth) for each in counts]))


def drawn(counts: NDArray[np.int64]) -> dict[int, Array]:
    return {stratum: np.repeat(SCORES, each) for stratum, each in enumerate(counts)}


wilson_of_battles = functools.cache(wilson)


@pytest.mark.parametrize(
    ("coupling", "least", "most"), [(0, 0.93, 0.97), (0.4, 0.88, 0.93), (1, 0.80, 0.88), (-0.4, 0.975, 0.99)]
)
def test_wilson_has_the_documented_coverage(coupling: float, least: float, most: float) -> None:
    exact = Exact(100, lambda scores: wilson_of_battles(round(2 * scores.sum()), 2 * len(scores)))
    found = [exact.coverage(chances(win, coupling), win) for win in (0.4, 0.45, 0.5, 0.55, 0.6)]
    assert least < min(found) and max(found) < most


@pytest.mark.parametrize("maps", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_score_interval_covers_at_any_correlation(maps: int) -> None:
    exact = Exact(maps, lambda scores: score_interval({"": scores}))
    for coupling in COUPLINGS:
        found = [exact.coverage(chances(win, coupling), win) for win in MIDDLE]
        assert min(found) > 0.93 and max(found) < 0.985 + 0.015 * (coupling < 0), (coupling, found)
        found = [exact.coverage(chances(win, coupling), win) for win in EDGES]
        assert min(found) > 0.90, (coupling, found)
    between = [exact.coverage(chances(win, 0.4), win) for win in np.linspace(0.2, 0.8, 61)]
    assert np.mean(between) == pytest.approx(0.955, abs=0.01)


def test_bootstrap_covers_the_interquartile_mean() -> None:
    exact = Exact(20, lambda scores: stratified_bootstrap({"": scores}, interquartile_mean, samples=1000))
    for coupling in COUPLINGS:
        found = [exact.coverage(each, true_iqm([each])) for each in (chances(win, coupling) for win in MIDDLE)]
        assert min(found) > 0.91, (coupling, found)


@pytest.mark.parametrize(
    ("wins", "least"),
    [
        ((0.97, 0.9, 0.95), 0.925),
        ((0.99, 0.75, 0.3), 0.925),
        ((0.999, 0.99, 0.98), 0.885),
    ],
)
@pytest.mark.parametrize("maps", [20, 100])
@pytest.mark.parametrize("coupling", [-0.4, 0.4])
def test_score_interval_covers_the_mean_of_strata(
    wins: tuple[float, ...], least: float, maps: int, coupling: float
) -> None:
    strata = [chances(win, coupling, draw=min(0.1, 1 - win)) for win in wins]
    assert least < coverage(strata, maps, float(np.mean(wins)), score_interval, trials=800) < 0.985


def on_the_same_maps(correlation: float) -> Array:
    """Scores (opponents, maps): equal for all opponents in a share of the maps, which is their pairwise correlation."""
    rng = np.random.default_rng(0)
    scores = chances(0.6, 0.4)
    trials, opponents, maps = 400, 5, 100
    each, common = (rng.choice(SCORES, (trials, *shape, maps), p=scores) for shape in ((opponents,), (1,)))
    return np.where(rng.random((trials, 1, maps)) < correlation, common, each)


@pytest.mark.parametrize("correlation", [0, 0.32])
def test_score_interval_covers_the_mean_over_opponents_on_the_same_maps(correlation: float) -> None:
    trials = [dict(enumerate(scores)) for scores in on_the_same_maps(correlation)]
    maps = dict.fromkeys(range(5), range(100))
    assert 0.93 < np.mean([holds(score_interval(scores, maps=maps), 0.6) for scores in trials]) < 0.98
    naive = np.mean([holds(score_interval(scores), 0.6) for scores in trials])
    assert naive < {0: 0.98, 0.32: 0.84}[correlation]


def improvement_coverage(ours: Sequence[Array], theirs: Sequence[Array], maps: int, trials: int) -> float:
    better = (1 + np.sign(SCORES[:, None] - SCORES)) / 2
    truth = float(np.mean([x @ better @ y for x, y in zip(ours, theirs, strict=True)]))

    def interval(scores: dict[int, Array]) -> Interval:
        x, y = ({name: scores[name + place] for name in range(len(ours))} for place in (0, len(ours)))
        return probability_of_improvement(x, y)

    return coverage([*ours, *theirs], maps, truth, interval, trials)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs", "least"),
    [(0.5, 0.5, 0.93), (0.8, 0.5, 0.93), (0.95, 0.9, 0.93), (0.95, 0.1, 0.9), (0.99, 0.01, 0.9)],
)
def test_probability_of_improvement_is_covered(ours: float, theirs: float, least: float) -> None:
    for maps, strata in ((20, 1), (100, 3)):
        x, y = ([chances(win, 0.4, draw=min(0.1, win, 1 - win))] * strata for win in (ours, theirs))
        assert improvement_coverage(x, y, maps, trials=500) > least
