import dataclasses
import datetime
import math
import re
import shutil

import pytest

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import BASELINES
from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import load_checkpoint, save_in_run
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.matchmaking.provisional import rate_newcomers
from echelon_train.league.ratings.glicko2 import Rating, rate_period
from echelon_train.league.ratings.payoffs import payoffs
from echelon_train.league.ratings.results import Results
from echelon_train.league.store import database, members
from echelon_train.league.store.database import reading, writing
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.members import check_name
from echelon_train.league.store.periods import LeagueSettings, read_periods
from echelon_train.league.store.registry import League
from echelon_train.tensor_files import weights_of
from train.damaging import change_weights
from train.league.leagues import CONFIG, change, match, number_uuid, played, saved, small_league, uuids


def test_a_new_league(tmp_path):
    made = League.create(tmp_path / "a" / "league", LeagueSettings(anchor="competent", tau=0.3))
    opened = League.open(made.path)
    assert opened.settings == LeagueSettings(anchor="competent", tau=0.3)
    assert [(each.name, each.kind, each.state, each.origin) for each in opened.members()] == [
        ("competent", "scripted", "active", {"level": "competent"})
    ]
    assert opened.matches() == [] and opened.history() == {} and opened.pair_scores() == {}
    assert opened.ratings() == {"competent": Rating(1500.0, 0.0)}


def test_a_league_is_never_overwritten(league):
    with pytest.raises(FileExistsError):
        League.create(league.path)
    assert len(League.open(league.path).members()) == 3


@pytest.mark.parametrize("settings", [{"anchor": "absent"}, {"tau": 0.0}, {"tau": "big"}, {"anchor": 3}])
def test_impossible_settings(settings):
    with pytest.raises(ConfigError):
        LeagueSettings(**settings)


def test_scripted_members(league):
    with pytest.raises(LeagueError, match="'expert' is a member already"):
        league.add_scripted("expert")
    with pytest.raises(LeagueError, match="unknown scripted player 'expart'; did you mean 'expert'"):
        league.add_scripted("expart")
    with pytest.raises(LeagueError, match="'expert' is scripted: it has no policy"):
        league.member_policy("expert")


def test_a_checkpoint_becomes_a_member(league, tmp_path):
    source = saved(tmp_path / "source", seed=1, steps=700)
    first = league.add_checkpoint(source, "main")
    second = league.add_checkpoint(saved(tmp_path / "other", seed=2), "main_exploiter", "nemesis", first.name)
    assert (first.id, first.name, first.kind, first.parent, first.age) == (4, "main-1", "main", None, 700)
    assert (second.name, second.kind, second.parent) == ("nemesis", "main_exploiter", first.name)
    assert first.origin == {"checkpoint": str(source), "opponent": "novice"}
    assert league.members()[-2:] == [first, second] and league.member("nemesis") == second
    original = load_checkpoint(source)
    shutil.rmtree(source)
    loaded = load_checkpoint(league.member_policy(first.name))
    assert (loaded.battle, loaded.network, loaded.steps) == (original.battle, original.network, 700)
    for name, tensor in weights_of(loaded.policy).items():
        assert tensor.equal(weights_of(original.policy)[name])


def test_a_policy_from_a_folder_with_an_unprintable_name_joins(league, tmp_path):
    folder = saved(tmp_path / "my\u00a0run\x1b[31m")
    member = league.add_checkpoint(folder, "main", "mine")
    assert member.origin["checkpoint"].endswith(r"my\xa0run\x1b[31m")
    assert League.open(league.path).member("mine").origin == member.origin
    assert fsck(league.path) == []


def test_a_run_joins_with_its_last_checkpoint(league, tmp_path):
    example = load_checkpoint(saved(tmp_path / "a", seed=3))
    save_in_run(tmp_path / "run", dataclasses.replace(example, steps=1))
    folder = save_in_run(tmp_path / "run", dataclasses.replace(example, steps=2))
    member = league.add_checkpoint(tmp_path / "run", "past")
    assert (member.age, member.origin["checkpoint"]) == (2, str(folder))
    assert sorted(file.name for file in league.member_policy(member.name).iterdir()) == [JSON_FILE, WEIGHTS_FILE]


def test_the_same_weights_join_once(league, tmp_path):
    first = league.add_checkpoint(saved(tmp_path / "a", seed=1), "main")
    with pytest.raises(LeagueError, match=f"its weights are those of the member '{first.name}'"):
        league.add_checkpoint(saved(tmp_path / "b", seed=1, steps=999), "past", "another")
    assert len(league.members()) == 4


