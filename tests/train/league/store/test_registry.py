import dataclasses
import math
import shutil

import pytest

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate import BASELINES
from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.matchmaking.provisional import rate_members
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.ratings.results import Results
from echelon_train.league.store.database import writing
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League
from echelon_train.tensor_files import weights_of
from train.damaging import change_weights
from train.league.leagues import CONFIG, change, match, number_uuid, played, saved, uuids


def test_a_new_league(tmp_path):
    made = League.create(tmp_path / "a" / "league", LeagueSettings(anchor="competent", tau=0.3))
    opened = League.open(made.path)
    assert opened.settings == LeagueSettings(anchor="competent", tau=0.3)
    assert [(each.name, each.kind, each.state, each.origin) for each in opened.members()] == [
        ("competent", "scripted", "active", {"level": "competent"})
    ]
    assert opened.matches() == [] and opened.history() == {} and opened.pair_scores() == {}
    assert opened.ratings() == {"competent": Rating(1500.0, 0.0)}


def test_a_checkpoint_becomes_a_member(league, tmp_path):
    source = saved(tmp_path / "source", seed=1, steps=700)
    first = league.add_checkpoint(source, "main")
    second = league.add_checkpoint(saved(tmp_path / "other", seed=2), "exploiter", "nemesis", first.name)
    assert (first.id, first.name, first.kind, first.parent, first.age) == (4, "main-1", "main", None, 700)
    assert (second.name, second.kind, second.parent) == ("nemesis", "exploiter", first.name)
    assert first.origin == {"checkpoint": str(source), "opponent": "novice"}
    assert league.members()[-2:] == [first, second] and league.member("nemesis") == second
    original = load_checkpoint(source)
    shutil.rmtree(source)
    loaded = load_checkpoint(league.member_policy(first.name))
    assert (loaded.battle, loaded.network, loaded.steps) == (original.battle, original.network, 700)
    for name, tensor in weights_of(loaded.policy).items():
        assert tensor.equal(weights_of(original.policy)[name])


def test_a_policy_from_a_folder_with_an_unprintable_name_joins(league, tmp_path):
    member = league.add_checkpoint(saved(tmp_path / "my\u00a0run\x1b[31m"), "main", "mine")
    assert member.origin["checkpoint"].endswith("my?run?[31m")
    assert league.member("mine").origin == member.origin and fsck(league.path) == []


def test_a_damaged_checkpoint_does_not_join(league, tmp_path):
    (saved(tmp_path / "a") / WEIGHTS_FILE).write_bytes(b"")
    change_weights(saved(tmp_path / "b"), lambda weights: weights.pop("value_net.bias"))  # no player needs it
    for name, reason in (("a", "truncated"), ("none", "no such file"), ("b", "missing or unknown tensors: value_net")):
        with pytest.raises(CheckpointError, match=reason):
            league.add_checkpoint(tmp_path / name, "main")
    assert len(league.members()) == 3


def test_retiring(league):
    league.retire("expert")
    league.retire("expert")
    assert league.member("expert").state == "retired"
    assert league.record(played("expert", "novice", number=8)), "a match in progress"
    with pytest.raises(LeagueError, match="'novice' is the anchor"):
        league.retire("novice")
    with pytest.raises(LeagueError, match="no member 'exprt'; did you mean 'expert'"):
        league.retire("exprt")


def test_a_match_with_a_policy_is_read_with_the_policys_identity(league, tmp_path):
    member = league.add_checkpoint(saved(tmp_path / "a", steps=5), "main", "mine")
    identity = {"checkpoint": "a", "weights_sha256": member.weights_sha256}
    given = played("mine", "expert", number=9)
    league.record(dataclasses.replace(given, match=dataclasses.replace(given.match, identities=(identity, {}))))
    pins = {"weights_sha256": member.weights_sha256, "steps": 5}
    assert league.matches()[-1].match == dataclasses.replace(given.match, identities=(pins, {}))


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
    after = rate_members(start, Results(games), Results(games), pinned=["novice"])
    assert league.ratings() == after
    league.record(played("expert", "novice", (1, 1), 4))
    assert league.ratings() == after, "until the period is closed"
    assert league.rate_matches()
    more = [("expert", "novice", 1.0)]
    later = rate_members(after, Results(more), Results(games + more), pinned=["novice"])
    assert league.ratings() == later
    assert league.history() == {1: after, 2: later}
    assert league.history(["expert"], [2, 9]) == {2: {"expert": later["expert"]}}
    league.add_scripted("veteran")
    assert league.ratings()["veteran"] == Rating()


