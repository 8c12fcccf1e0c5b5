"""Runs against the shipped champions, taught by them, and started from them."""

import json

import pytest

from echelon_env.champions import champion_folder
from echelon_env.config.schedule import Schedule
from echelon_env.networks.checkpoint import read_checkpoint
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.train import TrainConfig, training_curriculum
from echelon_train.runs.ancestry import load_start, named_policies
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from train.resuming import QUIET, resumable_run
from train.runs.test_opponents import assert_resumes
from train.small import small_battle, small_run


@pytest.mark.long
def test_a_run_with_the_champion_as_opponent_and_teacher_resumes_to_the_same_bits(tmp_path, monkeypatch):
    opponent = {"champion@auto": 2, "champion": 1, "champion@fire_rate=0.5": 1, "trivial": 1}
    ppo = {"kickstart_coef": Schedule(0.1, 0.1)}
    config = resumable_run(opponent=opponent, teacher="champion", ppo=ppo, battles=4, steps=640)
    assert_resumes(config, 70, tmp_path, monkeypatch)
    last = [line for line in read_metrics(tmp_path / "whole") if "battle/count" in line][-1]
    assert all(last[f"opponent/{name}/battles"] for name in config.opponent.names)
    assert last["opponent/champion@auto/handicap/fire_rate"] < 1.0
    policies = json.loads((tmp_path / "whole" / "run.json").read_text())["policies"]
    found = {name: each["checkpoint"] for name, each in policies.items()}
    assert found == {"champion duel": str(champion_folder("duel"))}


def test_a_run_starts_from_the_champion(tmp_path):
    champion = read_checkpoint(champion_folder("skirmish"))
    with pytest.raises(CheckpointError, match=r"init: champion has another network than this run: network\.width 128"):
        load_start(small_run(init="champion", battle=small_battle("trio")))
    config = small_run(init="champion", battle=small_battle("trio"), network=champion.network)
    start = load_start(config)
    assert start.ancestry[0]["init"] == "champion"
    assert start.ancestry[0]["weights_sha256"] == champion.weights_sha256
    assert train(config, tmp_path / "run", console=QUIET).done
    assert load_checkpoint(tmp_path / "run").network == champion.network


def test_each_stage_of_a_curriculum_has_the_champion_of_its_size():
    curriculum = training_curriculum(["duel-open", "trio"], opponents=["champion", {"champion@auto": 1, "expert": 1}])
    config = TrainConfig(battle=curriculum.scenarios[0].config, curriculum=curriculum)
    assert [*named_policies(config)] == ["champion duel", "champion skirmish"]
    assert str(config.plain_runs()[1].evaluation_opponents) == "champion"
