"""Runs that train in a league: their opponents, their snapshots, and resuming."""

import copy
import dataclasses
import itertools
import json

import pytest

from echelon_env.config.schema import ConfigError
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import load_checkpoint, weights_of
from echelon_train.config.league import LeagueConfig
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import training_curriculum
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.registry import League
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.runs.callbacks import LeagueCallback, OpponentsCallback
from echelon_train.runs.folder import read_run_config
from echelon_train.runs.run import Run
from echelon_train.runs.training import resume, train
from train.league.leagues import saved, watch_opponents
from train.resuming import QUIET, at_step, differences, resumable_run


@pytest.fixture
def league(tmp_path):
    made = League.create(tmp_path / "league")
    made.add_scripted("trivial")
    made.add_scripted("idle")  # no opponent in training
    return made


def run_in(league, **changes):
    own = {"self_play": 0.0, "scripted": 0.5, "stage": 40} | changes
    return resumable_run(league=LeagueConfig(path=str(league.path), **own))


def left(league):
    """Name -> parent of the members that were trained."""
    return {each.name: each.parent for each in league.members() if each.kind != "scripted"}


def test_a_main_agent_leaves_snapshots_and_plays_against_them(league, tmp_path, monkeypatch):
    opponents = watch_opponents(monkeypatch)
    result = train(run_in(league), tmp_path / "run", console=QUIET)
    snapshots = left(league)
    assert snapshots == {"main-1": None, "main-2": "main-1", "main-3": "main-2"}  # the last at the run's end
    others = {"novice", "trivial"}
    assert {*others, "main-1"} <= set(opponents) <= {*others, *snapshots}
    ages = [each.age for each in league.members() if each.kind == "main"]
    assert all(later - earlier >= 40 for earlier, later in zip([0, *ages], ages[:-1], strict=False))
    assert load_checkpoint(result.checkpoint).opponent == "league"
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(line["league/opponents"] >= 1 for line in lines if "league/opponents" in line)
    assert any("league/worst_score" in line for line in lines)


def test_members_play_with_their_own_weights(league, tmp_path):
    train(run_in(league), tmp_path / "run", console=QUIET)
    run = Run(run_in(league), tmp_path / "other", "cpu", QUIET, None)
    try:
        kept = weights_of(load_checkpoint(league.member_policy("main-1")).policy)
        played = weights_of(run._league.learner.load("main-1"))
        assert all(played[name].equal(tensor) for name, tensor in kept.items())
        assert not weights_of(run.model.policy)["action_net.weight"].equal(kept["action_net.weight"])
    finally:
        run.close()


