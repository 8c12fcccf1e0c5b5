"""Estimates with confidence intervals from the battles of matches.

The unit of every estimate except `wilson` is the map. Maps are independent, but the two battles on a map are not,
because they share the terrain and the spawn places. The scores of a map against several opponents are not independent
either: with five opponents, 100 maps and a pairwise correlation of 0.32, intervals that assume independence would cover
80 %. Therefore strata are scenarios, and the score of a map in a scenario is its mean over the opponents. Scenarios
with common map seeds may be correlated, too: pass `maps` to `score_interval` and `stratified_bootstrap`.

The coverage in the docstrings was computed or simulated for map scores of 0, 0.25, 0.5, 0.75 and 1, one to five strata
of 10 to 100 maps, win probabilities of 0.001 to 0.999, and correlations of -0.9 to 1 between the two battles of a map.
`tests/evaluate/test_estimates_coverage.py` repeats a part of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from echelon_env.evaluate.matches import Match

__all__ = [
    "CONFIDENCE",
    "Interval",
    "interquartile_mean",
    "map_scores",
    "match_outcomes",
    "probability_of_improvement",
    "score_ends",
    "score_interval",
    "stratified_bootstrap",
    "wilson",
]

CONFIDENCE = 0.95
"""Confidence level of every interval in this module, two-sided."""

TRIMMED = 0.25
"""Share of the values that an interquartile mean discards at each end."""

_TAIL = (1 - CONFIDENCE) / 2
_NO_VARIANCE = 1e-12  # smaller variances of scores in [0, 1] are rounding errors

Strata = Mapping[Any, NDArray[np.float64]]
"""Name of a stratum -> its values (units,)."""

Maps = Mapping[Any, Sequence[int]]
"""Name of a stratum -> the seeds of its maps (units,), all different. A seed may be in several strata."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval at `CONFIDENCE`."""

    estimate: float
    low: float
    high: float


def wilson(count: int, total: int) -> Interval:
    """The share `count` / `total` with its Wilson score interval.

    It assumes independent battles, and has nominal coverage if they are. If the two battles of a map correlate
    positively, it is too narrow: on 100 maps it covers 88 to 93 % at a correlation of 0.4, and 80 to 88 % if both
    always have the same outcome. If they correlate negatively, because the spawn place or the side decides, it is too
    wide: 98 to 99 % at a correlation of -0.4. `score_interval` is correct in both cases.

    Raises ValueError unless `total` is at least 1, and `count` from 0 to `total`.

    References
    ----------
    E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.
    """
    if not 0 <= count <= total or total < 1:
        raise ValueError(f"expected a count between 0 and a total of at least 1, got {count} of {total}")
    interval = stats.binomtest(int(count), int(total)).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(count / total, float(interval.low), float(interval.high))


