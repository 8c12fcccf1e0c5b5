import dataclasses
import shutil

import pytest

from echelon_env.evaluate import baseline, play_match, stamp
from echelon_env.networks.weights import CheckpointError
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.jobs import member_player, run_job
from echelon_train.league.playing.replay import record, replay
from echelon_train.league.store.records import PlayedMatch
from train.league.leagues import saved
from train.league.matches import SCENARIO, SHORT, job


@pytest.fixture
def recorded(league):
    """A match of a policy and a scripted player, as it was played."""
    played = run_job(league.path, job("otter", "novice", maps=3))
    league.record(played)
    return played


def recorded_again(league, played, **changes):
    """The same match on another map, with a changed record."""
    other = run_job(league.path, job(played.match.first, played.match.second, seed=1))
    changed = dataclasses.replace(other, **changes)
    assert league.record(changed)
    return changed


def test_every_battle_ends_as_it_was_recorded_in_its_action_mode(league, recorded):
    league.retire("otter")
    found = replay(league, recorded.uuid[:8])
    assert found.same and found.different == () == found.cautions
    assert found.match == recorded.match == found.played.match
    order = job("otter", "novice", maps=2, seed=1)
    otter = member_player(league.path, league.member("otter"), action_mode="deterministic")
    match = play_match(otter, baseline("novice"), SHORT, order.seeds, scenario=SCENARIO)
    league.record(PlayedMatch(order.uuid, match, SHORT))
    found = replay(league, order.uuid)
    assert found.same and found.match.action_modes == ("deterministic", "scripted")


def test_battles_that_end_differently_are_named(league, recorded):
    order = job("otter", "novice", maps=3, seed=1)
    played = run_job(league.path, order)
    battles = list(played.match.battles)
    battles[2] = dataclasses.replace(battles[2], outcome=1 - abs(battles[2].outcome))
    battles[5] = dataclasses.replace(battles[5], scores=(0.5, battles[5].scores[1] + 1))
    league.record(dataclasses.replace(played, match=dataclasses.replace(played.match, battles=tuple(battles))))
    found = replay(league, order.uuid)
    assert not found.same and found.different == (2, 5)
    assert found.match == played.match


def test_a_match_of_other_code_is_replayed_by_force_only_and_other_versions_are_reported(league, recorded):
    stamps = {**stamp(), "engine_hash": "0" * 64, "numpy": "1.0", "jax": "2.0"}
    played = recorded_again(league, recorded, stamp=stamps)
    reason = "the rules, the engine, or what players observe have changed since"
    with pytest.raises(LeagueError, match=f"match {played.uuid}: cannot be reproduced: {reason}$"):
        replay(league, played.uuid)
    found = replay(league, played.uuid, force=True)
    assert found.same
    assert found.cautions == (reason, "jax: None now, 2.0 then", f"numpy: {stamp()['numpy']} now, 1.0 then")


def test_a_policy_whose_files_are_altered_plays_by_force_only(league, recorded, tmp_path):
    folder = league.member_policy("otter")
    shutil.rmtree(folder)
    with pytest.raises(LeagueError, match=rf"cannot be reproduced: 'otter': {folder}: the folder is missing$"):
        replay(league, recorded.uuid)
    with pytest.raises(CheckpointError, match="no such file or folder"):
        replay(league, recorded.uuid, force=True)
    saved(folder, 9)  # of another policy
    with pytest.raises(
        LeagueError, match=r"'otter': .*policy.safetensors: altered: .*'otter': .*checkpoint.json: altered"
    ):
        replay(league, recorded.uuid)
    found = replay(league, recorded.uuid, force=True)
    assert len(found.cautions) == 2 and all("altered" in each for each in found.cautions)
    assert found.match.first == "otter" and found.match.identities != recorded.match.identities


def test_a_battle_is_recorded_from_its_side(league, recorded):
    again, cautions = record(league, recorded.uuid, 3)
    assert again.players == ("novice", "otter") and cautions == ()
    assert record(league, recorded.uuid, 2)[0].players == ("otter", "novice")
    for number in (6, -1):
        with pytest.raises(LeagueError, match=f"has the battles 0 to 5, got {number}"):
            record(league, recorded.uuid, number)
