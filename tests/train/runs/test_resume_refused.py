"""Runs that cannot be resumed are refused with the reason in one line, and are not changed."""

import hashlib
import json
import shutil

import pytest
import torch

from echelon_env.networks.checkpoint import JSON_FILE, LAST_FILE, TRAINING_FILE
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints.checkpoint import load_training_state
from echelon_train.errors import RunFolderError, TrainError
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import resume, train
from echelon_train.tensor_files import model_bytes
from train.resuming import QUIET, differences, resumable_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run; only copy it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    train(resumable_run(steps=96), out, console=QUIET)
    return out


@pytest.fixture
def whole(finished, tmp_path):
    """With the training states of the two last checkpoints."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def run(whole):
    """With that of the last one only."""
    (whole / "checkpoints" / "0000000064" / TRAINING_FILE).unlink()
    return whole


def last(run):
    return run / "checkpoints" / json.loads((run / LAST_FILE).read_text())["checkpoint"]


def edit(file, change):
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def edit_values(change):
    """Change the values of the training state, and let the checkpoint vouch for them."""

    def damage(run):
        state = load_training_state(run)
        change(state.values)
        put_training(run, model_bytes(state.tensors, json.dumps(state.values)))

    return damage


def flip_value(run):
    """A number that the run would go on with."""
    state = load_training_state(run)
    state.values["model"].update(updates=17)
    data = model_bytes(state.tensors, json.dumps(state.values))
    (last(run) / TRAINING_FILE).write_bytes(data)
    edit(last(run) / JSON_FILE, lambda document: document["training"].update(bytes=len(data)))


def edit_config(change):
    return lambda run: edit(run / "run.json", lambda document: change(document["config"]))


def edit_tensors(change):
    """Change the training state, and let the checkpoint vouch for it."""

    def damage(run):
        state = load_training_state(run)
        change(state.tensors)
        put_training(run, model_bytes(state.tensors, json.dumps(state.values)))

    return damage


def put_training(run, data):
    (last(run) / TRAINING_FILE).write_bytes(data)
    pins = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    edit(last(run) / JSON_FILE, lambda document: document["training"].update(pins))


def truncate(run):
    file = last(run) / TRAINING_FILE
    file.write_bytes(file.read_bytes()[:-100])


MOMENT = "optimizer.value_net.bias.exp_avg"
REFUSED = {
    "truncated": (truncate, "truncated or replaced"),
    "flipped value": (flip_value, "SHA-256 differs"),
    "removed": (lambda run: (last(run) / TRAINING_FILE).unlink(), "has only a policy"),
    "no checkpoint": (lambda run: shutil.rmtree(last(run)), "no such file or folder"),
    "nan moment": (edit_tensors(lambda t: t[MOMENT].fill_(torch.nan)), "value_net.bias.exp_avg': expected finite"),
    "moment of nothing": (edit_tensors(lambda t: t.update({"optimizer.x.step": t["lstm.0"] + 0})), "unknown: x.step"),
    "other shape": (edit_tensors(lambda t: t.update({"lstm.0": t["lstm.0"][:, :1].clone()})), r"'lstm.0': expected \("),
    "no such stream": (
        edit_tensors(lambda t: t["random.torch"].fill_(255)),
        "random number generators",
    ),
    "env": (edit_tensors(lambda t: t.pop("env.lengths")), r"cannot restore its state: .*missing: \['lengths'\]"),
    "totals": (edit_tensors(lambda t: t["totals.document"].fill_(32)), "training state: .*Expecting value"),
    "counters disagree": (edit_values(lambda v: v["model"].update(num_timesteps=5)), "steps: expected 5, got 96"),
    "processes": (edit_values(lambda v: v.update(ranks=[{}])), "the run had 2 processes and has 1 now"),
    "battle": (edit_config(lambda c: c["battle"].update(max_steps=13)), "battle.max_steps was 12"),
    "rate": (edit_config(lambda c: c["ppo"].update(gae_lambda=0.5)), "ppo.gae_lambda was 0.9 .* and is 0.5"),
}


def contents(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_that_cannot_be_resumed_is_refused_and_not_changed(run, case):
    damage, message = REFUSED[case]
    damage(run)
    before = contents(run)
    with pytest.raises((TrainError, ValueError), match=message):
        resume(run, console=QUIET)
    assert contents(run) == before


@pytest.mark.parametrize("case", ["truncated", "no checkpoint"])
def test_a_refusal_names_the_policy_that_a_new_run_can_start_from(run, case):
    REFUSED[case][0](run)
    older = "0000000064" if case == "no checkpoint" else "0000000096"
    with pytest.raises(CheckpointError, match=f"echelon train --init {run / 'checkpoints' / older}$"):
        resume(run, console=QUIET)
    shutil.rmtree(run / "checkpoints" / "0000000096", ignore_errors=True)
    for folder in (run / "checkpoints").iterdir():
        (folder / "policy.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"no such file or folder$"):
        resume(run, console=QUIET)


@pytest.mark.parametrize("case", ["truncated", "removed", "no checkpoint", "nan moment"])
def test_a_run_whose_last_checkpoint_is_damaged_goes_on_from_the_one_before(whole, finished, case, capsys):
    REFUSED[case][0](whole)
    assert resume(whole, console=QUIET).steps == 96
    assert "; the run goes on from 0000000064\n" in capsys.readouterr().err
    assert json.loads((whole / "run.json").read_text())["resumed"][0]["steps"] == 64
    assert differences(finished, whole) == []


def test_a_damaged_run_file_names_the_policy_too(run):
    (run / "run.json").write_text('{"config": ')
    with pytest.raises(RunFolderError, match=r"run.json: expected JSON: .*; a new run .* --init .*0000000096$"):
        resume(run, console=QUIET)


@pytest.mark.parametrize("content", [None, b"\0" * 40, b'{"checkpoint": 3}'])
def test_the_name_of_the_last_checkpoint_is_found_again(whole, finished, content, capsys):
    (whole / LAST_FILE).unlink() if content is None else (whole / LAST_FILE).write_bytes(content)
    result = resume(whole, console=QUIET)
    assert (result.steps, result.nothing) == (96, "96 of 96 decisions are used")
    assert capsys.readouterr().err == f"{whole / LAST_FILE}: now names 0000000096\n"
    assert json.loads((whole / LAST_FILE).read_text()) == {"checkpoint": "0000000096", "before": "0000000064"}
    assert differences(finished, whole) == []


def test_bad_lines_of_metrics_are_set_aside(whole, finished, capsys):
    file = whole / "metrics.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    bad = [b"\xff\0\n", b"{}\n", lines[1][:40] + b"\n"]
    file.write_bytes(b"".join([bad[0], lines[0], bad[1], *lines[1:], bad[2]]))
    with pytest.raises(RunFolderError, match=r"metrics.jsonl:1: expected a line of JSON: .*--resume .* sets it aside"):
        read_metrics(whole)
    assert resume(whole, console=QUIET).steps == 96
    assert "metrics.jsonl:1: expected a line of JSON" in (said := capsys.readouterr().err)
    assert said.endswith("; bad lines are now in metrics-bad.jsonl: 3\n") and said.count("\n") == 1
    assert (whole / "metrics-bad.jsonl").read_bytes() == b"".join(bad)
    assert differences(finished, whole) == []


def test_numbers_that_are_not_finite_do_not_keep_a_run_from_being_saved(tmp_path, monkeypatch):
    """The explained variance of constant values is logged as not a number."""
    config = resumable_run(steps=96)
    monkeypatch.setattr("echelon_train.ppo.update_log.explained_variance", lambda *_: torch.tensor(torch.nan))
    train(config, tmp_path / "run", console=QUIET)
    pending = load_training_state(tmp_path / "run").values["pending"]
    assert pending["train/explained_variance"] == {"number": "nan", "exclude": [""]}
    assert resume(tmp_path / "run", steps=128, console=QUIET).steps == 128