def interquartile_mean(values: ArrayLike, axis: int = -1) -> Any:
    """The mean without the lowest and the highest quarter of the values (rounded down to whole values).

    It is a float for values (n,), and an array without the axis for more dimensions. Raises ValueError if there are no
    values.

    References
    ----------
    R. Agarwal, M. Schwarzer, P. S. Castro, A. Courville, M. G. Bellemare (2021), Deep reinforcement learning at the
    edge of the statistical precipice. NeurIPS 34.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 0 or values.shape[axis] == 0:
        raise ValueError(f"expected at least one value, got an array of shape {values.shape}")
    return stats.trim_mean(values, TRIMMED, axis=axis)


def match_outcomes(match: Match) -> NDArray[np.int64]:
    """The outcomes of a match's battles for the first player: (maps, 2 sides) of 1, 0 and -1.

    Raises ValueError if the match has no battles, or not two battles of each map, side 0 and then side 1.
    """
    sides = [(battle.seed, battle.side) for battle in match.battles]
    if not sides or sides != [(seed, side) for seed, _ in sides[::2] for side in (0, 1)]:
        raise ValueError(
            f"match of {match.first!r} and {match.second!r} in {match.scenario!r}: expected two battles of each map, "
            f"side 0 and then side 1, got {len(sides)} battles in another order"
        )
    return np.array([battle.outcome for battle in match.battles], dtype=np.int64).reshape(-1, 2)


def map_scores(match: Match) -> NDArray[np.float64]:
    """The first player's score of each map, the mean of its two battles: 1 for a win, 0.5 for a draw, 0 for a loss.

    The scores (maps,) are 0, 0.25, 0.5, 0.75 or 1; the second player's are 1 minus these. Raises ValueError as
    `match_outcomes`.
    """
    outcomes = match_outcomes(match)
    return np.asarray((1 + outcomes.mean(axis=1)) / 2)


def score_interval(strata: Strata, *, maps: Maps | None = None) -> Interval:
    """The mean score with an interval that accounts for the correlation of a map's two battles.

    The estimate is the mean of the strata's means. Its variance is estimated from the variance of the maps within each
    stratum, including the covariance of strata on common maps. The interval is the Wilson interval of the number of
    independent battles that would have this variance (the effective sample size), with Student's t instead of the
    normal quantile. If all maps have the same score, for example after wins only, a map counts as one battle.

    Measured coverage: 93 to 98 % at win probabilities of 0.03 to 0.97, at any correlation; 90 to 98 % outside this
    range, where few battles decide. The bootstrap over maps is as good inside the range and fails outside, as its
    interval has no width if all battles are won: at 0.99 its percentile interval covers 82 % on 100 maps and 37 % on
    20.

    `strata` has map scores (maps,) between 0 and 1, `maps` the maps of each stratum; by default strata have none in
    common. Raises ValueError if there is no stratum, a stratum is empty, a score is not between 0 and 1, or a score has
    no map of its own.

    References
    ----------
    E. L. Korn, B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201: the effective sample size.
    C. Franco, R. J. A. Little, T. A. Louis, E. V. Slud (2019), Comparative study of confidence intervals for
    proportions in complex sample surveys. Journal of Survey Statistics and Methodology 7: its use in the Wilson
    interval.
    """
    values = _check_strata(strata)
    _check_scores(values)
    sizes = np.array([len(each) for each in values])
    owners = np.concatenate(_check_maps(strata, maps))
    weights = np.repeat(1 / sizes, sizes) / len(sizes)  # weight of every score in the estimate
    variance = math.nan
    if sizes.min() > 1:
        # contributions of the maps to the estimate's error, with Bessel's correction for each stratum's mean
        errors = [(each - each.mean()) * math.sqrt(len(each) / (len(each) - 1)) for each in values]
        variance = float(np.square(np.bincount(owners, weights * np.concatenate(errors))).sum())
    estimate = float(np.mean([each.mean() for each in values]))
    shares = np.bincount(owners, weights)
    degrees = max(len(shares) - len(sizes), int(sizes.min()) - 1)
    low, high = _effective_wilson(estimate, variance, 1 / float(np.square(shares).sum()), degrees)
    return Interval(estimate, float(low), float(high))


def difference_interval(x: NDArray[np.float64], y: NDArray[np.float64]) -> Interval:
    """The mean difference x - y of map scores (maps,) between 0 and 1 on the same maps, with an interval over maps.

    The differences, from -1 to 1, are scaled to scores for `score_interval`. Raises ValueError as that.
    """
    halved = score_interval({"difference": (1.0 + x - y) / 2.0})
    return Interval(*(2.0 * end - 1.0 for end in (halved.estimate, halved.low, halved.high)))


def score_ends(
    maps: NDArray[Any], scores: NDArray[Any], squares: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and upper ends of the `score_interval` of many results at once, each of one stratum.

    Each result has a number of maps, at least 1, its mean map score, and the sum of the squared deviations of its map
    scores from their mean.
    """
    degrees = np.maximum(maps - 1, 1)
    variance = np.where(maps > 1, squares / (maps * degrees), math.nan)
    return _effective_wilson(scores, variance, maps, degrees)


