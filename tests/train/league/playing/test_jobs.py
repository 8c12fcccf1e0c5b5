import dataclasses
import uuid

import pytest

from echelon_env.evaluate import baseline, play_match
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.networks.checkpoint import JSON_FILE
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.jobs import as_member, member_player, run_job, worker_name
from train.league.matches import SCENARIO, SHORT, job
from train.small import small_battle


def test_a_job_plays_the_match_of_its_members(league):
    order = job("novice", "otter", maps=3)
    played = run_job(league.path, order)
    otter = as_member(checkpoint_player(league.member_policy("otter")), "otter")
    assert played.match == play_match(baseline("novice"), otter, SHORT, order.seeds, scenario=SCENARIO)
    assert (played.uuid, played.config, played.learner, played.worker) == (order.uuid, SHORT, None, worker_name())
    assert league.record(played)
    found = dataclasses.replace(league.match(order.uuid), config=SHORT)  # recorded without the rewards
    assert found == played, "with the identities of the members"


def test_a_match_that_is_ordered_twice_is_one_and_every_other_is_another():
    order = job()
    assert str(uuid.UUID(order.uuid)) == order.uuid
    rewarded = dataclasses.replace(SHORT, rewards=dataclasses.replace(SHORT.rewards, kill=7.0))
    assert dataclasses.replace(order, config=rewarded).uuid == order.uuid, "battles do not depend on it"
    others = [
        {"first": "trivial"}, {"first": "otter", "second": "novice"}, {"config": small_battle("duel-open", 21)},
        {"scenario": "x"}, {"seeds": (order.seeds[0] + 1,)}, {"seeds": (*order.seeds, order.seeds[0] + 1)},
    ]  # fmt: skip
    assert len({order.uuid, *(dataclasses.replace(order, **other).uuid for other in others)}) == 7
    assert str(order) == f"match {order.uuid} of 'novice' against 'otter'"


def test_a_member_whose_files_are_altered_does_not_play_unless_it_is_loaded(league):
    first = run_job(league.path, job("novice", "heron"))
    for name in ("otter", "heron"):
        (league.member_policy(name) / JSON_FILE).write_text("{}")
    with pytest.raises(LeagueError, match=rf"'otter' cannot be used: .*{JSON_FILE}: altered"):
        run_job(league.path, job("novice", "otter"))
    assert run_job(league.path, job("novice", "heron")).match == first.match


def test_the_mode_is_played_on_demand(league):
    member = league.member("otter")
    sampled, mode = member_player(league.path, member), member_player(league.path, member, action_mode="deterministic")
    assert (sampled.action_mode, mode.action_mode) == ("sampled", "deterministic")


@pytest.mark.parametrize(
    ("order", "error", "reason"),
    [
        (job("absent", "otter"), LeagueError, "of 'absent' against 'otter': 'absent' is no member of the league"),
        (job(maps=0), ValueError, "seeds: expected at least one"),
        (dataclasses.replace(job(), seeds=(1,)), ValueError, "seed 1 is outside the allowed range"),
    ],
)
def test_refusals(league, order, error, reason):
    with pytest.raises(error, match=reason):
        run_job(league.path, order)
    with pytest.raises(LeagueError, match="is no league"):
        run_job(league.path.with_name("nothing"), job())
