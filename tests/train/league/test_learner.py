import copy

import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import LeagueConfig, OpponentMixture
from echelon_train.league.errors import LeagueError
from echelon_train.league.learner import LeagueLearner, LearnerState
from echelon_train.league.matchmaking.opponents import MIN_GAMES, NEWCOMER_GAMES
from echelon_train.league.store.registry import League
from echelon_train.opponents.results import Results
from echelon_train.policy import build_policy
from echelon_train.tensor_files import weights_of
from train.league.leagues import played, saved
from train.small import NETWORK

SETTINGS = LeagueConfig(snapshot_every=100, mixture=OpponentMixture(last=1, pfsp=1, scripted=1, verification=1))


@pytest.fixture
def league(tmp_path):
    """The novice, an idle player, two snapshots of a main agent one after the other, and an exploiter."""
    made = League.create(tmp_path / "league")
    made.add_scripted("idle")
    made.add_checkpoint(saved(tmp_path / "1", 1), "main", "main-1")
    made.add_checkpoint(saved(tmp_path / "2", 2), "main", "main-2", "main-1")
    made.add_checkpoint(saved(tmp_path / "3", 3), "main_exploiter", "main-exploiter-1")
    return made


def join(league, settings=SETTINGS, results=None):
    learner = LeagueLearner(league, settings, 0)
    learner.refresh(results or {})
    return learner


def against(**outcomes):
    """Results by member: battles of one outcome each."""
    return {name.replace("_", "-"): Results(len(each), tuple(each)) for name, each in outcomes.items()}


def relations(learner):
    return {each.name: each.relation for each in learner.candidates({})}


def test_it_knows_its_opponents_and_their_relations(league):
    learner = join(league)
    loaded = weights_of(learner.load("main-1"))["action_net.weight"]
    assert loaded.equal(weights_of(build_policy(NETWORK, 1))["action_net.weight"])
    members = {"novice@auto": "scripted", "main-1": "other", "main-2": "other", "main-exploiter-1": "exploiter"}
    assert relations(learner) == members and learner.draw().keys() == members.keys()
    learner.announce(100)
    learner.published("main-2")
    assert relations(learner) == members | {"main-1": "past", "main-2": "past"}
    league.retire("main-1")
    assert "main-1" in relations(learner), "until the next refresh"
    learner.refresh({})
    assert relations(learner).get("main-1") is None and relations(learner)["main-2"] == "past"


def test_opponents_that_beat_it_are_drawn_more_often(league):
    settings = LeagueConfig(mixture=OpponentMixture(pfsp=1, verification=0))
    results = against(main_1=[-1] * 30, main_2=[1] * 30, main_exploiter_1=[1] * 30)
    learner = join(league, settings, results)
    assert learner.draw()["main-1"] > 0.95
    learner.state.last = "main-2"
    assert learner.metrics(results) == {"mean_score": pytest.approx(2 / 3), "worst_score": 0.0, "last_score": 1.0}
    assert learner.metrics({"novice@auto": Results(1, (0,))})["novice@auto/score"] == 0.5
    assert learner.metrics({"novice@auto": Results()}) == {}


def test_a_newcomer_draws_neighbours_and_has_its_snapshots_rating(league):
    league.record(played("main-1", "novice", (1, 1) * 30, 1))
    league.record(played("main-exploiter-1", "novice", (-1, -1) * 30, 2))
    league.rate_matches()
    learner = join(league, LeagueConfig(mixture=OpponentMixture(pfsp=1, verification=0)))
    assert learner.draw() == {"main-2": 1.0}, "without games, as the learner itself"
    learner.announce(100)
    learner.published("main-1")
    learner.refresh({})
    assert learner.draw() == {"main-1": 1.0}
    learner.refresh(against(novice=[1] * NEWCOMER_GAMES))
    assert set(learner.draw()) == {"main-1", "main-2", "main-exploiter-1"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        *(
            ({"agent": agent}, r"name '.*-999999': expected 1 to 32 lower-case")
            for agent in ("Main A", "a" * 31, "a/b")
        ),
    ],
)
def test_targets_and_agents_that_cannot_be_are_refused_at_once(league, settings, reason):
    with pytest.raises(LeagueError, match=reason):
        LeagueLearner(league, LeagueConfig(**settings), 0)


def test_a_snapshot_joins_once_and_has_the_one_before_as_its_parent(league, tmp_path):
    learner = join(league)
    assert not learner.snapshot_due(99, {})
    assert learner.snapshot_due(100, {})
    for number, samples in ((3, 100), (4, 250)):
        learner.announce(samples)
        checkpoint = saved(tmp_path / f"own{number}", 10 + number)
        name = learner.publish(checkpoint)
        assert (name, learner.publish(checkpoint)) == (f"main-{number}",) * 2, "it was killed before it noted so"
        learner.published(name)
        assert learner.state.announced is None
    learner.refresh({})
    assert learner.draw()["main-4"] > 1 / 6, "to know whether it beats it"
    beaten = against(main_4=[1] * MIN_GAMES)
    assert [learner.snapshot_due(350, results) for results in ({}, beaten)] == [False, True]
    assert not learner.snapshot_due(349, beaten)
    assert [league.member(name).parent for name in ("main-3", "main-4")] == [None, "main-3"]
    assert learner.should_reset() is False
    assert join(league, LeagueConfig(role="main_exploiter")).should_reset() is True


def test_a_learner_continues_from_its_state_unless_that_is_of_another_league(league):
    learner, other = join(league), join(league)
    learner.announce(100)
    learner.published("main-2")
    learner.announce(200)
    other.restore(copy.deepcopy(learner.state))
    for each in (learner, other):
        each.refresh({})
    assert other.draw() == learner.draw() and other.state == learner.state
    with pytest.raises(ConfigError, match="has no member 'main-9', which this run has added"):
        learner.restore(LearnerState(last="main-9"))
    assert learner.state == other.state
