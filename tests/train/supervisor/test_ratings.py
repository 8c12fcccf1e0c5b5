"""Rating matches, promotions and retirement in a league run."""

import dataclasses
import threading
import time
from types import SimpleNamespace

import pytest

from echelon_env.config.scenario import Scenario
from echelon_env.evaluate.stamps import battle_hash
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import Executor
from echelon_train.league.store.promotion import promote
from echelon_train.league.store.registry import League
from echelon_train.supervisor import ratings
from echelon_train.supervisor.plan import LeaguePlan
from echelon_train.supervisor.ratings import (
    Ratings,
    eligible_policies,
    newest_snapshots,
    promotion_candidates,
    retire_weakest,
)
from train.league.leagues import played, saved
from train.small import small_battle, small_run

KNOWN = LeaguePlan(until_rd=350.0, exploiter=0)
Refused = SimpleNamespace(promotion=None, champion=None, reason="it is refused")


@pytest.fixture
def policies(tmp_path) -> League:
    """The scripted novice, and six policies in the order of their strength, with known ratings."""
    league = League.create(tmp_path / "league")
    for number in range(6):
        kind = "past" if number == 0 else "main" if number < 4 else "exploiter"
        checkpoint = saved(tmp_path / str(number), number)
        parent = "main-1" if kind == "exploiter" else None
        league.add_checkpoint(checkpoint, kind, "start" if number == 0 else None, parent)
    for number, member in enumerate(league.members()[1:], 1):
        wins = 10 * number
        league.record(played(member.name, "novice", (1,) * wins + (-1,) * (120 - wins), number))
    league.rate_matches()
    return league


def names(league):
    return {each.name for each in league.members() if each.state == "active"}


def test_the_weakest_policies_retire(policies):
    lines = []
    assert names(policies) == {
        "novice", "start", "main-1", "main-2", "main-3", "exploiter-1", "exploiter-2"
    }  # fmt: skip
    retire_weakest(policies, LeaguePlan(active=5, start="start"), lines.append)
    assert names(policies) == {"novice", "start", "main-2", "main-3", "exploiter-1", "exploiter-2"}
    assert lines == ["main-1 is retired, the weakest of 6 active policies, of which 5 stay"]
    retire_weakest(policies, LeaguePlan(active=1, start="start"), lines.append)
    assert names(policies) == {"novice", "start", "main-3", "exploiter-2"}, "the start and the newest stay"
    assert [each.name for each in newest_snapshots(policies.members())] == ["main-3", "exploiter-2"]


def test_the_champion_is_never_offered_for_retirement(policies, monkeypatch):
    """Not even the weakest: the league would refuse it, and no other policy would retire in its place."""
    offered, stock = [], League.retire
    monkeypatch.setattr(League, "retire", lambda league, name: offered.append(name) or stock(league, name))
    promote(policies, "main-1", play=None)
    retire_weakest(policies, LeaguePlan(active=1, until_rd=300.0), lambda line: None)
    assert offered == ["start", "main-2", "exploiter-1"]
    assert names(policies) == {"novice", "main-1", "main-3", "exploiter-2"}


def test_the_candidate_has_the_highest_known_conservative_score(policies, tmp_path):
    ranked = ["exploiter-2", "exploiter-1", "main-3", "main-2", "main-1", "start"]
    assert promotion_candidates(policies, KNOWN) == ranked
    stricter = SimpleNamespace(until_rd=1.0, k=1.0, exploiter=0)  # than a plan can be
    assert promotion_candidates(policies, stricter) == [], "no rating is that certain"
    assert promotion_candidates(policies, stricter, ("main-1",)) == ["main-1"], "more matches would not make it certain"
    assert promotion_candidates(League.create(tmp_path / "empty"), KNOWN) == []
    promote(policies, "main-2", play=None)
    assert promotion_candidates(policies, KNOWN) == ["exploiter-2", "exploiter-1", "main-3"]


