import copy

import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import LeagueConfig
from echelon_train.league.errors import LeagueError
from echelon_train.league.learner import LeagueLearner, LearnerState
from echelon_train.league.store.registry import League
from echelon_train.opponents.results import Results
from echelon_train.policy import build_policy
from echelon_train.tensor_files import weights_of
from train.league.leagues import saved
from train.small import NETWORK

MAIN, EXPLOITER = LeagueConfig(stage=100), LeagueConfig(stage=100, role="exploiter")


@pytest.fixture
def league(tmp_path):
    """The novice, an idle player, two snapshots of a main agent one after the other, and an exploiter."""
    made = League.create(tmp_path / "league")
    made.add_scripted("idle")
    made.add_checkpoint(saved(tmp_path / "1", 1), "main", "main-1")
    made.add_checkpoint(saved(tmp_path / "2", 2), "main", "main-2", "main-1")
    made.add_checkpoint(saved(tmp_path / "3", 3), "exploiter", "exploiter-1", "main-2")
    return made


def join(league, settings=MAIN, results=None):
    learner = LeagueLearner(league, settings)
    learner.refresh(results or {})
    return learner


def against(**outcomes):
    """Results by member: battles of one outcome each."""
    return {name.replace("_", "-"): Results(len(each), tuple(each)) for name, each in outcomes.items()}


def test_a_main_agent_plays_against_all_members_that_are_active(league):
    learner = join(league)
    loaded = weights_of(learner.load("main-1"))["action_net.weight"]
    assert loaded.equal(weights_of(build_policy(NETWORK, 1))["action_net.weight"])
    assert learner.draw().keys() == {"novice", "main-1", "main-2", "exploiter-1"}
    league.retire("main-1")
    assert "main-1" in learner.draw(), "until the next refresh"
    learner.refresh({})
    assert learner.draw().keys() == {"novice", "main-2", "exploiter-1"}


def test_a_main_agent_meets_most_often_what_it_loses_to(league):
    results = against(main_1=[-1] * 30, main_2=[1] * 30, exploiter_1=[1] * 30)
    learner = join(league, results=results)
    assert learner.draw()["main-1"] > 0.75
    assert learner.metrics(results) == {"mean_score": pytest.approx(2 / 3), "worst_score": 0.0, "last_score": 1.0}
    assert learner.metrics({"novice": Results(1, (0,))})["novice_score"] == 0.5
    assert learner.metrics({"novice": Results()}) == {}


def test_an_exploiter_meets_the_newest_main_agent_without_one_from_its_weights(league, tmp_path):
    learner = join(league, EXPLOITER)
    assert learner.draw() == {"main-1": 1.0}, "main-2 has an exploiter"
    start = learner.begin_stage(0, learner.next_victim())
    assert weights_of(start)["action_net.weight"].equal(weights_of(build_policy(NETWORK, 1))["action_net.weight"])
    for number in (3, 4):
        league.add_checkpoint(saved(tmp_path / f"own{number}", number + 1), "main", f"main-{number}", "main-2")
    learner.refresh({})
    assert learner.draw() == {"main-1": 1.0}, "until the stage ends"
    assert learner.metrics(against(main_1=[1, -1]))["victim_score"] == 0.5
    name = learner.publish(saved(tmp_path / "5", 9))
    assert (name, league.member(name).parent, learner.next_victim()) == ("exploiter-2", "main-1", "main-4")
    league.retire("main-4")
    league.add_checkpoint(saved(tmp_path / "6", 10), "exploiter", "exploiter-3", "main-3")
    assert learner.next_victim() == "main-3", "the newest if all have one"


def test_a_main_agent_goes_on_from_its_own_weights(league):
    learner = join(league)
    assert learner.next_victim() is None and learner.begin_stage(70, None) is None
    assert [learner.stage_left(samples) for samples in (70, 120, 170, 200)] == [1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("agent", ["Main A", "a" * 31, "a/b"])
def test_agents_that_cannot_be_are_refused_at_once(league, agent):
    with pytest.raises(LeagueError, match=r"name '.*-999999': expected 1 to 32 lower-case"):
        LeagueLearner(league, LeagueConfig(agent=agent))


def test_an_exploiter_needs_a_main_agent(tmp_path):
    with pytest.raises(LeagueError, match="an exploiter needs a main agent: the league has no snapshot of one"):
        LeagueLearner(League.create(tmp_path / "empty"), EXPLOITER)


def test_a_snapshot_joins_once_and_has_the_one_before_as_its_parent(league, tmp_path):
    learner = join(league)
    for number, samples in ((3, 100), (4, 250)):
        checkpoint = saved(tmp_path / f"own{number}", 10 + number)
        name = learner.publish(checkpoint)
        assert (name, learner.publish(checkpoint)) == (f"main-{number}",) * 2, "it was killed before it noted so"
        learner.begin_stage(samples, None)
        assert learner.state == LearnerState(samples)
    assert [league.member(name).parent for name in ("main-3", "main-4")] == ["main-2", "main-3"]


def test_a_learner_continues_from_its_state_unless_that_is_of_another_league(league):
    learner, other = join(league), join(league)
    learner.begin_stage(200, "main-2")
    other.restore(copy.deepcopy(learner.state))
    for each in (learner, other):
        each.refresh({})
    assert other.draw() == learner.draw() and other.state == learner.state
    with pytest.raises(ConfigError, match="has no member 'main-9', which this run names"):
        learner.restore(LearnerState(victim="main-9"))
    assert learner.state == other.state
