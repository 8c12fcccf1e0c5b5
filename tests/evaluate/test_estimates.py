from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from echelon_env.evaluate.estimates import (
    Interval,
    interquartile_mean,
    map_scores,
    probability_of_improvement,
    score_ends,
    score_interval,
    stratified_bootstrap,
    wilson,
)
from evaluate.made import made_match

Array = NDArray[np.float64]
Z = stats.norm.ppf(0.975)

SCORES = np.array([0, 0.25, 0.5, 0.75, 1])
WIN, DRAW, LOSS = 1, 0, -1

values = st.lists(st.sampled_from(SCORES.tolist()), min_size=1, max_size=30).map(np.array)
strata = st.dictionaries(st.sampled_from("abc"), values, min_size=1)


def close(interval: Interval, estimate: float, low: float, high: float, *, within: float = 1e-9) -> bool:
    return [interval.estimate, interval.low, interval.high] == pytest.approx([estimate, low, high], abs=within)


# ---- the formulas ----


@pytest.mark.parametrize(("count", "total"), [(0, 1), (1, 1), (7, 10), (0, 40), (196, 200), (200, 200)])
def test_wilson_solves_the_equation_of_the_score_test(count: int, total: int) -> None:
    share = count / total
    # (share - x)^2 = z^2 x (1 - x) / total
    low, high = sorted(np.roots([1 + Z**2 / total, -2 * share - Z**2 / total, share**2]).real)
    assert close(wilson(count, total), share, low, high)


