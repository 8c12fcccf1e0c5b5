import copy
import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import LeagueConfig, OpponentMixture
from echelon_train.league.errors import LeagueError
from echelon_train.league.matchmaking.opponents import MIN_GAMES, NEWCOMER_GAMES
from echelon_train.league.self_play.learner import DECAY, LeagueLearner
from echelon_train.league.store.registry import League
from echelon_train.opponents.auto_handicap import BATTLES
from echelon_train.policy import build_policy
from echelon_train.tensor_files import weights_of
from train.league.leagues import played, saved
from train.small import NETWORK

SETTINGS = LeagueConfig(snapshot_every=100, mixture=OpponentMixture(last=1, past=1, pfsp=1, scripted=1, verification=1))


@pytest.fixture
def league(tmp_path):
    """The novice, an idle player, two snapshots of a main agent one after the other, and an exploiter."""
    made = League.create(tmp_path / "league")
    made.add_scripted("idle")
    made.add_checkpoint(saved(tmp_path / "1", 1), "main", "main-1")
    made.add_checkpoint(saved(tmp_path / "2", 2), "main", "main-2", "main-1")
    made.add_checkpoint(saved(tmp_path / "3", 3), "main_exploiter", "main-exploiter-1")
    return made


def join(league, settings=SETTINGS):
    learner = LeagueLearner(league, settings, 0)
    learner.refresh()
    return learner


def relations(learner):
    return {each.name: each.relation for each in learner._candidates}


def test_it_knows_its_opponents_and_their_relations(league):
    learner = join(league)
    members = {"novice@auto": "scripted", "main-1": "other", "main-2": "other", "main-exploiter-1": "exploiter"}
    assert relations(learner) == members
    learner.announce(100)
    learner.published("main-2")
    learner.refresh()
    assert relations(learner) == members | {"main-1": "past", "main-2": "past"}
    league.retire("main-1")
    assert "main-1" in relations(learner), "until the next refresh"
    learner.refresh()
    assert "main-1" not in relations(learner)
    assert relations(learner)["main-2"] == "past"


def test_draws_follow_from_the_seed_and_continue(league):
    one, two, other = join(league), join(league), LeagueLearner(league, SETTINGS, 1)
    other.refresh()
    drawn = [*one.draw(5), *one.draw(5)]
    assert [*two.draw(5), *two.draw(5)] == drawn
    assert drawn[:5] != drawn[5:]
    assert [*other.draw(5), *other.draw(5)] != drawn
    assert set(join(league).draw(500)) == {"novice@auto", "main-1", "main-2", "main-exploiter-1"}


def test_opponents_that_beat_it_are_drawn_more_often(league):
    learner = join(league, LeagueConfig(mixture=OpponentMixture(pfsp=1, verification=0)))
    for name, outcome in (("main-1", -1), ("main-2", 1), ("main-exploiter-1", 1)):
        for _ in range(30):
            learner.record(name, outcome)
    learner.refresh()
    drawn = Counter(learner.draw(500))
    assert drawn["main-1"] > 400
    assert learner.win_rates() == {"main-1": 0.0, "main-2": 1.0, "main-exploiter-1": 1.0}


def test_a_newcomer_draws_neighbours_and_has_its_snapshots_rating(league):
    league.record(played("main-1", "novice", (1, 1) * 30, 1))
    league.record(played("main-exploiter-1", "novice", (-1, -1) * 30, 2))
    league.close_period()
    learner = join(league, LeagueConfig(mixture=OpponentMixture(pfsp=1, verification=0)))
    assert set(learner.draw(100)) == {"main-2"}, "without games, as the learner itself"
    learner.announce(100)
    learner.published("main-1")
    learner.refresh()
    assert set(learner.draw(100)) == {"main-1"}
    for _ in range(2 * NEWCOMER_GAMES):
        learner.record("novice", 1)
    assert set(learner.draw(100)) == {"main-1", "main-2", "main-exploiter-1"}


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=300))
def test_a_win_rate_is_the_mean_with_weights_that_decay_and_is_restored(outcomes):
    learner, again = (LeagueLearner(None, SETTINGS, 0) for _ in range(2))
    for outcome in outcomes:
        learner.record("novice", outcome)
    weights = DECAY ** np.arange(len(outcomes))[::-1]
    expected = np.average((np.array(outcomes) + 1) / 2, weights=weights)
    assert learner.win_rates()["novice"] == pytest.approx(expected, abs=1e-9)
    assert learner.state.scores["novice"].games == pytest.approx(weights.sum())
    again.restore(copy.deepcopy(learner.state))
    assert again.win_rates() == learner.win_rates()