def test_matches_are_rated_once_and_no_period_is_empty(league):
    league.record(played("novice", "expert", (1, -1) * 130, 50))  # so many that the expert is no newcomer
    assert league.rate_matches()
    league.record(played("expert", "trivial", (1, 1), 51))
    assert league.rate_matches() and league.rebuild() == 0, "each match counts in one period"
    periods = [*league.history()]
    assert not league.rate_matches()
    assert [*league.history()] == periods and not league.unrated_matches()


def test_a_period_without_games_of_theirs_makes_learners_less_certain(league, tmp_path):
    old = league.add_checkpoint(saved(tmp_path / "1", 1), "main").name
    new = league.add_checkpoint(saved(tmp_path / "2", 2), "main", parent=old).name
    league.add_checkpoint(saved(tmp_path / "3", 3), "exploiter", parent=new)
    league.add_checkpoint(saved(tmp_path / "4", 4), "past")
    policies = {each.name for each in league.members() if each.kind != "scripted"}
    league.record(played(new, "expert", (1, 1, -1, -1) * 10, 10))

    def drifted(number):
        """The policies that a period of others changes."""
        before = league.ratings()
        league.record(played("trivial", "expert", (1, 1), number))
        assert league.rate_matches()
        after = league.ratings()
        changed = {name for name in policies if after[name] != before[name]}
        return {name for name in changed if after[name].deviation > before[name].deviation}

    assert drifted(11) == set(), "it plays"
    assert drifted(12) == {new}, "none with a newer snapshot, no exploiter, none that never trains"
    uncertain = league.ratings()[new].deviation
    league.record(played(new, "expert", (1, 1, -1, -1), 13))
    assert league.rate_matches() and league.ratings()[new].deviation < uncertain, "until it plays again"
    league.retire(new)
    assert drifted(14) == set()


def test_standings(league):
    league.add_scripted("veteran")
    table, ratings = league.standings(), league.ratings()
    assert [each.member.name for each in table] == ["expert", "novice", "veteran", "trivial"]
    assert all(each.rating == ratings[each.member.name] for each in table)
    assert [(each.games, each.score) for each in table if each.games] == [(4, 0.75), (4, 0.625), (4, 0.125)]
    assert math.isnan(table[2].score)


def test_rebuilding_gives_the_same_to_the_bit(league, tmp_path):
    league.add_checkpoint(saved(tmp_path / "a"), "main", "learner")
    for n in range(4, 10):
        league.record(played("learner", ("novice", "expert", "trivial")[n % 3], (1, 0, -1, n % 2), n))
        league.rate_matches()
    league.retire("learner")
    league.record(played("trivial", "expert", number=10))
    league.rate_matches()
    before = league.history()
    assert league.rebuild() == 0
    assert league.history() == before
    with writing(league.path) as connection:
        connection.execute("DELETE FROM ratings WHERE period = 3")
        connection.execute("UPDATE ratings SET rating = rating + 1 WHERE period = 5 AND member = 2")
    assert league.rebuild() == 5
    assert league.history() == before


def test_a_rating_that_cannot_be_is_damage(league):
    league.record(played("trivial", "expert", number=10))
    change(league, "UPDATE ratings SET rating = 5000")
    for call in (league.ratings, league.standings, league.history, league.rate_matches):
        with pytest.raises(DamagedLeagueError, match=r"period \d: rating of .*: rebuild the ratings"):
            call()
    assert league.rebuild() > 0 and league.ratings()


