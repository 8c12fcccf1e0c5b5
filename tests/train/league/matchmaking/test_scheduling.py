import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import bootstrap

from echelon_env.evaluate.seeds import EVALUATION_SEEDS
from echelon_train.league.matchmaking import scheduling
from echelon_train.league.ratings.glicko2 import SCALE, Rating, rate_period
from support.leagues import Game, draw_population, rating_run, results_of, used_maps

NAMES = [f"member {index}" for index in range(6)]
RATINGS = dict.fromkeys(NAMES, Rating()) | {"member 0": Rating(1500, 45)}
ANCHOR = ["member 0"]


def propose(ratings=RATINGS, games=(), pinned=ANCHOR, **options):
    return scheduling.propose_matches(
        ratings,
        results_of(games),
        pinned,
        used=used_maps(games),
        **{"target": 75.0, "matches": 3, "maps": 4, "seed": 1} | options,
    )


def joint_ratings(ratings, games, pinned):
    return scheduling.joint_ratings(ratings, results_of(games), pinned)


def deviations(ratings, games, pinned):
    return scheduling.deviations(ratings, results_of(games), pinned)


def games_of(first, second, scores, start=0):
    return [Game(first, second, score, start + index) for index, score in enumerate(scores)]


def simulated(strengths, number, generator):
    """Even battles' worth of games of random pairs with logistic chances."""
    games = []
    for seed in range(number):
        a, b = generator.permutation(len(strengths))[:2]
        chance = 1 / (1 + math.exp((strengths[b] - strengths[a]) / SCALE))
        games.append(Game(NAMES[a], NAMES[b], float(generator.binomial(2, chance)) / 2, seed))
    return games


def test_a_pair_with_many_games_differs_by_the_logit_of_its_score():
    ratings = {"member 0": Rating(1700, 45), "member 1": Rating()}
    joint = joint_ratings(ratings, games_of("member 1", "member 0", [1.0, 0.5, 0.75, 0.75] * 5000), ANCHOR)
    assert joint.ratings[0] == 1700
    assert joint.ratings[1] == pytest.approx(1700 + SCALE * math.log(3), abs=0.5)
    # 1 / (n p (1 - p)), the prior next to nothing
    assert math.sqrt(joint.covariance[1, 1]) == pytest.approx(SCALE / math.sqrt(20_000 * 0.1875), rel=1e-3)


def test_an_error_of_the_anchors_opponents_is_shared_by_all_others():
    # one member has played the anchor four times, the others only each other: none can be known better than that one
    games = games_of("member 0", "member 1", [0.5] * 4)
    for start, (first, second) in enumerate(combinations(NAMES[1:], 2)):
        games += games_of(first, second, [0.5] * 100, 100 * start)
    ratings = RATINGS
    for _ in range(3):
        ratings = rate_period(ratings, results_of(games), pinned=ANCHOR)
    known = deviations(ratings, games, ANCHOR)
    assert max(ratings[name].deviation for name in NAMES) < 60
    assert min(known[name] for name in NAMES[1:]) > 150


def test_joint_deviations_are_as_large_as_the_errors():
    generator = np.random.default_rng(4)
    standardised = []
    for _ in range(60):
        strengths = 1500 + generator.normal(0, 250, 6)
        strengths[0] = 1500
        joint = joint_ratings(RATINGS, simulated(strengths, 90, generator), ANCHOR)
        standardised += list((joint.ratings - strengths)[1:] / np.sqrt(joint.covariance.diagonal()[1:]))
    # two battles a game, counted as one: the errors are smaller than claimed, by a factor of up to the root of 2
    assert 0.6 < np.sqrt(np.mean(np.square(standardised))) < 1.0


def test_no_more_matches_are_proposed_than_are_expected_to_do():
    games = [game for name in NAMES[1:] for game in games_of("member 0", name, [0.5] * 60)]
    known = RATINGS | {name: Rating(deviation=60) for name in NAMES[1:]}
    assert max(deviations(known, games, ANCHOR).values()) < 75 and propose(known, games) == []
    (pairing,) = propose(known | {"member 3": Rating(deviation=76)}, games, matches=50)
    assert "member 3" in pairing[:2], "the larger of both deviations counts"


