import dataclasses
import math

import pytest

from echelon_env import make_config
from echelon_env.evaluate.stamps import battle_hash
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.records import to_row
from echelon_train.league.store.registry import League
from train.league.leagues import CONFIG, change, played


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


def test_the_games_of_a_pair_stay_in_their_order_from_the_side_of_the_older_member(tmp_path):
    league = League.create(tmp_path / "league")
    for name in ("expert", "trivial"):
        league.add_scripted(name)
    league.record(played("expert", "novice", (1, 1, -1, 0), 1))
    league.record(played("trivial", "expert", (0, 0), 2))
    league.record(played("novice", "expert", (1, 1), 3))
    assert league.pair_scores() == {("novice", "expert"): [0.0, 0.75, 1.0], ("expert", "trivial"): [0.5]}
    assert league.results().of("novice") == {"expert": (3, 1.75)}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (changed(first="absent"), "'absent' is no member of the league"),
        (changed(second="novice"), "expected two members, got 'novice' against itself"),
        (changed(identities=({"weights_sha256": "0" * 64}, {})), "'novice' played with other weights than those"),
        (dataclasses.replace(changed(), learner="expert"), "learner: expected one of the two players or none"),
        (dataclasses.replace(changed(), uuid="5"), "uuid: expected one like '0000.*', got '5'"),
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