def test_the_plan_says_how_many_deviations_are_subtracted(policies, monkeypatch):
    """With many of them the certain rating is preferred; they reach the promotion itself."""
    assert promotion_candidates(policies, dataclasses.replace(KNOWN, k=0.0))[0] == "exploiter-2"
    known = policies.ratings()
    uncertain = {name: dataclasses.replace(each, deviation=340.0) for name, each in known.items() if name != "main-3"}
    monkeypatch.setattr(League, "ratings", lambda league: known | uncertain)
    plan = dataclasses.replace(KNOWN, k=3.0)
    assert promotion_candidates(policies, plan)[0] == "main-3"
    asked, lines = [], []
    monkeypatch.setattr(ratings, "promote", lambda league, name, **given: asked.append((name, given["k"])) or Refused)
    work = Ratings(policies, plan, small_run(), None, lines.append)
    work._promote(())
    assert [k for _, k in asked] == [3.0] * 6 and len({*asked}) == 6, "after one that is refused the next plays"
    work._promote(())
    assert len(asked) == 12 and lines == ["it is refused"] * 6, "once for each"


def test_with_exploiters_a_candidate_must_not_lose_more_to_its_own_than_the_champion(policies, tmp_path):
    plan = dataclasses.replace(KNOWN, exploiter=1)
    assert eligible_policies(policies, plan) == [], "no exploiter has played against its victim"
    for number, (victim, wins) in enumerate((("main-1", 12), ("main-2", 20), ("main-3", 13)), 100):
        policies.add_checkpoint(saved(tmp_path / victim, number), "exploiter", f"against-{victim}", victim)
        outcomes = (1,) * 2 * wins + (-1,) * 2 * (20 - wins)
        policies.record(played(f"against-{victim}", victim, outcomes, number))
    assert [each.name for each in eligible_policies(policies, plan)] == ["main-1", "main-2", "main-3"]
    assert promotion_candidates(policies, plan) == ["main-3", "main-2", "main-1"]
    promote(policies, "main-1", play=None)
    assert promotion_candidates(policies, plan) == ["main-3"], "which loses hardly more; main-2 loses all games"
    work = Ratings(policies, plan, small_run(), None, print)
    work._count(())
    assert (work.waited, work.eligible) == (2, {"main-1", "main-2", "main-3"})
    without = Ratings(policies, KNOWN, small_run(), None, print)
    without._count(())
    assert without.waited == 2 and len(without.eligible) > 6, "snapshots of exploiters are not waited for"
    policies.retire("main-3")
    work._count(())
    assert work.waited == 2 and promotion_candidates(policies, plan) == []


def run(league, seconds, until, executor=None, until_rd=150.0, config=None):
    lines = []
    config = config or small_run(battle=small_battle("duel-open", 20))
    plan = LeaguePlan(maps=2, until_rd=until_rd, exploiter=0)
    thread = Ratings(league, plan, config, executor or Executor(), lines.append)
    thread.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until(thread):
        time.sleep(0.05)
    thread.stop()
    assert thread.join(30.0)
    return thread, lines


@pytest.mark.long
def test_members_are_rated_and_the_best_policy_is_promoted(tmp_path, monkeypatch):
    monkeypatch.setattr(ratings, "VALIDATION_MAPS", 2)
    league = League.create(tmp_path / "league")
    league.add_scripted("trivial")
    league.add_checkpoint(saved(tmp_path / "otter", 1), "main", "otter")
    thread, lines = run(league, 60.0, lambda thread: league.champion() is not None, until_rd=300.0)
    assert league.champion().name == "otter" and any("first champion" in line for line in lines)
    assert thread.matches == len(league.matches()) > 0


@pytest.mark.long
def test_exploiters_play_against_the_members_that_they_were_trained_against(tmp_path, monkeypatch):
    monkeypatch.setattr(ratings, "VALIDATION_MAPS", 2)
    league = League.create(tmp_path / "league")
    league.add_checkpoint(saved(tmp_path / "otter", 1), "main", "otter")
    league.add_checkpoint(saved(tmp_path / "heron", 2), "exploiter", "heron", "otter")
    thread, lines = run(league, 60.0, lambda thread: thread.matches >= 3)
    first = league.matches()[0].match
    assert (first.first, first.second, len(first.battles)) == ("heron", "otter", 4)
    assert [line for line in lines if line.startswith("a best response scores ") and line.endswith(" against otter")]
    assert thread.matches == len(league.matches())


