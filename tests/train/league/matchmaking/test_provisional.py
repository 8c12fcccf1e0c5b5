import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from echelon_env.config.schema import ConfigError
from echelon_train.league.matchmaking.provisional import PROVISIONAL, rate_members
from echelon_train.league.matchmaking.provisional import rate_newcomers as rate_results
from echelon_train.league.matchmaking.scheduling import MEAN_DEVIATION, PRIOR
from echelon_train.league.ratings.glicko2 import SCALE, Rating, rate_period
from echelon_train.league.ratings.results import Results
from support.leagues import draw_newcomers, rating_run

ANCHORED = {"anchor": Rating(1500.0, 0.0), "other": Rating(1900.0, 60.0)}


def rate_newcomers(ratings, played, pinned):
    return rate_results(ratings, Results(played), pinned)


def games(first, second, won, lost=0, even=0):
    return [(first, second, 1.0)] * won + [(first, second, 0.0)] * lost + [(first, second, 0.5)] * even


def test_a_newcomer_has_the_rating_that_its_games_and_the_prior_make_most_probable():
    played = games("new", "anchor", 9, 1) + games("new", "other", 2, 7, 1)
    after = rate_newcomers(ANCHORED | {"new": Rating(1600.0, 100.0, 0.07)}, played, [*ANCHORED])
    deviation = np.hypot(PRIOR.deviation, MEAN_DEVIATION)

    def surprise(points):
        chances = 1 / (1 + np.exp((np.array([1500.0, 1900.0]) - points) / SCALE))
        scores = np.array([9.0, 2.5])
        likelihood = scores @ np.log(chances) + (10 - scores) @ np.log(1 - chances)
        return -likelihood - norm.logpdf(points, 1500, deviation)

    best = minimize_scalar(surprise, bounds=(400, 4000), method="bounded", options={"xatol": 1e-6}).x
    assert after["new"].rating == pytest.approx(best, abs=1e-2)
    curvature = (surprise(best + 1) - 2 * surprise(best) + surprise(best - 1)) ** -0.5
    assert after["new"].deviation == pytest.approx(curvature, rel=1e-3)
    assert after["new"].volatility == 0.07
    assert {name: after[name] for name in ANCHORED} == ANCHORED


def test_members_with_many_games_or_none_keep_their_ratings():
    ratings = ANCHORED | {"known": Rating(1700.0, 50.0), "unplayed": Rating(), "new": Rating()}
    played = games("known", "anchor", PROVISIONAL, 1) + games("new", "known", 3)
    after = rate_newcomers(ratings, played, ["anchor"])
    assert [name for name in ratings if after[name] != ratings[name]] == ["new"]
    assert after["new"].rating > 1700
    (last,) = games("known", "anchor", 0, 1)
    assert rate_newcomers(ratings, played[:-4], ["anchor"])["known"] != ratings["known"], "at the limit"
    assert rate_newcomers(ratings, [*played[:-4], last], ["anchor"])["known"] == ratings["known"], "beyond it"
    with pytest.raises(ConfigError, match="expected two members that have ratings"):
        rate_newcomers(ratings, games("new", "absent", 1), ["anchor"])


def test_a_strong_newcomer_takes_no_points_from_its_opponents():
    """Their ratings are those before, if their scores are what the newcomer's strength predicts."""
    ratings = ANCHORED | {"new": Rating()}
    known, fresh = games("other", "anchor", 109, 11), games("other", "new", 10, 10)
    after = rate_members(ratings, Results(fresh), Results(known + fresh), pinned=["anchor"])
    assert abs(after["other"].rating - 1900) < 5 and abs(after["new"].rating - 1880) < 20
    assert rate_period(ratings, Results(fresh), pinned=["anchor"])["other"].rating < 1850, "Glicko-2 alone"


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=60))
def test_ratings_stay_within_their_bounds_in_any_order_of_games(drawn):
    names = ["anchor", "a", "b", "c"]
    played = [(names[first], names[second], score) for first, second, score in drawn if first != second]
    ratings = {"anchor": Rating(1500.0, 0.0), **{name: Rating() for name in names[1:]}}
    after = rate_newcomers(ratings, played, ["anchor"])
    assert after.keys() == ratings.keys() and after["anchor"] == ratings["anchor"]
    assert all(each.deviation <= Rating().deviation for each in after.values()), "no game makes a rating less certain"
    again = rate_newcomers(ratings, played[::-1], ["anchor"])
    for name in names:
        assert again[name].rating == pytest.approx(after[name].rating, abs=1e-6)


@pytest.mark.parametrize("arriving", [False, True])
def test_in_a_simulated_league_ratings_are_nearer_to_the_truth(arriving):
    """Whether the members join at once, or one after another."""
    population, found = draw_newcomers(np.random.default_rng(3)), []
    for corrected in (False, True):
        run = rating_run(population, 75.0, 10, np.random.default_rng(4), corrected=corrected, arriving=arriving)
        points, reach = np.array([(rating.rating, 1.96 * rating.deviation) for rating in run.ratings]).T
        distance, true = points - points[0], population.points - population.points[0]
        held = np.mean(np.abs(points - population.points)[1:] <= reach[1:])
        found.append((population.error(points), distance @ true / (true @ true), held))
    (alone, short, _), (error, share, held) = found
    assert error < 0.6 * alone and error < 100
    assert short < 0.9 < share and held >= 0.7