@pytest.mark.parametrize(
    ("kind", "name", "parent", "reason"),
    [
        ("scripted", None, None, "kind: expected one of main, main_exploiter, league_exploiter, past, got 'scripted'"),
        ("boss", None, None, "kind: expected one of"),
        ("main", "A!", None, "name 'A!': expected 1 to 32"),
        ("main", "expert", None, "a built-in player"),
        ("main", "one", None, "name 'one': another member has it"),
        ("main", None, "on", "no member 'on'; did you mean 'one'"),
    ],
)
def test_impossible_members(league, tmp_path, kind, name, parent, reason):
    league.add_checkpoint(saved(tmp_path / "a", seed=1), "main", "one")
    before = sorted(league.path.rglob("*"))
    with pytest.raises(LeagueError, match=reason):
        league.add_checkpoint(saved(tmp_path / "b", seed=2), kind, name, parent)
    assert len(league.members()) == 4
    assert sorted(league.path.rglob("*")) == before


def test_a_damaged_checkpoint_does_not_join(league, tmp_path):
    folder = saved(tmp_path / "a")
    (folder / WEIGHTS_FILE).write_bytes(b"")
    with pytest.raises(CheckpointError, match="truncated"):
        league.add_checkpoint(folder, "main")
    with pytest.raises(CheckpointError, match="no such file"):
        league.add_checkpoint(tmp_path / "none", "main")
    change_weights(saved(tmp_path / "b"), lambda weights: weights.pop("value_net.bias"))  # no player needs it
    with pytest.raises(CheckpointError, match="missing or unknown tensors: value_net"):
        league.add_checkpoint(tmp_path / "b", "main")
    assert len(league.members()) == 3


def test_a_member_whose_files_are_not_its_own_cannot_be_used(league, tmp_path):
    member = league.add_checkpoint(saved(tmp_path / "a"), "main")
    (league.member_policy(member.name) / WEIGHTS_FILE).write_bytes(b"")
    with pytest.raises(LeagueError, match=f"'{member.name}' cannot be used: .*{WEIGHTS_FILE}: altered: its SHA-256 is"):
        league.member_policy(member.name)


def test_retiring(league):
    league.retire("expert")
    league.retire("expert")
    assert league.member("expert").state == "retired"
    assert league.record(played("expert", "novice", number=8)), "a match in progress"
    with pytest.raises(LeagueError, match="'novice' is the anchor"):
        league.retire("novice")
    with pytest.raises(LeagueError, match="no member 'exprt'; did you mean 'expert'"):
        league.retire("exprt")


def test_what_is_recorded_is_read(league):
    again = played("novice", "expert", (1, -1, 0, 0), 7, learner="expert", worker="b", played_at="1999")
    assert league.record(again)
    assert league.matches()[-1].match == again.match
    assert dataclasses.replace(league.matches()[-1], config=CONFIG) == again
    assert [each.uuid for each in league.matches("trivial")] == [number_uuid(1), number_uuid(3)]
    assert [each.uuid for each in league.matches("expert", "novice")] == [number_uuid(2), number_uuid(7)]
    assert league.match(number_uuid(7)) == league.matches()[-1]
    with pytest.raises(LeagueError, match="no member 'absent'"):
        league.matches("absent")


def test_a_match_is_found_by_a_prefix_of_its_uuid(league):
    league.record(dataclasses.replace(played("novice", "expert", number=9), uuid="f" * 8 + number_uuid(9)[8:]))
    assert league.match("ff").match == match("novice", "expert", number=9)
    with pytest.raises(
        LeagueError, match="match '0000': expected the uuid of a match or a unique prefix, 3 matches have it"
    ):
        league.match("0000")
    with pytest.raises(LeagueError, match=r"match 'a%': .*, 0 matches have it"):
        league.match("a%")


def test_a_match_with_a_policy_is_read_with_the_policys_identity(league, tmp_path):
    member = league.add_checkpoint(saved(tmp_path / "a", steps=5), "main", "mine")
    identity = {"checkpoint": "a", "weights_sha256": member.weights_sha256}
    given = played("mine", "expert", number=9)
    league.record(dataclasses.replace(given, match=dataclasses.replace(given.match, identities=(identity, {}))))
    pins = {"weights_sha256": member.weights_sha256, "steps": 5}
    assert league.matches()[-1].match == dataclasses.replace(given.match, identities=(pins, {}))


