"""Runs that start from the weights of a checkpoint."""

import dataclasses
import hashlib
import json
import shutil

import pytest
import torch

from echelon_env.cli import main
from echelon_env.networks.checkpoint import WEIGHTS_FILE, find_checkpoint
from echelon_env.networks.config import NetworkConfig
from echelon_train.checkpoints.checkpoint import load_checkpoint, weights_of
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.league.store.registry import League
from echelon_train.runs.ancestry import Start, load_start
from echelon_train.runs.folder import read_record
from echelon_train.runs.training import resume, train
from train.resuming import QUIET, at_step, differences, resumable_run
from train.small import small_battle, small_run

NETWORK = NetworkConfig(width=8, head=8, set_width=4, map_channels=2)


@pytest.fixture(scope="module")
def ancestor(tmp_path_factory):
    """A finished run; only read it."""
    out = tmp_path_factory.mktemp("runs") / "ancestor"
    train(resumable_run(steps=64), out, console=QUIET)
    return out


def interrupt():
    raise KeyboardInterrupt


def fact(init, folder, steps):
    digest = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    return {"init": str(init), "checkpoint": str(folder.resolve()), "steps": steps, "weights_sha256": digest}


def test_a_run_starts_from_exactly_these_weights_with_every_other_setting_free(ancestor, tmp_path):
    network = dataclasses.replace(NETWORK, communicate=True)
    config = small_run(
        battle=small_battle("skirmish"), opponent="novice", seed=5, steps=128, network=network, init=str(ancestor),
        ppo=PPOConfig(n_steps=8, chunk=8, batch_size=24, n_epochs=2, gamma=Schedule.constant(0.9)),
    )  # fmt: skip
    train(config, tmp_path / "run", console=QUIET)
    first = weights_of(load_checkpoint(tmp_path / "run" / "checkpoints" / "0000000000").policy)
    before = weights_of(load_checkpoint(ancestor).policy)
    last = weights_of(load_checkpoint(tmp_path / "run").policy)
    assert first.keys() == before.keys() == last.keys()
    assert "return_normalizer.mean" in first
    changed = [name for name in first if not torch.equal(first[name], before[name])]
    assert changed in ([], ["action_limits"]), "the limits are those of the battle"
    assert not torch.equal(first["action_net.weight"], last["action_net.weight"])


def test_a_run_records_all_checkpoints_that_it_descends_from(ancestor, tmp_path):
    assert [*read_record(ancestor).ancestry] == []
    second, third = tmp_path / "second", tmp_path / "third"
    train(small_run(init=f"{ancestor}/last", network=NETWORK), second, console=QUIET)
    expected = [fact(ancestor / "last", find_checkpoint(ancestor), 64)]
    assert [*read_record(second).ancestry] == expected
    league = League.create(tmp_path / "league")
    league.add_checkpoint(second, "past", "otter")
    train(small_run(init=f"{league.path}/otter", network=NETWORK), third, console=QUIET)
    member = fact(league.path / "otter", league.member_policy("otter"), 64)
    assert [*read_record(third).ancestry] == [member, *expected]
    (find_checkpoint(second) / WEIGHTS_FILE).write_bytes(b"of another policy")
    start = load_start(small_run(init=f"{league.path}/otter", network=NETWORK))
    assert start.ancestry == (member,), "the run is not the one that the member comes from"
    shutil.rmtree(second)
    assert load_start(small_run(init=f"{league.path}/otter", network=NETWORK)).ancestry == (member,)
    assert load_start(small_run()) == Start(None, ())


@pytest.mark.long
def test_a_run_records_the_policies_among_its_opponents_and_its_teacher(ancestor, tmp_path, capsys):
    ancestor = shutil.copytree(ancestor, tmp_path / "opponents")
    name, teacher = f"policy:{ancestor}", f"policy:{find_checkpoint(ancestor)}"
    changes = {"opponent": {f"{name}@fire_rate=0.5": 1, "trivial": 1}, "teacher": teacher, "eval_opponent": "novice"}
    train(
        small_run(**changes, ppo=PPOConfig(n_steps=16, batch_size=16, kickstart_coef=Schedule(0.1, 0.1))),
        tmp_path / "run",
        console=QUIET,
    )
    expected = fact("", find_checkpoint(ancestor), 64)
    del expected["init"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["policies"] == {name: expected, teacher: expected}
    resume(ancestor, console=QUIET, steps=96)
    now = hashlib.sha256((find_checkpoint(ancestor) / WEIGHTS_FILE).read_bytes()).hexdigest()
    resume(tmp_path / "run", console=QUIET, steps=96)
    changed = [line for line in capsys.readouterr().err.splitlines() if line.startswith("changed")]
    text = f"{expected['weights_sha256'][:8]} then, {now[:8]} now; the result may differ"
    assert changed == [f"changed since the run was started: {name}: {text}"]
    resume(tmp_path / "run", console=QUIET, steps=128)
    assert "changed" not in capsys.readouterr().err, "since it was last resumed"
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["policies"] == {name: expected, teacher: expected}, "those that it started with"
    assert [each["policies"][name]["weights_sha256"] for each in record["resumed"]] == [now, now]


def test_a_run_is_resumed_without_its_ancestor(ancestor, tmp_path, monkeypatch):
    start = shutil.copytree(ancestor, tmp_path / "start")
    config = resumable_run(init=str(start), steps=96)
    train(config, tmp_path / "whole", console=QUIET)
    with monkeypatch.context() as patch:
        at_step(patch, 40, interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "stopped", console=QUIET)
    ancestry = [*read_record(tmp_path / "stopped").ancestry]
    shutil.rmtree(start)
    resume(tmp_path / "stopped", console=QUIET)
    assert differences(tmp_path / "whole", tmp_path / "stopped") == []
    assert [*read_record(tmp_path / "stopped").ancestry] == ancestry != []


@pytest.mark.parametrize("critic", ["ippo", "central", "mappo"])
def test_a_run_with_another_critic_takes_the_weights_that_both_have(critic, ancestor, tmp_path):
    network = dataclasses.replace(NETWORK, critic=critic)
    config = small_run(steps=32, network=network, init=str(ancestor))
    train(config, tmp_path / "run", console=QUIET)
    first = weights_of(load_checkpoint(tmp_path / "run" / "checkpoints" / "0000000000").policy)
    before = weights_of(load_checkpoint(ancestor).policy)
    assert before.keys() < first.keys()
    assert all(torch.equal(first[name], before[name]) for name in before if name != "action_limits")
    assert all(
        name.startswith(("critic_", "lstm_critic", "battle_", "own_features")) for name in first.keys() - before.keys()
    )


def test_a_checkpoint_that_cannot_be_used_is_one_line_and_leaves_nothing(ancestor, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refusal(init, *options):
        assert main(["train", "quickstart", "--init", str(init), "--out", "out", "--device", "cpu", *options]) == 2
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    assert refusal("nowhere") == "echelon: init: nowhere: no such file or folder\n"
    message = refusal(ancestor, "--network.width", "16", "--network.head", "8", "--network.set-width", "4")
    assert "has another network than this run: " in message
    assert "network.map_channels 2 instead of 8, network.width 8 instead of 16; " in message
    assert message.endswith("use --network.map-channels 2 --network.width 8\n")
    damaged = shutil.copytree(find_checkpoint(ancestor), tmp_path / "damaged")
    (damaged / WEIGHTS_FILE).write_bytes(b"")
    assert "init: " in (message := refusal("damaged")) and "truncated or replaced" in message
