import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env.config.schema import ConfigError
from echelon_train.league.matchmaking.opponents import (
    MIN_GAMES,
    Candidate,
    Learner,
    Opponent,
    OpponentMixture,
    failing,
    neighbours,
    opponent_probabilities,
    pfsp_weights,
    skill_weights,
)

NOTHING = {"last": 0.0, "pfsp": 0.0, "verification": 0.0}
LEARNER = Learner("learner", 1500.0, 100, "past 2")
WON, EVEN, LOST = {"games": 98, "score": 89.0}, {"games": 98, "score": 49.0}, {"games": 98, "score": 9.0}  # .9, .5, .1


def only(**weights):
    return OpponentMixture(**NOTHING | weights)


def names(candidates):
    return [candidate.name for candidate in candidates]


def by_name(mixture, learner, candidates):
    return {opponent.name: chance for opponent, chance in opponent_probabilities(mixture, learner, candidates).items()}


def test_hard_weights_prefer_opponents_that_the_learner_loses_to():
    np.testing.assert_allclose(pfsp_weights([0.0, 0.5, 1.0]), [0.8, 0.2, 0.0])


def test_var_weights_prefer_equals():
    np.testing.assert_allclose(pfsp_weights([0.0, 0.5, 0.1, 1.0], "var"), [0, 0.25 / 0.34, 0.09 / 0.34, 0])


@pytest.mark.parametrize("weighting", ["hard", "var"])
def test_unplayed_counts_as_even(weighting):
    np.testing.assert_array_equal(
        pfsp_weights([math.nan, 0.1, 0.9], weighting), pfsp_weights([0.5, 0.1, 0.9], weighting)
    )


@pytest.mark.parametrize("weighting", ["hard", "var"])
def test_if_all_weights_are_zero_all_shares_are_equal(weighting):
    np.testing.assert_array_equal(pfsp_weights([1.0] * 4, weighting), [0.25] * 4)


@given(st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), min_size=1), st.sampled_from(["hard", "var"]))
def test_pfsp_weights_are_probabilities(chances, weighting):
    weights = pfsp_weights(chances, weighting)
    assert weights.shape == (len(chances),)
    assert np.all(weights >= 0) and weights.sum() == pytest.approx(1)


def test_skill_weights_follow_a_bell_curve_of_200_points():
    weights = skill_weights(1500, [1500, 1700, 1300, 1900])
    np.testing.assert_allclose(weights / weights[0], [1, math.exp(-0.5), math.exp(-0.5), math.exp(-2)])


def test_skill_weights_find_an_opponent_at_any_distance():
    np.testing.assert_allclose(skill_weights(400, [4000, 3990], width=1), [0, 1], atol=1e-12)


def test_a_newcomer_plays_against_neighbours_only():
    candidates = [Candidate(str(rating), "other", rating) for rating in (1250.0, 1300.0, 1550.0, 1700.0, 1701.0)]
    assert names(neighbours(Learner("new", 1500.0, 19), candidates)) == ["1300.0", "1550.0", "1700.0"]
    assert neighbours(Learner("known", 1500.0, 20), candidates) == candidates


def test_a_newcomer_without_neighbours_plays_against_the_nearest():
    candidates = [Candidate("far", "other", 2000.0), Candidate("near", "other", 1000.0)]
    assert names(neighbours(Learner("new", 1400.0), candidates)) == ["near"]
    assert neighbours(Learner("new"), []) == []


def test_a_win_probability_is_never_certain():
    assert Candidate("a", "other").win_probability == 0.5
    assert Candidate("a", "other", games=1, score=1.0).win_probability == pytest.approx(2 / 3)
    assert Candidate("a", "other", games=98, score=98.0).win_probability == pytest.approx(0.99)


def test_exploiters_that_win_are_verified_first():
    candidates = [
        Candidate("forgotten", "past", **LOST),
        Candidate("beaten", "exploiter", **WON),
        Candidate("last", "past", **WON),
        Candidate("exploits", "exploiter", **LOST),
        Candidate("strong", "other", **LOST),
    ]
    assert names(failing(candidates)) == ["exploits"]
    assert names(failing([candidate for candidate in candidates if candidate.name != "exploits"])) == ["forgotten"]


@pytest.mark.parametrize(
    ("games", "won", "verified"),
    [(0.0, 0.0, True), (MIN_GAMES - 0.1, 1.0, True), (MIN_GAMES, 0.6, False), (40.0, 0.51, False), (40.0, 0.49, True)],
)
def test_an_exploiter_is_verified_until_enough_games_show_that_it_is_beaten(games, won, verified):
    exploiter = Candidate("new", "exploiter", games=games, score=won * games)
    assert names(failing([exploiter])) == ["new"] * verified


@pytest.mark.parametrize(
    ("history", "forgotten"),
    [
        ([WON, EVEN, WON, EVEN, LOST], [1]),  # the last two are only newer, and so harder
        ([WON, LOST, EVEN, WON], [1, 2]),
        ([LOST, EVEN, WON], [0, 1]),
        ([WON, EVEN, EVEN, LOST], []),
        ([LOST], []),
        ([], []),
    ],
)
def test_past_selves_are_forgotten_if_later_ones_are_easier(history, forgotten):
    candidates = [Candidate(str(age), "past", **record) for age, record in enumerate(history)]
    assert names(failing(candidates)) == [str(age) for age in forgotten]


