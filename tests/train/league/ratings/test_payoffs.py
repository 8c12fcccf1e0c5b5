import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env.evaluate.estimates import score_interval
from echelon_train.league.ratings.glicko2 import Rating, expected_scores
from echelon_train.league.ratings.payoffs import mispredictions, payoffs, predicted_scores
from train.league.drawn import POINTS, ahead, draw_league, draw_scores, names

GAME_SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=12)


def rated(table, strengths, deviation=0.0):
    return {name: Rating(float(strength), deviation) for name, strength in zip(table.members, strengths, strict=True)}


def test_a_cell_has_the_games_the_mean_score_and_its_interval():
    scores = [1.0, 0.5, 0.75, 1.0]
    table = payoffs(["a", "b", "c"], {("a", "b"): scores})
    interval = score_interval({"": np.array(scores)})
    assert table.members == ("a", "b", "c")
    assert table.games.tolist() == [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    assert (table.score[0, 1], table.low[0, 1], table.high[0, 1]) == (interval.estimate, interval.low, interval.high)
    assert table.squares[0, 1] == pytest.approx(4 * np.var(scores))
    assert np.argwhere(table.played).tolist() == [[0, 1], [1, 0]]
    for values in (table.score, table.low, table.high):
        assert np.isnan(values[~table.played]).all()


def test_the_games_among_some_members_are_those_of_the_whole():
    table = draw_league(np.random.default_rng(1), ahead(np.arange(6) * 80.0), 9, neighbours=3)
    chosen = ["member-4", "member-0", "member-3"]
    among = table.among(chosen)
    assert among.members == tuple(chosen)
    for i, row in enumerate(chosen):
        for j, column in enumerate(chosen):
            cell = table.members.index(row), table.members.index(column)
            for field in ("games", "score", "low", "high", "squares"):
                np.testing.assert_equal(getattr(among, field)[i, j], getattr(table, field)[cell])


@given(ab=GAME_SCORES, ba=GAME_SCORES, ac=GAME_SCORES)
def test_a_cell_mirrors_the_one_across_the_diagonal_and_has_the_games_of_both_orders(ab, ba, ac):
    table = payoffs(["a", "b", "c"], {("a", "b"): ab, ("b", "a"): ba, ("a", "c"): ac})
    together = payoffs(["a", "b", "c"], {("a", "b"): [*ab, *(1 - score for score in ba)], ("a", "c"): ac})
    for field in ("games", "score", "low", "high", "squares"):
        np.testing.assert_allclose(getattr(table, field), getattr(together, field), err_msg=field)
    np.testing.assert_allclose(table.score, 1 - table.score.T)
    np.testing.assert_allclose(table.low, 1 - table.high.T)
    np.testing.assert_array_equal(table.games, table.games.T)
    np.testing.assert_array_equal(table.squares, table.squares.T)
    assert table.games[0, 1] == len(ab) + len(ba)
    played = table.played
    assert (table.low[played] <= table.score[played]).all() and (table.score[played] <= table.high[played]).all()
    dispersion = table.dispersion
    np.testing.assert_array_equal(np.isnan(dispersion), ~played)
    np.testing.assert_array_equal(dispersion, dispersion.T)
    assert ((dispersion[played] > 0) & (dispersion[played] <= 1)).all()


@pytest.mark.parametrize(
    ("members", "scores", "match"),
    [
        ([], {}, "at least one"),
        (["a", "a"], {}, "all different"),
        (["a"], {("a", "a"): [0.5]}, "two different ones"),
        (["a", "b"], {("a", "c"): [0.5]}, "'c'"),
        (["a", "b"], {("a", "b"): [0.5, 1.1]}, "between 0 and 1"),
        (["a", "b"], {("a", "b"): [np.nan]}, "between 0 and 1"),
    ],
)
def test_invalid_payoffs_are_refused(members, scores, match):
    with pytest.raises(ValueError, match=match):
        payoffs(members, scores)


@pytest.mark.parametrize(("alike", "drawn", "expected"), [(0.0, 0.0, 0.5), (1.0, 0.0, 1.0), (0.4, 0.0, 0.7)])
def test_the_dispersion_measures_how_often_two_battles_end_alike(alike, drawn, expected):
    table = draw_league(np.random.default_rng(0), ahead(np.arange(8) * 60.0), 60, alike=alike, drawn=drawn)
    assert np.nanmean(table.dispersion) == pytest.approx(expected, abs=0.03)


def test_predictions_are_those_of_the_ratings():
    table = payoffs(["a", "b", "c"], {})
    ratings = {"c": Rating(1900.0, 50.0), "b": Rating(1400.0), "a": Rating(1500.0, 200.0), "other": Rating()}
    predicted = predicted_scores(table, ratings)
    assert predicted[0, 2] == expected_scores(-400.0, np.hypot(200.0, 50.0))
    np.testing.assert_allclose(predicted, 1 - predicted.T)
    np.testing.assert_allclose(np.diag(predicted), 0.5)
    with pytest.raises(ValueError, match=r"none of \['b'\]"):
        predicted_scores(table, {"a": Rating(), "c": Rating()})


def test_a_pair_that_contradicts_the_ratings_is_reported():
    strengths = np.array([1500.0, 1600.0, 1700.0, 1500.0])
    logits = ahead(strengths)
    logits[0, 2] += 400 / POINTS  # the first beats the third, which is stronger
    table = draw_league(np.random.default_rng(1), logits, 30)
    (found,) = mispredictions(table, rated(table, strengths))
    assert (found.first, found.second, found.games) == ("member-0", "member-2", 30)
    assert found.predicted == pytest.approx(1 / (1 + 10**0.5))
    assert found.predicted < found.low < found.score < found.high
    assert (found.score, found.low) == (table.score[0, 2], table.low[0, 2])
    assert found.q_value < 0.05


def test_winning_all_games_contradicts_no_large_lead():
    table = payoffs(["a", "b"], {("a", "b"): [1.0] * 30})
    assert mispredictions(table, rated(table, [2600.0, 1500.0])) == []
    assert mispredictions(table, rated(table, [1600.0, 1500.0]))
    assert mispredictions(table, rated(table, [1500.0, 2600.0]))


def test_one_surprise_among_many_pairs_is_taken_for_chance():
    rng = np.random.default_rng(0)
    surprise = [1.0] * 16 + [0.0] * 4
    alone = payoffs(["a", "b"], {("a", "b"): surprise})
    assert mispredictions(alone, rated(alone, [1500.0] * 2))
    members = names(16)
    scores = {(a, b): draw_scores(rng, 0.5, 20, alike=1.0, drawn=0.0) for a in members for b in members if a < b}
    table = payoffs(members, scores | {(members[0], members[1]): surprise})
    assert table.low[0, 1] == pytest.approx(alone.low[0, 1]) and table.low[0, 1] > 0.5
    assert mispredictions(table, rated(table, [1500.0] * 16)) == []