@pytest.mark.parametrize(("count", "total"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_impossible_counts(count: int, total: int) -> None:
    with pytest.raises(ValueError, match=f"got {count} of {total}"):
        wilson(count, total)


def test_interquartile_mean_discards_a_quarter_at_each_end() -> None:
    assert interquartile_mean([5.0]) == 5
    assert interquartile_mean([9, 0, 1, 3]) == 2
    assert interquartile_mean([100, 1, 2, 3, -50]) == 2
    rows = np.random.default_rng(0).random((3, 50))
    assert interquartile_mean(rows) == pytest.approx([np.sort(row)[12:38].mean() for row in rows])
    assert interquartile_mean(rows, axis=0) == pytest.approx(rows.mean(axis=0))
    with pytest.raises(ValueError, match="at least one value"):
        interquartile_mean([])


def test_map_scores_are_means_of_both_sides() -> None:
    match = made_match("a", "b", [(WIN, WIN), (WIN, LOSS), (DRAW, LOSS), (DRAW, WIN), (LOSS, LOSS)])
    assert map_scores(match).tolist() == [1, 0.5, 0.25, 0.75, 0]


def test_map_scores_need_both_battles_of_every_map() -> None:
    match = made_match("a", "b", [(WIN, LOSS), (WIN, WIN)])
    one, other, third, fourth = match.battles
    for battles in [(), (one,), (one, other, third), (one, third, other, fourth), (other, one), (one, fourth)]:
        with pytest.raises(ValueError, match=f"two battles of each map.* got {len(battles)} battles"):
            map_scores(replace(match, battles=battles))


def test_score_is_the_mean_of_the_means_of_strata() -> None:
    uneven = {"a": np.ones(30), "b": np.zeros(10), "c": np.array([0, 0.25, 0.5])}
    assert score_interval(uneven).estimate == pytest.approx((1 + 0 + 0.25) / 3)


def test_score_interval_solves_the_equation_of_the_score_test_with_the_variance_of_maps() -> None:
    draws = np.random.default_rng(1)
    groups = [draws.choice(SCORES, size, p=[0.1, 0.2, 0.1, 0.2, 0.4]) for size in (8, 13)]
    variance = sum(stats.sem(group) ** 2 for group in groups) / 4
    mean = np.mean([group.mean() for group in groups])
    # (mean - x)^2 = t^2 variance x (1 - x) / (mean (1 - mean))
    part = stats.t.ppf(0.975, 8 + 13 - 2) ** 2 * variance / (mean * (1 - mean))
    low, high = sorted(np.roots([1 + part, -2 * mean - part, mean**2]).real)
    assert close(score_interval(dict(enumerate(groups))), mean, low, high)


@pytest.mark.parametrize("maps", [1, 2, 100])
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_score_interval_of_equal_maps_takes_each_as_one_battle(maps: int, score: float) -> None:
    expected = wilson(int(maps * score), maps)
    assert close(score_interval({"a": np.full(maps, score)}), expected.estimate, expected.low, expected.high)
    halves = {"a": np.full(maps, score), "b": np.full(maps, score)}
    expected = wilson(int(2 * maps * score), 2 * maps)
    assert close(score_interval(halves), expected.estimate, expected.low, expected.high)


def test_strata_on_the_same_maps_have_the_interval_of_their_maps_means() -> None:
    draws = np.random.default_rng(4)
    groups = draws.choice(SCORES, (3, 40))
    order = draws.permutation(40)
    scores = {"a": groups[0], "b": groups[1], "c": groups[2][order]}
    maps = {"a": range(40), "b": range(40), "c": order.tolist()}
    ours, theirs = score_interval(scores, maps=maps), score_interval({"all": groups.mean(axis=0)})
    assert close(ours, theirs.estimate, theirs.low, theirs.high)
    once = stratified_bootstrap({"a": groups[0]}, np.mean)
    assert (
        stratified_bootstrap({"a": groups[0], "b": groups[0]}, np.mean, maps={"a": range(40), "b": range(40)}) == once
    )
    won = dict.fromkeys("abc", np.ones(40))
    assert score_interval(won, maps=dict.fromkeys("abc", range(40))) == score_interval({"a": np.ones(40)})


def test_strata_that_share_no_map_are_independent_and_those_that_share_some_are_in_between() -> None:
    draws = np.random.default_rng(5)
    scores = {"a": draws.choice(SCORES, 40), "b": draws.choice(SCORES, 30)}
    scores["a"][:30] = scores["b"]
    apart = score_interval(scores)
    assert score_interval(scores, maps={"a": range(40), "b": range(40, 70)}) == apart
    some = score_interval(scores, maps={"a": range(40), "b": [*range(15), *range(50, 65)]})
    most = score_interval(scores, maps={"a": range(40), "b": range(30)})
    assert most.high - most.low > some.high - some.low > apart.high - apart.low


@given(strata)
def test_intervals_contain_their_estimates_and_are_symmetric(scores: dict[str, Array]) -> None:
    mirrored = {name: 1 - each for name, each in scores.items()}
    for ours, theirs in [
        (score_interval(scores), score_interval(mirrored)),
        (probability_of_improvement(scores, mirrored), probability_of_improvement(mirrored, scores)),
    ]:
        assert 0 <= ours.low <= ours.estimate <= ours.high <= 1
        assert ours.high - ours.low > 0.005
        assert close(theirs, 1 - ours.estimate, 1 - ours.high, 1 - ours.low)


def expanded(units: int, strata: int = 1) -> float:
    """The confidence level of a percentile interval whose ends are moved outwards."""
    degrees = units - strata
    return 2 * stats.norm.cdf(stats.t.ppf(0.975, degrees) * np.sqrt(units / degrees)) - 1


@pytest.mark.parametrize("statistic", [np.mean, np.median, interquartile_mean])
def test_bootstrap_agrees_with_scipy(statistic: Callable[..., Array]) -> None:
    """To the last digits, as both draw the same indices."""
    draws = np.random.default_rng(2)
    groups = [draws.beta(8, 2, 40), draws.beta(2, 8, 25)]
    for samples in (groups[:1], groups):
        expected = stats.bootstrap(
            samples,
            lambda *each, axis: statistic(np.concatenate(each, axis=axis), axis=axis),
            n_resamples=500,
            confidence_level=expanded(sum(map(len, samples)), len(samples)),
            method="percentile",
            random_state=np.random.default_rng(3),
        ).confidence_interval
        interval = stratified_bootstrap(dict(enumerate(samples)), statistic, samples=500, seed=3)
        assert close(interval, statistic(np.concatenate(samples)), expected.low, expected.high)


def test_bootstrap_of_equal_maps_has_no_width_and_of_one_map_is_everything() -> None:
    assert stratified_bootstrap({"a": np.ones(20)}, interquartile_mean) == Interval(1, 1, 1)
    assert stratified_bootstrap({"a": np.ones(20), "b": np.ones(1)}, interquartile_mean) == Interval(1, 0, 1)


def test_improvement_is_the_statistic_of_mann_and_whitney() -> None:
    draws = np.random.default_rng(7)
    x = {name: draws.choice(SCORES, size) for name, size in [("a", 30), ("b", 12)]}
    y = {name: draws.choice(SCORES, size, p=[0.3, 0.3, 0.2, 0.1, 0.1]) for name, size in [("b", 40), ("a", 20)]}
    expected = np.mean([stats.mannwhitneyu(x[name], y[name]).statistic / len(x[name]) / len(y[name]) for name in x])
    assert probability_of_improvement(x, y).estimate == pytest.approx(expected)


def test_improvement_of_a_player_that_always_scores_more() -> None:
    more, less = np.ones(50), np.full(50, 0.25)
    assert probability_of_improvement({"a": more}, {"a": less}) == score_interval({"a": more})
    single = probability_of_improvement({"a": more[:1]}, {"a": less[:1]})
    assert close(single, 1, wilson(1, 1).low, 1)


def test_invalid_strata_are_refused() -> None:
    good = {"a": np.array([0.5, 1])}

    def bootstrap(scores: dict[str, Array]) -> Interval:
        return stratified_bootstrap(scores, interquartile_mean)

    def improvement(scores: dict[str, Array]) -> Interval:
        return probability_of_improvement(scores, scores)

    for interval in (score_interval, bootstrap, improvement):
        with pytest.raises(ValueError, match="at least one stratum"):
            interval({})
        for bad in (np.array([]), np.ones((2, 2)), np.array([0.5, np.nan])):
            with pytest.raises(ValueError, match=r"stratum 'b': expected finite values \(units,\)"):
                interval({**good, "b": bad})
    for interval in (score_interval, bootstrap):
        with pytest.raises(ValueError, match=r"between 0 and 1, got scores from 0\.5 to 1\.5"):
            interval({**good, "b": np.array([1.5])})
    with pytest.raises(ValueError, match=r"same strata of both, got \['a'\] and \['b'\]"):
        probability_of_improvement(good, {"b": good["a"]})
    for maps in ({"a": [0]}, {"a": [1, 1]}, {"b": [0, 1]}):
        for interval in (score_interval, functools.partial(stratified_bootstrap, statistic=np.mean)):
            with pytest.raises(ValueError, match="a different map for each of 2 scores"):
                interval(good, maps=maps)
    with pytest.raises(ValueError, match="at least one bootstrap sample, got 0"):
        stratified_bootstrap(good, interquartile_mean, samples=0)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=9), min_size=1, max_size=5))
def test_the_intervals_of_many_results_are_those_of_each(results):
    arrays = [np.array(each) for each in results]
    squares = [np.square(each - each.mean()).sum() for each in arrays]
    low, high = score_ends(*map(np.array, ([*map(len, arrays)], [each.mean() for each in arrays], squares)))
    for index, each in enumerate(arrays):
        found = score_interval({None: each})
        assert (low[index], high[index]) == pytest.approx((found.low, found.high), rel=1e-12)
