import dataclasses

import numpy as np
import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import LeagueConfig, OpponentMixture
from echelon_train.league.matchmaking.opponents import MIN_GAMES, Candidate, Learner
from echelon_train.league.matchmaking.roles import role_probabilities, should_reset, snapshot_due

LEARNER = Learner("learner", 1500.0, 1000)
COUNT = 2000


def candidate(name, relation="other", won=0.5, games=98):
    return Candidate(name, relation, 1500.0, games, won * games)


def shares(settings, candidates, main=()):
    """Opponent -> its probability."""
    found = role_probabilities(settings, LEARNER, candidates, main)
    assert sum(found.values()) == pytest.approx(1)
    return found


def test_a_main_agent_plays_by_its_mixture():
    mixture = OpponentMixture(last=0, pfsp=0.25, scripted=0.75, verification=0)
    members = [candidate("novice", "scripted"), candidate("main-1", "past")]
    chances = shares(LeagueConfig(mixture=mixture), members, ["main-1"])
    assert chances == pytest.approx({"main-1": 0.25, "novice": 0.75})


MAIN = ("main-1", "main-2", "main-3")


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (
            [candidate("novice", "scripted"), *map(candidate, MAIN), candidate("league-exploiter-1")],
            {"main-3": 1},
        ),
        # x (1 - x) of the equal and of 0.1, by the rule of succession 0.108
        (
            [
                candidate("novice", "scripted"), candidate("main-1", won=0.5), candidate("main-2", won=0.1),
                candidate("main-3", won=0.02), candidate("other"),
            ],
            {"main-1": 0.25 / (0.25 + 0.1078 * 0.8922), "main-2": 0.1078 * 0.8922 / (0.25 + 0.1078 * 0.8922)},
        ),
        ([candidate("main-1"), candidate("main-2", won=0, games=MIN_GAMES - 1)], {"main-2": 1}),
        ([candidate("main-1"), candidate("main-2", won=0.11)], {"main-2": 1}),
        ([candidate("main-1", won=0)], {"main-1": 1}),
    ],
    ids=["the newest", "hopeless", "few battles", "not quite hopeless", "the only one"],
)  # fmt: skip
def test_a_main_exploiter_plays_against_the_newest_snapshot_or_earlier_ones_if_that_is_hopeless(candidates, expected):
    assert shares(LeagueConfig(role="main_exploiter"), candidates, MAIN) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("own", [False, True])
def test_a_league_exploiter_plays_against_all_policies_mostly_those_that_it_loses_to(own, monkeypatch):
    """Also against its own last snapshot, which it need not beat, as a main agent must."""
    monkeypatch.setattr(f"{__name__}.LEARNER", dataclasses.replace(LEARNER, last="exploiter-1" if own else None))
    other = candidate("exploiter-1", "past" if own else "exploiter", won=0.9)
    chances = shares(
        LeagueConfig(role="league_exploiter"),
        [candidate("novice", "scripted"), candidate("main-1", "past", won=0.5), other],
    )
    assert chances.keys() == {"main-1", "exploiter-1"}
    assert chances["main-1"] == pytest.approx(0.5**2 / (0.5**2 + 0.108**2), abs=1e-3)


def test_exploiters_need_policies():
    for role, reason in (("main_exploiter", "the league has no snapshot of one"), ("league_exploiter", "has none")):
        with pytest.raises(ConfigError, match=reason):
            shares(LeagueConfig(role=role), [candidate("novice", "scripted")])


BEATEN, UNDECIDED = candidate("a", won=0.8), candidate("b", won=0.6)
LAST = candidate("main-3", "past", won=0.8)
RARELY_PLAYED = candidate("c", won=0, games=MIN_GAMES - 1)


@pytest.mark.parametrize(
    ("role", "samples", "opponents", "due"),
    [
        ("main", 99, [LAST], False),
        ("main", 100, [], False),
        ("main", 100, [LAST, UNDECIDED, RARELY_PLAYED], True),
        ("main", 399, [BEATEN, dataclasses.replace(LAST, score=0.6 * LAST.games)], False),
        ("main", 399, [dataclasses.replace(LAST, games=MIN_GAMES - 1, score=MIN_GAMES - 1)], False),
        ("main", 400, [UNDECIDED], True),
        ("main_exploiter", 99, [BEATEN], False),
        ("main_exploiter", 100, [BEATEN], True),
        ("main_exploiter", 100, [BEATEN, RARELY_PLAYED], True),
        ("main_exploiter", 100, [RARELY_PLAYED], False),
        ("main_exploiter", 100, [], False),
        ("league_exploiter", 399, [BEATEN, UNDECIDED], False),
        ("league_exploiter", 400, [BEATEN, UNDECIDED], True),
    ],
)
def test_when_a_snapshot_is_due(role, samples, opponents, due):
    settings = LeagueConfig(role=role, snapshot_every=100, beaten=0.7, patience=4)
    assert snapshot_due(settings, samples, opponents, LAST.name) == due


def test_the_first_snapshot_of_a_main_agent_is_due_after_its_samples():
    assert [snapshot_due(LeagueConfig(snapshot_every=100), samples, [UNDECIDED]) for samples in (99, 100)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(("role", "share"), [("main", 0), ("main_exploiter", 1), ("league_exploiter", 0.25)])
def test_how_often_a_learner_resets(role, share):
    generator = np.random.default_rng(0)
    resets = np.mean([should_reset(LeagueConfig(role=role), generator) for _ in range(COUNT)])
    assert resets == (share if share in (0, 1) else pytest.approx(share, abs=0.04))