@pytest.mark.long
def test_an_interrupted_run_resumes_as_if_it_had_not_been(tmp_path, monkeypatch):
    """Each in its own league: members that others add meanwhile would change it."""
    whole = League.create(tmp_path / "whole")
    train(run_in(whole, self_play=0.5), tmp_path / "run", console=QUIET)
    for step in (1, 30, 60):
        parts, run = League.create(tmp_path / f"parts{step}"), tmp_path / f"again{step}"
        with monkeypatch.context() as patched:
            at_step(patched, step, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                train(run_in(parts, self_play=0.5), run, console=QUIET)
        resume(run, console=QUIET)
        assert left(parts) == left(whole), step
        assert [each.weights_sha256 for each in parts.members()] == [each.weights_sha256 for each in whole.members()]
        found = differences(tmp_path / "run", run)
        assert [name for name in found if "league" not in name.lower() and "config" not in name] == [], step


@pytest.mark.slow
def test_the_path_may_change_on_resuming(league, tmp_path):
    train(run_in(league), tmp_path / "run", console=QUIET)
    moved, other = tmp_path / "moved", League.create(tmp_path / "other")
    league.path.rename(moved)
    with pytest.raises(LeagueError, match="league"):
        resume(tmp_path / "run", steps=240, console=QUIET)
    with pytest.raises(LeagueError, match="no member 'main-"):
        resume(tmp_path / "run", steps=240, **{"league.path": str(other.path)}, console=QUIET)
    resume(tmp_path / "run", steps=400, **{"league.path": str(moved)}, console=QUIET)
    assert left(League.open(moved))["main-4"] == "main-3" and left(other) == {}
    assert read_run_config(tmp_path / "run").league.path == str(moved), "also for the next resume"


def test_schedules_restart_with_every_stage(league, tmp_path):
    config = run_in(league)
    rate = Schedule.parse("linear:1e-3:1e-4", "")
    train(
        dataclasses.replace(config, ppo=dataclasses.replace(config.ppo, learning_rate=rate)),
        tmp_path / "run",
        console=QUIET,
    )
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    rates = [line["train/learning_rate"] for line in lines if "train/learning_rate" in line]
    assert any(later > earlier for earlier, later in itertools.pairwise(rates)), rates


@pytest.mark.long
def test_an_exploiter_trains_against_main_agents_from_their_weights(league, tmp_path, monkeypatch):
    train(run_in(league), tmp_path / "main", console=QUIET)
    starts, stock = [], EchelonRecurrentPPO.reinitialize

    def reinitialize(self, weights):
        stock(self, weights)
        starts.append({name: tensor.clone() for name, tensor in weights_of(self.policy).items()})

    monkeypatch.setattr(EchelonRecurrentPPO, "reinitialize", reinitialize)
    opponents = watch_opponents(monkeypatch)
    # otherwise each rollout begins with a checkpoint anyway
    config = dataclasses.replace(run_in(league, role="exploiter"), checkpoint_every=1000)
    train(config, tmp_path / "exploiter", console=QUIET)
    assert set(opponents) <= {"main-3", "main-2", "main-1"}
    exploiters = {name: parent for name, parent in left(league).items() if "exploiter" in name}
    assert exploiters == {"exploiter-1": "main-3", "exploiter-2": "main-2"}, "the newest without an exploiter"
    assert len(starts) == 3, "at its start and after each snapshot"
    for weights, victim in zip(starts, ("main-3", "main-2", "main-1"), strict=True):
        theirs = weights_of(load_checkpoint(league.member_policy(victim)).policy)
        assert all(weights[name].equal(theirs[name]) for name in theirs)
    for name, victim in exploiters.items():
        kept, theirs = (weights_of(load_checkpoint(league.member_policy(each)).policy) for each in (name, victim))
        assert not kept["action_net.weight"].equal(theirs["action_net.weight"]), "snapshots are from a stage's end"


def test_opponents_use_the_device_and_the_cache_of_the_run(league):
    callback = LeagueCallback(run_in(league, cache=3), "meta", lambda steps: None, print, QUIET)
    assert (callback.pool._device.type, callback.pool._cache) == ("meta", 3)


@pytest.mark.parametrize(
    ("device", "mode", "recorded"),
    [("cpu", "auto", False), ("cuda", "auto", True), ("cuda", "graphs", True), ("cuda", "off", False)],
)
def test_opponents_are_recorded_on_a_gpu_unless_that_is_off(league, device, mode, recorded):
    config = dataclasses.replace(run_in(league), compile=mode)
    alone = OpponentsCallback(device)
    alone.enter(config)
    for pool in (LeagueCallback(config, device, lambda steps: None, print, QUIET).pool, alone.pool):
        assert pool._recorded is copy.deepcopy(pool)._recorded is recorded


def test_an_exploiter_without_a_main_agent_like_it_is_refused(league, tmp_path):
    config = run_in(league, role="exploiter")
    with pytest.raises(LeagueError, match="needs a main agent"):
        train(config, tmp_path / "run", console=QUIET)
    league.add_checkpoint(saved(tmp_path / "wider", network=dataclasses.replace(config.network, width=16)), "main")
    with pytest.raises(CheckpointError, match=r"another network than this run: network.width 16 instead of"):
        train(config, tmp_path / "run", console=QUIET)
    assert not (tmp_path / "run").exists()


def test_an_exploiter_has_no_other_start_and_trains_more_than_its_critic(league):
    config = run_in(league, role="exploiter")
    with pytest.raises(ConfigError, match="init: an exploiter starts from the weights of a main agent"):
        dataclasses.replace(config, init="runs/mine")
    warm = dataclasses.replace(config.ppo, critic_warmup=10)
    with pytest.raises(ConfigError, match=r"league.stage: expected more than the [\d,]+ decisions in which only"):
        dataclasses.replace(config, ppo=warm)
    dataclasses.replace(run_in(league), ppo=warm)


def test_what_is_no_league_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "league").mkdir()
    config = resumable_run(league=LeagueConfig(path=str(tmp_path / "league")))
    with pytest.raises(LeagueError):
        train(config, tmp_path / "run", console=QUIET)
    assert not (tmp_path / "run").exists()


def test_a_league_has_no_curriculum(league):
    config, curriculum = run_in(league), training_curriculum(["duel-open", "duel"])
    with pytest.raises(ConfigError, match="a run in a league cannot have a curriculum"):
        dataclasses.replace(config, battle=curriculum.scenarios[0].config, curriculum=curriculum)
