from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from echelon_env.evaluate.statistics import (
    Interval,
    cross_play,
    interquartile_mean,
    map_scores,
    probability_of_improvement,
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


def test_interquartile_mean_leaves_out_a_quarter_at_either_end() -> None:
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


def test_map_scores_want_both_battles_of_every_map() -> None:
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


def test_score_interval_of_single_maps_is_wide() -> None:
    interval = score_interval({"a": np.array([0.0]), "b": np.array([0.75])})
    assert interval.low < 0.1 and interval.high > 0.85


@given(strata)
@settings(deadline=None)
def test_intervals_hold_their_estimates_and_do_not_care_whose_they_are(scores: dict[str, Array]) -> None:
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


def test_bootstrap_depends_on_its_seed_alone() -> None:
    scores = {"a": np.random.default_rng(6).random(20)}
    first, again, other = (stratified_bootstrap(scores, interquartile_mean, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.low != other.low and first.estimate == other.estimate


def test_bootstrap_of_equal_maps_has_no_width_and_of_one_map_is_everything() -> None:
    assert stratified_bootstrap({"a": np.ones(20)}, interquartile_mean) == Interval(1, 1, 1)
    assert stratified_bootstrap({"a": np.ones(20), "b": np.ones(1)}, interquartile_mean) == Interval(1, 0, 1)


def test_improvement_is_the_statistic_of_mann_and_whitney() -> None:
    draws = np.random.default_rng(7)
    x = {name: draws.choice(SCORES, size) for name, size in [("a", 30), ("b", 12)]}
    y = {name: draws.choice(SCORES, size, p=[0.3, 0.3, 0.2, 0.1, 0.1]) for name, size in [("b", 40), ("a", 20)]}
    expected = np.mean([stats.mannwhitneyu(x[name], y[name]).statistic / len(x[name]) / len(y[name]) for name in x])
    assert probability_of_improvement(x, y).estimate == pytest.approx(expected)


def test_improvement_needs_no_scale() -> None:
    draws = np.random.default_rng(8)
    x, y = draws.normal(1, 1, 50), draws.normal(0, 1, 70)
    interval = probability_of_improvement({"a": x}, {"a": y})
    cubes = probability_of_improvement({"a": 100 * x**3}, {"a": 100 * y**3})
    assert close(cubes, interval.estimate, interval.low, interval.high)


def test_improvement_has_an_interval_like_the_bootstrap() -> None:
    draws = np.random.default_rng(9)
    x, y = draws.choice(SCORES, 80, p=[0.1, 0.1, 0.2, 0.3, 0.3]), draws.choice(SCORES, 60)

    def rate(ours: Array, theirs: Array, axis: int) -> Array:
        return stats.mannwhitneyu(ours, theirs, axis=axis, method="asymptotic").statistic / 80 / 60

    expected = stats.bootstrap(
        [x, y], rate, n_resamples=4000, method="percentile", random_state=np.random.default_rng(0), batch=500
    ).confidence_interval
    interval = probability_of_improvement({"a": x}, {"a": y})
    assert close(interval, rate(x, y, 0), expected.low, expected.high, within=0.01)


def test_improvement_of_one_who_always_scores_more() -> None:
    more, less = np.ones(50), np.full(50, 0.25)
    assert probability_of_improvement({"a": more}, {"a": less}) == score_interval({"a": more})
    single = probability_of_improvement({"a": more[:1]}, {"a": less[:1]})
    assert close(single, 1, wilson(1, 1).low, 1)


def test_strata_that_are_none_are_refused() -> None:
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
        with pytest.raises(ValueError, match=r"between 0 and 1, got some from 0\.5 to 1\.5"):
            interval({**good, "b": np.array([1.5])})
    with pytest.raises(ValueError, match=r"same strata of both, got \['a'\] and \['b'\]"):
        probability_of_improvement(good, {"b": good["a"]})
    with pytest.raises(ValueError, match="at least one bootstrap sample, got 0"):
        stratified_bootstrap(good, interquartile_mean, samples=0)


# ---- cross-play ----


def test_cross_play_has_every_cell_and_its_mirror_image() -> None:
    duel = made_match("a", "b", [(WIN, WIN), (WIN, LOSS), (DRAW, WIN)])
    other = made_match("c", "a", [(LOSS, DRAW), (LOSS, LOSS)])
    play = cross_play([duel, other])
    assert play.players == ("a", "b", "c")
    matrix = play.scenarios["duel"]
    assert matrix.wins.tolist() == [[0, 4, 3], [1, 0, 0], [0, 0, 0]]
    assert matrix.draws.tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert (matrix.losses == matrix.wins.T).all()
    nan = np.nan
    np.testing.assert_allclose(matrix.score, [[nan, 0.75, 0.875], [0.25, nan, nan], [0.125, nan, nan]])
    np.testing.assert_allclose(matrix.low, 1 - matrix.high.T)
    assert close(score_interval({"duel": map_scores(duel)}), 0.75, matrix.low[0, 1], matrix.high[0, 1])


def test_cross_play_pools_scenarios_with_equal_weight() -> None:
    duel = made_match("a", "b", [(WIN, WIN)] * 3 + [(WIN, LOSS)])
    skirmish = made_match("b", "a", [(WIN, WIN), (WIN, LOSS)], scenario="skirmish")
    apart = made_match("a", "c", [(WIN, WIN)])
    play = cross_play([duel, skirmish, apart])
    assert list(play.scenarios) == ["duel", "skirmish"]
    assert play.pooled.wins[0, 1] == 7 + 1
    pooled = score_interval({"duel": map_scores(duel), "skirmish": 1 - map_scores(skirmish)})
    assert close(pooled, (0.875 + 0.25) / 2, play.pooled.low[0, 1], play.pooled.high[0, 1])
    assert play.pooled.score[0, 1] == pooled.estimate
    assert np.isnan(play.pooled.score[0, 2]) and play.pooled.wins[0, 2] == 0
    assert play.scenarios["duel"].score[0, 2] == 1


def test_cross_play_takes_matches_of_a_pair_together() -> None:
    parts = [made_match("a", "b", [(WIN, WIN), (LOSS, LOSS)]), made_match("b", "a", [(WIN, LOSS)], maps=2)]
    whole = made_match("a", "b", [(WIN, WIN), (LOSS, LOSS), (LOSS, WIN)])
    for field in ("wins", "losses", "score", "low", "high"):
        ours, theirs = (getattr(cross_play(matches).pooled, field) for matches in (parts, [whole]))
        np.testing.assert_array_equal(ours, theirs)
    for again in (parts[0], made_match("b", "a", [(DRAW, DRAW)], maps=1)):
        with pytest.raises(ValueError, match="met more than once on a map of 'duel'"):
            cross_play([*parts, again])


def test_cross_play_of_a_player_with_itself() -> None:
    matrix = cross_play([made_match("a", "a", [(WIN, WIN), (WIN, LOSS)])]).pooled
    assert (matrix.wins.item(), matrix.losses.item(), matrix.score.item()) == (3, 1, 0.75)


def test_cross_play_needs_matches() -> None:
    with pytest.raises(ValueError, match="at least one match"):
        cross_play([])