def test_a_match_delivered_twice_counts_once(league):
    before = league.pair_scores(), uuids(league)
    assert not league.record(played("novice", "trivial", (1, 1, 0, 1), 1))
    assert not league.record(played("novice", "trivial", (1, 1, 0, 1), 1, worker="b", played_at="later", stamp={}))
    assert (league.pair_scores(), uuids(league)) == before


@pytest.mark.parametrize(
    "other",
    [
        played("novice", "trivial", (1, 1, 0, 0), 1),
        played("trivial", "novice", (1, 1, 0, 1), 1),
        played("novice", "trivial", (1, 1, 0, 1), 1, learner="novice"),
        played("novice", "trivial", (1, 1, 0, 1), 1, padding=1),
    ],
)
def test_another_match_with_the_same_uuid_is_refused(league, other):
    with pytest.raises(LeagueError, match=f"match {number_uuid(1)}: is already recorded, with other content"):
        league.record(other)
    assert league.matches()[0].match == match("novice", "trivial", (1, 1, 0, 1), 1)


def test_a_match_that_is_played_again_is_no_other_match(league):
    """Its battles would end the same way, and are no new evidence."""
    before = uuids(league)
    again = dataclasses.replace(played("novice", "trivial", (1, 1, 0, 1), 1), uuid=number_uuid(50), worker="b")
    with pytest.raises(LeagueError, match=f"match {number_uuid(50)}: is match {number_uuid(1)} played again"):
        league.record(again)
    assert uuids(league) == before


def test_scores_of_pairs(league):
    league.record(played("novice", "expert", (1, 1), 4))
    scores = league.pair_scores()
    assert scores == {
        ("novice", "trivial"): [1.0, 0.75],
        ("novice", "expert"): [0.25, 0.5, 1.0],
        ("trivial", "expert"): [0.0, 0.25],
    }
    matrix = payoffs([member.name for member in league.members()], scores)
    assert matrix.games.sum() == 2 * 7


def test_a_period_rates_what_was_played_since_the_last_one(league):
    start = {"novice": Rating(1500.0, 0.0), "trivial": Rating(), "expert": Rating()}
    games = [
        ("novice", "trivial", 1.0),
        ("novice", "trivial", 0.75),
        ("expert", "novice", 0.75),
        ("expert", "novice", 0.5),
        ("trivial", "expert", 0.0),
        ("trivial", "expert", 0.25),
    ]
    after = rate_newcomers(rate_period(start, games, pinned=["novice"]), Results(games), ["novice"])
    assert league.ratings() == league.ratings(1) == after
    league.record(played("expert", "novice", (1, 1), 4))
    assert league.ratings() == after, "until the period is closed"
    assert league.close_period() == 2
    more = [("expert", "novice", 1.0)]
    later = rate_newcomers(rate_period(after, more, pinned=["novice"]), Results(games + more), ["novice"])
    assert league.ratings() == later
    assert league.history() == {1: after, 2: later}
    for period in (0, 3, -1):
        with pytest.raises(LeagueError, match=f"period {period}: expected one of the 2 that are closed"):
            league.ratings(period)


def test_the_first_period_may_be_empty(tmp_path):
    league = League.create(tmp_path / "league")
    assert league.close_period() == 1
    assert league.ratings(1) == {"novice": Rating(1500.0, 0.0)}


def test_matches_are_rated_once_and_no_period_is_empty(league):
    league.record(played("novice", "expert", (1, 1), 50))
    assert league.rate_matches()
    periods = [*league.history()]
    assert not league.rate_matches()
    assert [*league.history()] == periods and not league.unrated_matches()


def test_a_period_without_games_makes_learners_less_certain(league, tmp_path):
    old = league.add_checkpoint(saved(tmp_path / "1", 1), "main").name
    new = league.add_checkpoint(saved(tmp_path / "2", 2), "main", parent=old).name
    league.add_checkpoint(saved(tmp_path / "3", 3), "main_exploiter", parent=new)
    past = league.add_checkpoint(saved(tmp_path / "4", 4), "past").name
    left_behind = league.add_checkpoint(saved(tmp_path / "5", 5), "league_exploiter").name
    exploiter = league.add_checkpoint(saved(tmp_path / "6", 6), "league_exploiter").name
    league.close_period()
    before = league.ratings()
    league.close_period()
    after = league.ratings()
    drifted = {name for name in before if after[name] != before[name]}
    assert drifted == {new, exploiter}, "none with a newer snapshot, none that was reset, and none that never trains"
    assert all(after[name].deviation > before[name].deviation for name in drifted)
    assert {past, old, left_behind} <= before.keys()
    league.retire(new)
    league.close_period()
    assert {name for name in after if league.ratings()[name] != after[name]} == {exploiter}


