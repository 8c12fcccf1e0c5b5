import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from echelon_train.league.ratings import bradley_terry as module
from echelon_train.league.ratings.bradley_terry import MEAN_STRENGTH, PRIOR_DEVIATION, bradley_terry
from echelon_train.league.ratings.payoffs import payoffs
from train.league.drawn import POINTS, ahead, draw_league

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), max_size=6)


def test_many_games_recover_the_strengths():
    strengths = np.array([1000.0, 1300.0, 1500.0, 1550.0, 2150.0])
    found = bradley_terry(draw_league(np.random.default_rng(0), ahead(strengths), 2000))
    np.testing.assert_allclose(found.strength, strengths, atol=20)
    assert found.strength.mean() == pytest.approx(MEAN_STRENGTH)
    assert (found.high - found.low < 60).all()


@pytest.mark.parametrize("scores", [[1.0] * 5 + [0.0], [0.75] * 20 + [1.0] * 10], ids=["as in pairs", "less spread"])
def test_the_interval_of_two_is_that_of_the_likelihood_of_their_difference(scores):
    """Against a search in one dimension: the ends are where twice the logarithm has fallen by 1.96 squared."""
    table = payoffs(["a", "b"], {("a", "b"): scores})
    found = bradley_terry(table, anchor="b")
    difference = np.linspace(-500, 3000, 350_001)
    wins = sum(scores) / table.dispersion[0, 1]
    losses = len(scores) / table.dispersion[0, 1] - wins
    value = wins * np.log(expit(difference / POINTS)) + losses * np.log(expit(-difference / POINTS))
    value -= 2 * (difference / 2 / PRIOR_DEVIATION) ** 2 / 2
    inside = difference[2 * (value.max() - value) <= 1.959964**2]
    best = MEAN_STRENGTH + difference[value.argmax()]
    assert found.strength[0] == pytest.approx(best, abs=0.1)
    assert found.low[0] == pytest.approx(MEAN_STRENGTH + inside[0], rel=1e-3)
    assert found.high[0] == pytest.approx(MEAN_STRENGTH + inside[-1], rel=1e-3)
    assert found.high[0] - found.strength[0] > found.strength[0] - found.low[0]


def test_the_anchor_has_the_given_strength_and_no_distance_changes():
    table = draw_league(np.random.default_rng(1), ahead(np.array([1400.0, 1500.0, 1700.0])), 40)
    free = bradley_terry(table)
    held = bradley_terry(table, anchor="member-1", anchor_strength=1200.0)
    assert held.strength[1] == held.low[1] == held.high[1] == 1200.0
    np.testing.assert_allclose(np.diff(held.strength), np.diff(free.strength), atol=1e-6)
    assert (held.high - held.low)[0] > (free.high - free.low)[0]  # the anchor's strength is uncertain, too
    with pytest.raises(ValueError, match=r"anchor: expected one of .* got 'absent'"):
        bradley_terry(table, anchor="absent")


def test_a_league_of_one_and_one_without_games():
    alone = bradley_terry(payoffs(["a"], {}))
    assert (alone.strength.tolist(), alone.low.tolist(), alone.high.tolist()) == ([1500.0], [1500.0], [1500.0])
    nothing = bradley_terry(payoffs(["a", "b"], {}))
    np.testing.assert_allclose(nothing.strength, 1500.0)
    half = 1.959964 * PRIOR_DEVIATION / np.sqrt(2)  # of a member about the mean of the two
    np.testing.assert_allclose(nothing.high - 1500.0, half, rtol=1e-3)


@pytest.mark.parametrize(("games", "neighbours", "tolerance"), [(10, 99, 0.02), (3, 2, 0.25)])
@pytest.mark.parametrize("anchor", ["member-3", None])
def test_the_intervals_of_many_members_are_nearly_the_exact_ones(monkeypatch, games, neighbours, tolerance, anchor):
    rng = np.random.default_rng(2)
    table = draw_league(rng, ahead(rng.normal(0, 300, 20)), games, neighbours=neighbours)
    exact = bradley_terry(table, anchor=anchor)
    monkeypatch.setattr(module, "MOST_PROFILES", 19)
    monkeypatch.setattr(module, "_profile_end", lambda *_: pytest.fail("its time has no bound"))
    near = bradley_terry(table, anchor=anchor)
    np.testing.assert_array_equal(near.strength, exact.strength)
    for side in ("low", "high"):
        lengths = getattr(near, side) - near.strength, getattr(exact, side) - exact.strength
        np.testing.assert_allclose(*lengths, rtol=tolerance, atol=1e-9)


@settings(max_examples=15)
@given(ab=SCORES, ac=SCORES, bc=SCORES)
def test_what_always_holds(ab, ac, bc):
    scores = {("a", "b"): ab, ("a", "c"): ac, ("b", "c"): bc}
    table = payoffs(["a", "b", "c"], scores)
    found = bradley_terry(table)
    assert np.isfinite(found.strength).all()
    assert (found.low < found.strength).all() and (found.strength < found.high).all()
    assert found.strength.mean() == pytest.approx(1500)
    mirrored = bradley_terry(payoffs(["a", "b", "c"], {pair: 1 - np.array(each) for pair, each in scores.items()}))
    np.testing.assert_allclose(mirrored.strength - 1500, 1500 - found.strength, atol=1e-5)
    np.testing.assert_allclose(mirrored.high - 1500, 1500 - found.low, atol=1)
    renamed = bradley_terry(payoffs(["c", "a", "b"], scores))
    np.testing.assert_allclose(renamed.strength, found.strength[[2, 0, 1]], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["ladder", "equal", "outlier"])
@pytest.mark.parametrize("games", [3, 20])
@pytest.mark.parametrize(("alike", "drawn"), [(0.0, 0.0), (1.0, 0.0), (0.3, 0.4)])
def test_the_coverage_of_the_intervals(spread, games, alike, drawn):
    rng = np.random.default_rng(4)
    held = []
    for _ in range(100):
        strengths = {
            "ladder": 100.0 * np.arange(6),
            "equal": np.zeros(6),
            "outlier": np.r_[900.0, rng.normal(0, 100, size=5)],
        }[spread]
        found = bradley_terry(draw_league(rng, ahead(strengths), games, alike=alike, drawn=drawn))
        truth = MEAN_STRENGTH + strengths - strengths.mean()
        held.append((found.low <= truth) & (truth <= found.high))
    coverage = np.mean(held)
    print(f"{spread}, {games} games, alike {alike}, drawn {drawn}: {coverage:.3f}, member 0 {np.mean(held, 0)[0]:.3f}")
    assert 0.9 < coverage < 0.99