def test_matches_are_in_all_scenarios_of_the_learners(policies, monkeypatch):
    """They share the maps of rating matches and of exploiters; for the title each has all."""
    monkeypatch.setattr(ratings, "VALIDATION_MAPS", 8)
    config = small_run(processes=2, battles=6, extra_scenarios=(Scenario("trio", "", small_battle("trio")),))
    jobs = []

    class Playing:
        def run(self, path, given):
            for job in given:
                jobs.append(job)
                outcomes = (1,) * 2 * len(job.seeds)
                match = played(job.first, job.second, outcomes, 1000 + len(jobs))
                found = dataclasses.replace(match.match, config_hash=battle_hash(job.config), scenario=job.scenario)
                yield dataclasses.replace(match, match=found, config=job.config)

    promote(policies, "start", play=None)
    champion = policies.champion().name

    def rated():
        return {job.scenario for job in jobs if len(job.seeds) == 1}

    run(policies, 60.0, lambda _: policies.champion().name != champion and len(rated()) == 2, Playing(), 60.0, config)
    assert policies.champion().name != champion and rated() == {"training battles", "trio"}
    decisive = [(job.first, job.second, job.scenario, len(job.seeds)) for job in jobs if len(job.seeds) != 1]
    both = ("training battles", "trio")
    exploiting = [(*each, name, 4) for each in ratings.exploiters(policies) for name in both]
    assert decisive[:4] == exploiting, "the maps are shared among the scenarios"
    assert decisive[4:6] == [(*decisive[4][:2], name, 8) for name in both]


def test_what_an_exploiter_has_not_played_is_played_later(policies, monkeypatch):
    """After a match in one scenario the run may have been killed."""
    monkeypatch.setattr(ratings, "VALIDATION_MAPS", 8)
    config = small_run(processes=2, battles=6, extra_scenarios=(Scenario("trio", "", small_battle("trio")),))
    work, asked = Ratings(policies, KNOWN, config, None, print), []
    first = played("exploiter-1", "main-1", (1,) * 6, 600)
    policies.record(dataclasses.replace(first, match=dataclasses.replace(first.match, scenario="trio")))

    def validate(exploiter, member, scenario, maps):
        asked.append((exploiter, scenario, maps))
        work.stop()
        return played(exploiter, member, (1,) * 8, 601)

    monkeypatch.setattr(work, "_validate", validate)
    work._measure()
    assert asked == [("exploiter-1", "training battles", 4)], "and no other match begins after a stop"
    assert work._unplayed("exploiter-1", "main-1") == {"training battles": 4, "trio": 1}


def test_an_error_is_reported_and_the_work_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(ratings, "FIRST_PAUSE", 0.05)
    league = League.create(tmp_path / "league")
    league.add_scripted("trivial")
    failures = threading.Semaphore(0)

    class Failing:
        def run(self, path, jobs):
            failures.release()
            raise LeagueError("the worker is gone")
            yield

        def close(self):
            pass

    _, lines = run(league, 20.0, lambda thread: failures._value >= 3, Failing())
    assert failures._value >= 3
    assert lines[0] == "ratings: the worker is gone; tried again in 0.05 s" and "0.1 s" in lines[1]


def test_a_damaged_member_plays_no_matches(tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("trivial")
    for number, name in enumerate(("otter", "heron")):
        league.add_checkpoint(saved(tmp_path / name, number), "past", name)
    file = league.member_policy("heron") / WEIGHTS_FILE
    file.write_bytes(b"altered" + file.read_bytes()[7:])
    thread, lines = run(league, 60.0, lambda thread: thread.matches >= 8)
    assert thread.matches >= 8 and len(league.matches("heron")) == 0
    assert len([line for line in lines if "a member plays no matches: 'heron' cannot be used" in line]) == 1


def test_a_snapshot_that_joins_meanwhile_is_no_error(policies, tmp_path, monkeypatch):
    stock = League.ratings

    def ratings(league):
        found = stock(league)
        if "late" not in found:
            league.add_checkpoint(saved(tmp_path / "late", 20), "main", "late")
        return found

    monkeypatch.setattr(League, "ratings", ratings)
    assert promotion_candidates(policies, KNOWN)[0] == "exploiter-2"
    retire_weakest(policies, LeaguePlan(active=6, until_rd=300.0), lambda line: None)