LEAGUE = [
    Candidate("past 1", "past", 1400.0, **LOST),
    Candidate("past 2", "past", 1500.0, **WON),
    Candidate("exploiter", "exploiter", 1600.0, **EVEN),
    Candidate("other", "other", 1900.0, **LOST),
    Candidate("novice", "scripted", 1200.0, **WON),
    Candidate("veteran", "scripted", 1700.0, **EVEN),
]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"last": 2.0}, {"past 2": 1}),
        ({"past": 2.0}, {"past 1": 0.5, "past 2": 0.5}),
        ({"pfsp": 3.0}, {"past 1": 81, "past 2": 1, "exploiter": 25, "other": 81}),
        ({"pfsp": 1.0, "pfsp_weighting": "var"}, {"past 1": 9, "past 2": 9, "exploiter": 25, "other": 9}),
        (
            {"skill": 1.0, "skill_width": 100.0},
            {"past 1": math.exp(-0.5), "past 2": 1, "exploiter": math.exp(-0.5), "other": math.exp(-8)},
        ),
        ({"scripted": 1.0}, {"novice": 9, "veteran": 25}),
        ({"verification": 1.0}, {"past 1": 1}),
    ],
)
def test_what_a_source_offers(source, expected):
    total = sum(expected.values())
    found = by_name(only(**source), LEARNER, LEAGUE)
    assert found == pytest.approx({name: chance / total for name, chance in expected.items()})


def test_verification_is_hard_and_levels_are_equals_whatever_pfsp_is():
    records = (("a", LOST), ("b", EVEN), ("c", WON))
    found = by_name(
        only(verification=1.0, pfsp_weighting="var"),
        LEARNER,
        [Candidate(name, "past", **each) for name, each in records],
    )
    assert found == pytest.approx({"a": 81 / 106, "b": 25 / 106})
    levels = [Candidate(name, "scripted", **each) for name, each in records]
    assert by_name(only(scripted=1.0), LEARNER, levels) == pytest.approx({"a": 9 / 43, "b": 25 / 43, "c": 9 / 43})


def test_sources_are_mixed_by_weight():
    chances = opponent_probabilities(only(last=1.0, past=2.0, scripted=1.0), LEARNER, LEAGUE)
    assert sum(chances.values()) == pytest.approx(1)
    for source, share in (("last", 0.25), ("past", 0.5), ("scripted", 0.25)):
        assert sum(chance for opponent, chance in chances.items() if opponent.source == source) == pytest.approx(share)


def test_a_source_without_candidates_leaves_its_share_to_the_others():
    fine = [candidate for candidate in LEAGUE if candidate.name == "other"]
    assert opponent_probabilities(OpponentMixture(), LEARNER, fine) == {Opponent("other", "pfsp"): 1}


def test_before_anybody_has_been_trained_scripted_levels_play():
    levels = [candidate for candidate in LEAGUE if candidate.relation == "scripted"]
    found = opponent_probabilities(OpponentMixture(), LEARNER, levels)
    assert found == opponent_probabilities(only(scripted=1.0), LEARNER, levels)


def test_a_newcomer_is_offered_neighbours_by_every_source():
    chances = by_name(only(pfsp=1.0, scripted=1.0), Learner("new", 1500.0), LEAGUE)
    assert set(chances) == {"past 1", "past 2", "exploiter", "veteran"}


def test_a_mixture_that_offers_no_opponent_is_refused():
    with pytest.raises(ConfigError, match="offers 'learner' no opponent, and no scripted level"):
        opponent_probabilities(only(past=1.0, scripted=1.0), LEARNER, [Candidate("other", "other")])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pfsp_weights([1.1]), "numbers from 0 to 1"),
        (lambda: pfsp_weights([0.5, -0.1]), "numbers from 0 to 1"),
        (lambda: pfsp_weights([0.5], "soft"), "'soft'"),
        (lambda: skill_weights(1500, [1500], 0.0), "width: expected a number above 0"),
        (lambda: OpponentMixture(pfsp=-1.0), "pfsp"),
        (lambda: OpponentMixture(skill_width=0.0), "skill_width"),
        (lambda: OpponentMixture(pfsp_weighting="soft"), "pfsp_weighting"),
        (lambda: OpponentMixture(past=math.nan), "past"),
        (lambda: OpponentMixture(**NOTHING), "a weight above 0"),
        (lambda: Candidate("a", "friend"), "relation"),
        (lambda: Candidate("a", "past", games=-1), "games"),
        (lambda: Candidate("a", "past", games=1, score=1.5), "at most 1 a game, got 1.5 in 1"),
        (lambda: Candidate("a", "past", rating=math.inf), "rating"),
        (lambda: Learner("learner", games=-1), r"learner\.games"),
        (lambda: opponent_probabilities(OpponentMixture(), LEARNER, [Candidate("learner", "past")]), "different names"),
        (lambda: opponent_probabilities(OpponentMixture(), LEARNER, [Candidate("a", "past")] * 2), "different names"),
    ],
)
def test_impossible_values_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
