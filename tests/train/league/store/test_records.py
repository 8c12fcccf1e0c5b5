import dataclasses
import json
import math

import pytest

from echelon_env import make_config
from echelon_env.evaluate import baseline, evaluation_seed, play_match
from echelon_env.evaluate.stamps import battle_hash
from echelon_env.evaluate.statistics import map_scores
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import records
from echelon_train.league.store.database import reading
from echelon_train.league.store.records import PlayedMatch, read_rows, to_row
from echelon_train.league.store.registry import League
from train.league.leagues import CONFIG, change, match, number_uuid, played


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    league = League.create(tmp_path_factory.mktemp("leagues") / "league")
    league.add_scripted("trivial")
    return {member.name: member for member in league.members()}


def changed(**changes):
    """A match with changed fields."""
    given = played("novice", "trivial", (1, 0, -1, -1), 5)
    return dataclasses.replace(given, match=dataclasses.replace(given.match, **changes))


def with_battle(place, **changes):
    battles = [*changed().match.battles]
    battles[place] = dataclasses.replace(battles[place], **changes)
    return changed(battles=tuple(battles))


def test_a_match_that_was_played_can_be_played_again_from_its_record(tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("expert")
    seeds = [evaluation_seed(3, n) for n in range(2)]
    original = play_match(baseline("expert"), baseline("novice"), CONFIG, seeds, scenario="short duel")
    given = PlayedMatch(number_uuid(1), original, CONFIG)
    league.record(given)
    found = league.match(number_uuid(1))
    assert found.match == original
    assert found.stamp.keys() >= {"engine_hash", "opponents_hash", "package"}
    players = [baseline(league.member(name).origin["level"]) for name in (found.match.first, found.match.second)]
    maps = [battle.seed for battle in found.match.battles[::2]]
    assert play_match(*players, found.config, maps, scenario=found.match.scenario) == original


def test_scores_are_those_of_the_statistics(tmp_path):
    league = League.create(tmp_path / "league")
    league.add_scripted("expert")
    outcomes = (1, 1, 1, 0, 1, -1, 0, 0, 0, -1, -1, -1)
    league.record(played("novice", "expert", outcomes, 1))
    (scores,) = league.pair_scores().values()
    assert scores == map_scores(match("novice", "expert", outcomes)).tolist() == [1.0, 0.75, 0.5, 0.5, 0.25, 0.0]
    assert league.results().of("expert") == {"novice": (6, 3.0)}


def test_the_games_of_a_pair_stay_in_their_order_from_the_side_of_the_older_member(tmp_path):
    league = League.create(tmp_path / "league")
    for name in ("expert", "trivial"):
        league.add_scripted(name)
    league.record(played("expert", "novice", (1, 1, -1, 0), 1))
    league.record(played("trivial", "expert", (0, 0), 2))
    league.record(played("novice", "expert", (1, 1), 3))
    assert league.pair_scores() == {("novice", "expert"): [0.0, 0.75, 1.0], ("expert", "trivial"): [0.5]}
    assert league.results().of("novice") == {"expert": (3, 1.75)}


def test_the_content_of_a_match_does_not_name_its_worker(members):
    given = played("novice", "trivial", (1, 0), 5)
    content = to_row(given, members).content_sha256
    for same in ({"worker": "b"}, {"played_at": "now"}, {"stamp": {}}, {"uuid": number_uuid(6)}):
        assert to_row(dataclasses.replace(given, **same), members).content_sha256 == content
    others = [
        played("novice", "trivial", (1, 1), 5),
        played("trivial", "novice", (1, 0), 5),
        dataclasses.replace(given, learner="novice"),
        dataclasses.replace(given, match=dataclasses.replace(given.match, scenario="x")),
        dataclasses.replace(given, match=dataclasses.replace(given.match, action_modes=("x", "x"))),
    ]
    assert len({content, *(to_row(other, members).content_sha256 for other in others)}) == 6


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (changed(first="absent"), "'absent' is no member of the league"),
        (changed(second="absent"), "'absent' is no member of the league"),
        (changed(second="novice"), "expected two members, got 'novice' against itself"),
        (changed(identities=({"weights_sha256": "0" * 64}, {})), "'novice' played with other weights than those"),
        (dataclasses.replace(changed(), learner="expert"), "learner: expected one of the two players or none"),
        (dataclasses.replace(changed(), uuid="5"), "uuid: expected one like '0000.*', got '5'"),
        (dataclasses.replace(changed(), uuid=number_uuid(5).upper() + "A"), "uuid: expected"),
        (dataclasses.replace(changed(), uuid=None), "uuid: expected"),
        (changed(battles=()), "expected two battles of each of at least one map"),
        (changed(battles=changed().match.battles[:3]), "expected two battles"),
        (changed(battles=changed().match.battles[::-1]), "expected two battles"),
        (changed(battles=changed().match.battles[:2] * 2), "expected two battles"),
        (with_battle(0, outcome=2), "outcomes of 1, 0 or -1"),
        (with_battle(1, side=0), "expected two battles"),
        (with_battle(1, seed=77), "expected two battles"),
        (with_battle(1, map_hash="x"), "expected two battles"),
        (with_battle(0, seed=-1), r"seed: expected an integer in \[0, 2\*\*64\), got -1"),
        (with_battle(2, seed=500), "expected two battles"),
        (with_battle(3, seconds=math.nan), "holds a value that is no plain data"),
        (with_battle(3, reason={1}), "holds a value that is no plain data"),
        (changed(config_hash=battle_hash(make_config(CONFIG, max_steps=13))), "was not played with the configuration"),
    ],
)
def test_incomplete_matches_and_players_that_are_no_members_are_refused(members, given, reason):
    with pytest.raises(LeagueError, match=reason):
        to_row(given, members)


def test_a_configuration_of_another_release(tmp_path):
    """Its matches still count, but cannot be played again here."""
    league = League.create(tmp_path / "league")
    league.add_scripted("trivial")
    league.record(played("novice", "trivial"))
    change(league, "UPDATE configs SET document = '{\"gravity\": 3}'")
    assert league.pair_scores() == {("novice", "trivial"): [1.0]}
    with pytest.raises(LeagueError, match=r"config .*: cannot be used by this release: unknown config key 'gravity'"):
        league.matches()


def test_rewards_are_no_part_of_a_configuration(members):
    """A battle's course does not depend on them, and two learners may have different ones."""
    given = played("novice", "trivial")
    other = make_config(CONFIG, rewards={"damage": 7.5})
    assert other != CONFIG
    row = to_row(dataclasses.replace(given, config=other), members)
    assert row.content_sha256 == to_row(given, members).content_sha256


def test_most_rows_need_not_be_parsed_to_compare_their_hash(league, monkeypatch):
    with reading(league.path) as connection:
        rows = [*read_rows(connection)]
        hashes = dict(connection.execute("SELECT uuid, content_sha256 FROM matches"))
    row = rows[0]
    loose = dataclasses.replace(row, document=json.dumps(dict(reversed(row.parsed.items()))))
    assert loose.document != row.document and loose.has_content(hashes[row.uuid]), "as another release may write it"
    assert not dataclasses.replace(row, second="expert").has_content(hashes[row.uuid])
    monkeypatch.setattr(records, "parse", None)
    assert all(each.has_content(hashes[each.uuid]) for each in rows)