def test_a_member_that_joined_since_is_rated_as_a_newcomer(league):
    league.add_scripted("veteran")
    assert league.ratings()["veteran"] == Rating()
    assert "veteran" not in league.ratings(1)


def test_standings(league):
    league.add_scripted("veteran")
    table = league.standings()
    assert [each.member.name for each in table] == ["expert", "novice", "veteran", "trivial"]
    ratings = league.ratings()
    assert all(each.rating == ratings[each.member.name] for each in table)
    games = {each.member.name: (each.games, each.score) for each in table if each.games}
    assert games == {"expert": (4, 0.75), "novice": (4, 0.625), "trivial": (4, 0.125)}
    assert math.isnan(table[2].score)


def test_a_clock_that_goes_backwards_changes_no_order_and_no_rating(league, tmp_path, monkeypatch):
    class Clock(datetime.datetime):
        present = 2020

        @classmethod
        def now(cls, tz=None):
            cls.present -= 1
            return datetime.datetime(cls.present, 1, 1, tzinfo=tz)

    usual = small_league(tmp_path / "usual")
    monkeypatch.setattr(members, "datetime", type("module", (), {"datetime": Clock, "UTC": datetime.UTC}))
    for n in (4, 5, 6):
        for each, year in ((league, 2020 - n), (usual, 2020 + n)):
            each.record(played("expert", "novice", (1, n % 2), n, played_at=f"{year}-01-01T00:00:00+00:00"))
            each.close_period()
    league.add_scripted("veteran")
    league.add_scripted("competent")
    assert uuids(league) == [number_uuid(n) for n in (1, 2, 3, 4, 5, 6)]
    assert [member.name for member in league.members()] == ["novice", "trivial", "expert", "veteran", "competent"]
    joined = [member.created_at for member in league.members()]
    with reading(league.path) as connection:
        closed = [period.closed_at for period in read_periods(connection)]
    assert joined[-1] < joined[-2] < closed[-1] < closed[-2] < closed[-3] < closed[0], "the clock goes backwards"
    assert league.history() == usual.history()
    assert league.rebuild() == 0


def test_rebuilding_gives_the_same_to_the_bit(league, tmp_path):
    league.add_checkpoint(saved(tmp_path / "a"), "main", "learner")
    for n in range(4, 10):
        league.record(played("learner", ("novice", "expert", "trivial")[n % 3], (1, 0, -1, n % 2), n))
        league.close_period()
    league.retire("learner")
    league.close_period()
    before = league.history()
    assert league.rebuild() == 0
    assert league.history() == before
    with writing(league.path) as connection:
        connection.execute("DELETE FROM ratings WHERE period = 3")
        connection.execute("UPDATE ratings SET rating = rating + 1 WHERE period = 5 AND member = 2")
    assert league.rebuild() == 5
    assert league.history() == before


@pytest.mark.parametrize("name", ["", "Owl", "a b", "-owl", "owl\n", "../owl", "o" * 33, "ö"])
def test_impossible_names_are_refused(name):
    with pytest.raises(LeagueError, match=rf"name {re.escape(repr(name))}: expected 1 to 32 lower-case letters"):
        check_name(name)


@pytest.mark.parametrize("name", [*BASELINES, "untrained", "self"])
def test_names_of_other_players_are_refused(name):
    with pytest.raises(LeagueError, match=f"name '{name}': is the name of a built-in player"):
        check_name(name)


def test_a_full_league_says_so_and_can_still_be_read(league, monkeypatch):
    most = sum(map(len, league.history().values())) + len(league.members())
    monkeypatch.setitem(database.MAX_ROWS, "ratings", most)
    league.close_period()
    with pytest.raises(LeagueError, match=f"the league is full, with {most} ratings of at most {most}: begin another"):
        league.close_period()
    assert sum(map(len, league.history().values())) == most


def test_a_rating_that_cannot_be_is_damage(league):
    league.close_period()
    change(league, "UPDATE ratings SET rating = 5000")
    for call in (league.ratings, league.standings, league.history, league.close_period):
        with pytest.raises(DamagedLeagueError, match=r"period \d: rating of .*: rebuild the ratings"):
            call()
    assert league.rebuild() > 0
    assert league.ratings()