def test_battles_of_long_ago_do_not_count():
    learner = LeagueLearner(None, SETTINGS, 0)
    for outcome in [-1] * 500 + [1] * 300:
        learner.record("novice", outcome)
    assert learner.win_rates()["novice"] > 0.99
    score = learner.state.scores["novice"]
    assert 0 < score.points < score.games < 50.001


def test_a_level_has_a_handicap_that_follows_the_learner_and_no_other_opponent_has_one(league):
    learner = join(league)
    name, handicap = learner.player("novice@auto")
    assert (name, handicap.fire_rate) == ("novice", 0.25)
    changed = [learner.record("novice@auto", 1) for _ in range(BATTLES)]
    assert changed == [False] * (BATTLES - 1) + [True]
    assert learner.player("novice@auto")[1].fire_rate > 0.25
    found = learner.metrics()
    assert found["novice@auto/score"] == pytest.approx(1) and found["novice@auto/handicap/fire_rate"] > 0.25
    assert learner.player("main-1") == ("main-1", None) and not learner.record("main-1", 1)
    response = join(league, LeagueConfig(role="best_response", target="novice"))
    assert response.player(response.draw(1)[0]) == ("novice", None)


def test_members_come_with_the_weights_they_joined_with(league, tmp_path):
    loaded = weights_of(join(league).load("main-1"))["action_net.weight"]
    assert loaded.equal(weights_of(build_policy(NETWORK, 1))["action_net.weight"])


@pytest.mark.parametrize(("target", "reason"), [("idle", "no opponent in training"), ("absent", "no member")])
def test_a_target_that_cannot_be_is_refused(league, target, reason):
    with pytest.raises(LeagueError, match=reason):
        LeagueLearner(league, LeagueConfig(role="best_response", target=target), 0)


@pytest.mark.parametrize("agent", ["Main A", "a" * 31, "-a", "a/b"])
def test_an_agent_whose_snapshots_could_have_no_name_is_refused_at_once(league, agent):
    with pytest.raises(LeagueError, match=r"name '.*-999999': expected 1 to 32 lower-case letters"):
        LeagueLearner(league, LeagueConfig(agent=agent), 0)


def test_a_snapshot_joins_once_and_has_the_one_before_as_its_parent(league, tmp_path):
    learner = join(league)
    assert not learner.snapshot_due(99)
    assert learner.snapshot_due(100)
    for number, samples in ((3, 100), (4, 250)):
        learner.announce(samples)
        checkpoint = saved(tmp_path / f"own{number}", 10 + number)
        name = learner.publish(checkpoint)
        assert (name, learner.publish(checkpoint)) == (f"main-{number}",) * 2, "it was killed before it noted so"
        learner.published(name)
        assert learner.state.announced is None
    learner.refresh()
    assert Counter(learner.draw(2000))["main-4"] > 2000 / 6, "to know whether it beats it"
    assert not learner.snapshot_due(349) and not learner.snapshot_due(350)
    for _ in range(2 * MIN_GAMES):
        learner.record("main-4", 1)
    assert not learner.snapshot_due(349) and learner.snapshot_due(350)
    assert learner.metrics()["last_score"] == pytest.approx(1)
    assert [league.member(name).parent for name in ("main-3", "main-4")] == [None, "main-3"]


def test_a_reset_clears_the_win_rates_and_the_parent(league, tmp_path):
    learner = join(league, LeagueConfig(role="main_exploiter", snapshot_every=100))
    learner.record("main-2", 1)
    learner.announce(100)
    learner.published(learner.publish(saved(tmp_path / "own", 9)))
    assert learner.should_reset()
    learner.reset()
    assert learner.win_rates() == {}
    learner.announce(200)
    assert league.member(learner.publish(saved(tmp_path / "next", 10))).parent is None


def test_a_learner_continues_from_its_state(league):
    learner, other = join(league), join(league)
    learner.draw(7)
    for outcome in (1, 0, -1):
        learner.record("novice@auto", outcome)
    learner.announce(100)
    learner.published("main-2")
    learner.announce(200)
    other.restore(copy.deepcopy(learner.state))
    for each in (learner, other):
        each.refresh()
    assert other.draw(50) == learner.draw(50)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"last": "main-9"}, "has no member 'main-9', which this run has added"),
        ({"handicaps": {}}, r"handicaps: expected \['trivial@auto', .*\], got \[\]"),
    ],
)
def test_a_state_of_another_league_is_refused_and_nothing_is_changed(league, changes, reason):
    learner = join(league)
    before = learner.state
    with pytest.raises(ConfigError, match=reason):
        learner.restore(dataclasses.replace(before, **changes))
    assert learner.state is before