def stratified_bootstrap(
    strata: Strata, statistic: Callable[..., Any], *, maps: Maps | None = None, seed: int = 0, samples: int = 2000
) -> Interval:
    """A statistic of all scores with its bootstrap interval. The bootstrap resamples the maps of each stratum.

    Strata with the same maps get the same draws, which preserves their correlation.

    The interval is the expanded percentile interval. It moves the percentiles outwards by the ratio between an interval
    with the sample variance and Student's t, and one with the bootstrap's variance and the normal quantile.

    Measured coverage for `interquartile_mean`: 93 to 97 % with 100 maps per stratum, 90 to 98 % with 20, and up to
    100 % near 0, 0.5 and 1, where it is not smooth. (The interval of a player that wins nearly every map correctly has
    no width: all maps that it does not win are trimmed.) Below ten maps in all it fails. With 20 maps the plain
    percentile interval covers 1 to 2 % less, and BCa, whose corrections assume a smooth statistic, 81 to 95 %. For a
    mean use `score_interval`, which is also valid if nearly all battles have the same outcome. The interval is [0, 1]
    if a stratum has only one map, which cannot be resampled.

    `strata` and `maps` are those of `score_interval`; a stratum with more maps has more weight, and strata that share
    only some of their maps are resampled independently. `statistic` is a function such as `interquartile_mean` or
    `numpy.median`, called as ``statistic(values, axis=-1)`` with the concatenated values of the strata (units,) and
    with resamples of them (samples, units); the result must lie between the minimum and the maximum value.

    Raises ValueError as `score_interval`, and for less than one sample.

    References
    ----------
    R. Agarwal et al. (2021), see `interquartile_mean`: the stratified bootstrap.
    T. C. Hesterberg (2015), What teachers should know about the bootstrap. The American Statistician 69, 371-386: the
    expanded percentile interval.
    """
    if samples < 1:
        raise ValueError(f"expected at least one bootstrap sample, got {samples}")
    values = _check_strata(strata)
    _check_scores(values)
    estimate = float(statistic(np.concatenate(values), axis=-1))
    if min(map(len, values)) == 1:
        return Interval(estimate, 0.0, 1.0)
    rng = np.random.default_rng(seed)
    draws: dict[bytes, NDArray[np.int64]] = {}
    resamples = []
    for each, owners in zip(values, _check_maps(strata, maps), strict=True):
        order = np.argsort(owners)  # strata with the same maps in another order get the same draws
        key = owners[order].tobytes()
        if key not in draws:
            draws[key] = rng.integers(len(each), size=(samples, len(each)))
        resamples.append(each[order][draws[key]])
    units = sum(each.shape[1] for each in draws.values())
    degrees = units - len(draws)
    tail = stats.norm.cdf(stats.t.ppf(_TAIL, degrees) * np.sqrt(units / degrees))
    low, high = np.quantile(statistic(np.concatenate(resamples, axis=1), axis=-1), [tail, 1 - tail])
    return Interval(estimate, float(low), float(high))


def probability_of_improvement(x: Strata, y: Strata) -> Interval:
    """The probability that x scores higher than y on a random map of each: the mean over the strata.

    In each stratum it is the Mann-Whitney statistic U / (n m), in which equal scores count one half. The interval is
    computed as in `score_interval`, with DeLong's variance. The variance has a lower bound: that of two equally good
    players without ties. x and y are assumed to be independent. On common maps, which are hard or easy for both, the
    interval is too wide (97 to 99 %).

    Measured coverage: 94 to 98 % for probabilities up to 0.9; above, 91 to 100 %, and at worst 87 %, at 0.999 with 20
    maps. The stratified bootstrap is as good up to 0.9 and fails above: with 100 maps each it covers 92 % at 0.97, 78 %
    at 0.991 and 25 % at 0.998.

    The values (units,) of a stratum have any scale; x and y may have different numbers of units. Raises ValueError if
    their strata differ, there is no stratum, a stratum is empty, or a value is not finite.

    References
    ----------
    H. B. Mann, D. R. Whitney (1947), On a test of whether one of two random variables is stochastically larger than the
    other. Annals of Mathematical Statistics 18, 50-60.
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson (1988), Comparing the areas under two or more correlated receiver
    operating characteristic curves: a nonparametric approach. Biometrics 44, 837-845.
    R. Agarwal et al. (2021), see `interquartile_mean`: its use for learning agents.
    """
    if set(x) != set(y):
        raise ValueError(f"expected the same strata of both, got {sorted(x)} and {sorted(y)}")
    pairs = list(zip(_check_strata(x), _check_strata({name: y[name] for name in x}), strict=True))
    estimates, variances, inverses = np.array([_improvement(ours, theirs) for ours, theirs in pairs]).T
    degrees = sum(min(len(ours), len(theirs)) - 1 for ours, theirs in pairs)
    variance = float(variances.sum()) / len(pairs) ** 2
    estimate = float(estimates.mean())
    low, high = _effective_wilson(estimate, variance, len(pairs) ** 2 / float(inverses.sum()), degrees)
    return Interval(estimate, float(low), float(high))


