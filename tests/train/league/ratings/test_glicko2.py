import math

import numpy as np
import pytest
from glicko2.math.algorithm import update_rating
from hypothesis import assume, given
from hypothesis import strategies as st

from echelon_env.config.schema import ConfigError
from echelon_train.league.ratings.glicko2 import (
    DEVIATIONS,
    LARGEST_MOVE,
    RATINGS,
    SCALE,
    VOLATILITIES,
    Rating,
    expected_scores,
    rate_period,
)
from echelon_train.league.ratings.results import Results

SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
ANY = st.builds(Rating, st.floats(*RATINGS), st.floats(0, DEVIATIONS[1]), st.floats(*VOLATILITIES))
USUAL = st.builds(Rating, st.floats(1200, 1800), st.floats(50, 350), st.floats(0.04, 0.08))


def games_of(ratings, most):
    return st.lists(st.tuples(ratings, SCORES), min_size=1, max_size=most)


def rated(rating, games, *, drifting=True, **options):
    """The rating of a member after games, each against another opponent."""
    opponents = {f"{number}": opponent for number, (opponent, _) in enumerate(games)}
    results = Results(("own", f"{number}", score) for number, (_, score) in enumerate(games))
    drifts = ["own"] if drifting else []
    return rate_period({"own": rating, **opponents}, results, drifting=drifts, **options)["own"]


def test_the_papers_example():
    after = rated(Rating(1500, 200), [(Rating(1400, 30), 1), (Rating(1550, 100), 0), (Rating(1700, 300), 0)])
    assert after.rating == pytest.approx(1464.05067, abs=5e-6)
    assert after.deviation == pytest.approx(151.516524, abs=5e-7)
    assert after.volatility == pytest.approx(0.0599959843, abs=2e-10)  # published step 5 stops at 1e-6


def test_a_period_without_games():
    after = rated(Rating(1500, 200), [])
    assert after.deviation == pytest.approx(200.271417, abs=5e-7)
    assert (after.rating, after.volatility) == (1500, 0.06)


def test_results_that_make_step_5_diverge_end_at_the_bounds():
    after = rated(Rating(2000, 50), [(Rating(1000, 50), 0)] * 30)
    assert after.volatility == VOLATILITIES[1]
    assert 2000 - LARGEST_MOVE <= after.rating < 2000


@given(USUAL, games_of(USUAL, 12), st.floats(0.3, 1.2))
def test_the_oracle(rating, games, tau):
    internal = [((each.rating - 1500) / SCALE, each.deviation / SCALE, score) for each, score in games]
    mu, phi, sigma = update_rating(
        (rating.rating - 1500) / SCALE, rating.deviation / SCALE, rating.volatility, internal, tau
    )
    expected = 1500 + SCALE * mu, SCALE * phi, sigma
    assume(VOLATILITIES[0] < sigma < VOLATILITIES[1])
    assume(expected[1] > DEVIATIONS[0] and abs(expected[0] - rating.rating) < LARGEST_MOVE)
    after = rated(rating, games, tau=tau)
    np.testing.assert_allclose((after.rating, after.deviation, after.volatility), expected, rtol=2e-6)


@given(ANY, games_of(ANY, 40), st.floats(0.1, 2), st.booleans())
def test_absurd_input_stays_finite_and_within_bounds(rating, games, tau, drifting):
    after = rated(rating, games, tau=tau, drifting=drifting)
    for value, (low, high) in (
        (after.rating, RATINGS),
        (after.deviation, DEVIATIONS),
        (after.volatility, VOLATILITIES),
    ):
        assert low <= value <= high
    assert abs(after.rating - rating.rating) <= LARGEST_MOVE + 1e-9


@given(ANY, games_of(ANY, 40), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_games_does_not_matter(rating, games, drifting, random):
    shuffled = random.sample(games, len(games))
    assert rated(rating, shuffled, drifting=drifting) == rated(rating, games, drifting=drifting)


@given(st.builds(Rating, st.floats(*RATINGS), st.floats(*DEVIATIONS)), games_of(ANY, 20))
def test_a_frozen_member_never_becomes_less_certain(rating, games):
    after = rated(rating, games, drifting=False)
    assert after.deviation <= rating.deviation
    assert after.volatility == rating.volatility
    assert after.deviation <= rated(rating, games).deviation + 1e-9


def test_the_expected_score_is_elos_where_ratings_are_certain():
    assert expected_scores(400, 0) == pytest.approx(10 / 11, abs=1e-6)
    spread = 3 * (316.0 / SCALE / math.pi) ** 2
    assert expected_scores(400, 316.0) == pytest.approx(1 / (1 + 10 ** (-1 / math.sqrt(1 + spread))), abs=1e-6)


BEFORE = {"anchor": Rating(1500, 60), "learner": Rating(1600, 100), "frozen": Rating(1700, 120), "idle": Rating(1400)}
GAMES = [("anchor", "learner", 0.75), ("frozen", "learner", 0.25), ("learner", "anchor", 0.0)]


def test_a_period_is_computed_from_the_snapshot():
    after = rate_period(BEFORE, Results(GAMES), drifting=["learner", "anchor"], pinned=["anchor"])
    anchor, frozen = BEFORE["anchor"], BEFORE["frozen"]
    assert after["learner"] == rated(BEFORE["learner"], [(anchor, 0.25), (frozen, 0.75), (anchor, 0.0)])
    assert after["frozen"] == rated(frozen, [(BEFORE["learner"], 0.25)], drifting=False)
    assert (after["anchor"], after["idle"], [*after]) == (anchor, BEFORE["idle"], [*BEFORE])
    alone = rate_period(BEFORE, Results(), drifting=["learner", "anchor"], pinned=["anchor"])
    assert alone == BEFORE | {"learner": rated(BEFORE["learner"], [])}, "only learners become less certain"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"results": Results([("learner", "absent", 1)])}, "a member that has a rating, got 'absent'"),
        ({"drifting": ["absent"]}, "got 'absent'"),
        ({"pinned": ["absent"]}, "got 'absent'"),
        ({"tau": 0.0}, "tau: expected a number from 0.1 to 2, got 0.0"),
        ({"tau": math.nan}, "tau"),
    ],
)
def test_impossible_periods_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rate_period(**{"ratings": BEFORE, "results": Results(), **options})


@pytest.mark.parametrize(
    "values", [{"rating": math.nan}, {"rating": 399.0}, {"deviation": -1.0}, {"deviation": 501.0}, {"volatility": 0.2}]
)
def test_impossible_ratings_are_refused(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        Rating(**values)
