import math

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("weighting", "chances", "expected"),
    [
        ("hard", [0.0, 0.5, 1.0], [0.8, 0.2, 0.0]),
        ("var", [0.0, 0.5, 0.1, 1.0], [0, 0.25 / 0.34, 0.09 / 0.34, 0]),
        ("hard", [1.0] * 4, [0.25] * 4),
        ("var", [1.0] * 4, [0.25] * 4),
    ],
)
def test_pfsp_prefers_opponents_that_the_learner_loses_to_or_its_equals(weighting, chances, expected):
    np.testing.assert_allclose(pfsp_weights(chances, weighting), expected)


def test_a_newcomer_plays_against_neighbours_or_the_nearest():
    candidates = [Candidate(str(rating), "other", rating) for rating in (1250.0, 1300.0, 1550.0, 1700.0, 1701.0)]
    assert names(neighbours(Learner("new", 1500.0, 19), candidates)) == ["1300.0", "1550.0", "1700.0"]
    assert names(neighbours(Learner("new", 2500.0), candidates)) == ["1701.0"]
    assert neighbours(Learner("known", 1500.0, 20), candidates) == candidates
    assert neighbours(Learner("new"), []) == []


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
        ({"pfsp": 3.0}, {"past 1": 81, "past 2": 1, "exploiter": 25, "other": 81}),
        ({"pfsp": 1.0, "pfsp_weighting": "var"}, {"past 1": 9, "past 2": 9, "exploiter": 25, "other": 9}),
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


def test_sources_are_mixed_by_weight_and_one_without_candidates_leaves_its_share_to_the_others():
    chances = opponent_probabilities(only(last=1.0, pfsp=2.0, scripted=1.0), LEARNER, LEAGUE)
    assert sum(chances.values()) == pytest.approx(1)
    for source, share in (("last", 0.25), ("pfsp", 0.5), ("scripted", 0.25)):
        assert sum(chance for opponent, chance in chances.items() if opponent.source == source) == pytest.approx(share)
    fine = [candidate for candidate in LEAGUE if candidate.name == "other"]
    assert opponent_probabilities(OpponentMixture(), LEARNER, fine) == {Opponent("other", "pfsp"): 1}


def test_before_a_member_is_trained_scripted_levels_play():
    levels = [candidate for candidate in LEAGUE if candidate.relation == "scripted"]
    found = opponent_probabilities(OpponentMixture(), LEARNER, levels)
    assert found == opponent_probabilities(only(scripted=1.0), LEARNER, levels)
    with pytest.raises(ConfigError, match="offers 'learner' no opponent, and no scripted level"):
        opponent_probabilities(only(last=1.0, scripted=1.0), LEARNER, [Candidate("other", "other")])


def test_a_newcomer_is_offered_neighbours_by_every_source():
    chances = by_name(only(pfsp=1.0, scripted=1.0), Learner("new", 1500.0), LEAGUE)
    assert set(chances) == {"past 1", "past 2", "exploiter", "veteran"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pfsp": -1.0}, "pfsp"),
        ({"pfsp_weighting": "soft"}, "pfsp_weighting"),
        ({"last": math.nan}, "last"),
        (NOTHING, "a weight above 0"),
    ],
)
def test_impossible_mixtures_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        OpponentMixture(**changes)