def _improvement(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[float, float, float]:
    """For two samples: U / (n m), its variance (NaN if a sample has one value), and the mean of 1 / n and 1 / m."""
    better = (1 + np.sign(ours[:, np.newaxis] - theirs)) / 2
    inverse = (1 / len(ours) + 1 / len(theirs)) / 2
    variance = math.nan
    if min(better.shape) > 1:
        delong = better.mean(axis=1).var(ddof=1) / len(ours) + better.mean(axis=0).var(ddof=1) / len(theirs)
        # for values of one continuous distribution, a single pair has variance 1/4, and the mean over all pairs has
        # (1 / n + 1 / m) / 12: two thirds of 1/4 times the mean of 1 / n and 1 / m
        variance = max(delong, 2 / 3 * better.var() * inverse)
    return float(better.mean()), float(variance), inverse


def _effective_wilson(
    estimate: ArrayLike, variance: ArrayLike, units: ArrayLike, degrees: int | NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of Wilson's interval for the number of trials that gives the variance.

    The trials are `units` where the variance is zero or unknown.
    """
    estimate, variance = np.asarray(estimate, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    z = float(stats.norm.isf(_TAIL))
    known = variance > _NO_VARIANCE
    effective = estimate * (1 - estimate) / np.where(known, variance, 1.0) * (z / stats.t.isf(_TAIL, degrees)) ** 2
    trials = np.where(known, effective, units)
    shrink = 1 + z**2 / trials
    centre = (estimate + z**2 / (2 * trials)) / shrink
    half = z * np.sqrt(estimate * (1 - estimate) / trials + z**2 / (4 * trials**2)) / shrink
    low, high = np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)
    return np.minimum(low, estimate), np.maximum(high, estimate)  # against rounding at estimates of 0 and 1


def _check_strata(strata: Strata) -> list[NDArray[np.float64]]:
    """The values of the strata as arrays. Raises ValueError unless each has at least one finite value."""
    if not strata:
        raise ValueError("expected at least one stratum")
    values = {name: np.asarray(each, dtype=np.float64) for name, each in strata.items()}
    for name, each in values.items():
        if each.ndim != 1 or not each.size or not np.isfinite(each).all():
            raise ValueError(f"stratum {name!r}: expected finite values (units,), at least one, got {each}")
    return list(values.values())


def _check_maps(strata: Strata, maps: Maps | None) -> list[NDArray[np.int64]]:
    """For each stratum the index of each unit's map (units,). Indices over all strata are 0, 1, ... without gaps."""
    if maps is None:
        starts = np.cumsum([0, *(len(each) for each in strata.values())])
        return [np.arange(start, end) for start, end in itertools.pairwise(starts)]
    numbers: dict[int, int] = {}
    for name, each in strata.items():
        if name not in maps or not len(each) == len(maps[name]) == len(set(maps[name])):
            raise ValueError(f"stratum {name!r}: expected a different map for each of {len(each)} scores")
        for seed in maps[name]:
            numbers.setdefault(seed, len(numbers))
    return [np.array([numbers[seed] for seed in maps[name]]) for name in strata]


def _check_scores(values: Sequence[NDArray[np.float64]]) -> None:
    low, high = min(each.min() for each in values), max(each.max() for each in values)
    if low < 0 or high > 1:
        raise ValueError(f"expected scores between 0 and 1, got scores from {low:g} to {high:g}")