IMPOSSIBLE = (
    [({"kind": kind}, "kind: expected one of main, exploiter") for kind in ("scripted", "x")]
    + [({"name": name}, "name .*: expected 1 to 32") for name in ("", "Owl", "-owl", "owl\n", "../owl", "o" * 33, "ö")]
    + [({"name": name}, "is the name of a built-in player") for name in (*BASELINES, "untrained", "self")]
    + [
        ({"name": "one"}, "name 'one': another member has it"),
        ({"parent": "on"}, "no member 'on'; did you mean 'one'"),
        ({"path": "one", "name": "two"}, "its weights are those of the member 'one'"),
    ]
)  # fmt: skip


def test_impossible_members_and_settings(league, tmp_path):
    for seed, name in enumerate(("one", "other")):
        saved(tmp_path / name, seed)
    league.add_checkpoint(tmp_path / "one", "main", "one")
    before = sorted(league.path.rglob("*"))
    for changes, reason in IMPOSSIBLE:
        options = {"kind": "main", "path": "other", **changes}
        with pytest.raises(LeagueError, match=reason):
            league.add_checkpoint(tmp_path / options.pop("path"), **options)
    for level, reason in (("expert", "'expert' is a member already"), ("expart", "did you mean 'expert'")):
        with pytest.raises(LeagueError, match=reason):
            league.add_scripted(level)
    with pytest.raises(LeagueError, match="'expert' is scripted: it has no policy"):
        league.member_policy("expert")
    with pytest.raises(FileExistsError):
        League.create(league.path)
    assert len(league.members()) == 4 and sorted(league.path.rglob("*")) == before
    for settings in ({"anchor": "absent"}, {"tau": 0.0}, {"tau": "big"}, {"anchor": 3}):
        with pytest.raises(ConfigError):
            LeagueSettings(**settings)


def test_what_is_recorded_is_read(league):
    again = played("novice", "expert", (1, -1, 0, 0), 7, learner="expert", worker="b", played_at="1999")
    assert league.record(again)
    assert league.matches()[-1].match == again.match
    assert dataclasses.replace(league.matches()[-1], config=CONFIG) == again
    assert [each.uuid for each in league.matches("trivial")] == [number_uuid(1), number_uuid(3)]
    assert [each.uuid for each in league.matches("expert", "novice")] == [number_uuid(2), number_uuid(7)]
    assert league.match(number_uuid(7)) == league.matches()[-1]
    assert [each.uuid for each in league.matches(last=2)] == [number_uuid(3), number_uuid(7)]
    league.record(dataclasses.replace(played("novice", "expert", number=9), uuid="f" * 8 + number_uuid(9)[8:]))
    assert league.match("ff").match == match("novice", "expert", number=9)
    assert [each.uuid for each in league.matches("trivial", last=1)] == [number_uuid(3)]
    assert league.count_matches() == len(league.matches(last=9)) == 5 and league.unrated_matches() == 2
    for prefix, count in (("0000", 4), ("a%", 0)):
        with pytest.raises(LeagueError, match=f"expected the uuid of a match or a unique prefix, {count} matches"):
            league.match(prefix)
    with pytest.raises(LeagueError, match="no member 'absent'"):
        league.matches("absent")


def test_a_match_counts_once(league):
    """A match that is played again ends the same way: it is no new evidence."""
    before = league.pair_scores(), uuids(league)
    original = {"first": "novice", "second": "trivial", "outcomes": (1, 1, 0, 1), "number": 1}
    assert not league.record(played(**original))
    assert not league.record(played(**original, worker="b", played_at="later", stamp={}))
    for changes in ({"outcomes": (1, 1, 0, 0)}, {"first": "trivial", "second": "novice"}, {"learner": "novice"}):
        with pytest.raises(LeagueError, match=f"match {number_uuid(1)}: is already recorded, with other content"):
            league.record(played(**{**original, **changes}))
    with pytest.raises(LeagueError, match=f"match {number_uuid(50)}: is match {number_uuid(1)} played again"):
        league.record(dataclasses.replace(played(**original), uuid=number_uuid(50), worker="b"))
    assert (league.pair_scores(), uuids(league)) == before