def test_members_that_lose_all_games_are_not_waited_for():
    """The first of a pair with a smaller number wins every game, as scripted levels do."""
    games, glicko = [], dict(RATINGS)
    while pairings := propose(glicko, games, matches=1, maps=10):
        ((first, second, seeds),) = pairings
        score = float(NAMES.index(first) < NAMES.index(second))
        games += [Game(first, second, score, seed) for seed in seeds]
        glicko = {name: Rating(each.rating, 45) for name, each in glicko.items()}
        assert len(games) <= 15 * 50, "five matches of every pair at most"
    assert {name for game in games for name in game[:2]} == set(NAMES)
    found = deviations(glicko, games, ANCHOR)
    assert found["member 0"] == 0 and max(found.values()) > 75


def test_every_match_has_maps_kept_for_evaluation_and_no_pair_plays_twice_on_one():
    pairings, seen = propose(target=50.0, matches=40), {}
    assert pairings == propose(target=50.0, matches=40) and len(pairings) == 40
    for first, second, seeds in pairings:
        assert len(seeds) == 4 and first != second and all(seed in EVALUATION_SEEDS for seed in seeds)
        seen.setdefault(frozenset((first, second)), []).extend(seeds)
    longest = max(seen.values(), key=len)
    assert len(set(longest)) == len(longest) > 4, "some pair has two matches"
    assert all(seeds == longest[: len(seeds)] for seeds in seen.values()), "all have the same in the same order"
    assert propose(seed=2)[0].seeds != propose(seed=1)[0].seeds
    ratings = {name: RATINGS[name] for name in NAMES[:2]}
    (first,) = propose(ratings, matches=1)
    (second,) = propose(ratings, [Game("member 1", "member 0", 0.5, first.seeds[2])], matches=1)
    assert second.seeds[:3] == (*first.seeds[:2], first.seeds[3]) and first.seeds[2] not in second.seeds


def test_even_pairs_are_preferred():
    strengths = [1500, 1000, 2000, 2500, 3000]
    known = {name: Rating(float(strength), 45) for name, strength in zip(NAMES[:5], strengths, strict=True)}
    games = games_of("member 5", "member 2", [0.5] * 20)  # no newcomer any more: it may play against all of them
    pairings = propose(known | {"member 5": Rating(deviation=75)}, games, NAMES[:5], target=50.0, matches=2)
    assert {frozenset(pairing[:2]) for pairing in pairings} == {frozenset(("member 2", "member 5"))}


def test_newcomers_play_against_neighbours_or_the_nearest():
    strengths = [1500, 1000, 1100, 1950, 2050, 2500]
    known = {name: Rating(float(strength), 45) for name, strength in zip(NAMES, strengths, strict=True)}
    pinned = NAMES[:5]
    # a newcomer that has drawn ten times with the strongest, and lost no game
    games = games_of("member 5", "member 4", [0.5] * 10)
    for pairing in propose(known | {"member 5": Rating()}, games, pinned, matches=20):
        assert set(pairing[:2]) <= {"member 3", "member 4", "member 5"}
    # without neighbours, the nearest is left
    far = games_of("member 5", "member 4", [1.0] * 10)
    pairings = propose(known | {"member 5": Rating()}, far, pinned, matches=20)
    assert {frozenset(pairing[:2]) for pairing in pairings} == {frozenset(("member 4", "member 5"))}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"games": [Game("absent", "member 1", 1.0, 0)]}, "got 'member 1' and 'absent'"),
        ({"ratings": {"member 0": Rating()}}, "at least two members, got 1"),
        ({"target": 45.0}, "target: expected a deviation above 45 points, got 45"),
        ({"target": math.nan}, "target"),
        ({"maps": 1.5}, "maps: expected an integer"),
        ({"seed": -1}, "seed"),
    ],
)
def test_impossible_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        propose(**arguments)


@pytest.mark.slow
def test_scheduling_saves_30_percent_by_the_interval_over_24_populations():
    seed, saved, errors = 11, [], []  # the share of matches saved, and the final error over the claimed one
    for index in range(24):
        population = draw_population(np.random.default_rng([seed, index]), cyclic=index % 2 == 1)
        robin, scheduled = (
            rating_run(population, 75.0, 4, np.random.default_rng([seed, index, 1]), scheduled=way)
            for way in (False, True)
        )
        saved.append(1 - scheduled.matches / robin.matches)
        errors.append(scheduled.error / scheduled.claimed)
    assert bootstrap((saved,), np.mean, rng=np.random.default_rng(0)).confidence_interval.low > 0.3
    assert np.sqrt(np.mean(np.square(errors))) < 1
