import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from echelon_env.networks.checkpoint import (
    JSON_FILE,
    LAST_FILE,
    MAX_JSON_BYTES,
    TRAINING_FILE,
    WEIGHTS_FILE,
    find_checkpoint,
)
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError
from echelon_train.checkpoints import checkpoint as checkpoint_module
from echelon_train.checkpoints.checkpoint import (
    Checkpoint,
    TrainingState,
    checkpoints_to_resume,
    load_checkpoint,
    save_checkpoint,
    save_in_run,
    weights_of,
)
from echelon_train.policy import build_policy
from echelon_train.ppo.normalize import ReturnNormalizer
from train.damaging import change_weights, edit, put_weights, remove
from train.small import small_battle

NETWORK = NetworkConfig(width=8, head=8)


def example(seed: int = 0, steps: int = 100) -> Checkpoint:
    return Checkpoint(build_policy(NETWORK, seed), NETWORK, small_battle(), "novice", steps)


@pytest.fixture
def saved(tmp_path) -> Path:
    save_checkpoint(tmp_path / "saved", example())
    return tmp_path / "saved"


def replace_by_pipe(file: Path) -> None:
    """A pipe that nobody writes to."""
    file.unlink()
    os.mkfifo(file)


def flip_last_byte(folder: Path) -> None:
    data = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).write_bytes(data[:-1] + bytes([data[-1] ^ 0xFF]))


def test_a_saved_checkpoint_is_loaded(saved):
    loaded, original = load_checkpoint(str(saved)), example()
    assert (loaded.network, loaded.battle) == (original.network, original.battle)
    assert (loaded.opponent, loaded.steps) == ("novice", 100)
    for name, tensor in weights_of(original.policy).items():
        assert torch.equal(weights_of(loaded.policy)[name], tensor)
    assert not loaded.policy.training


def test_normalizer_moments_are_saved(tmp_path):
    checkpoint = example()
    checkpoint.policy.return_normalizer = ReturnNormalizer(7.0)
    save_checkpoint(tmp_path / "saved", checkpoint)
    assert load_checkpoint(tmp_path / "saved").policy.return_normalizer.std == 7.0


def test_loading_does_not_unpickle(saved, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("unpickled")

    monkeypatch.setattr("pickle.loads", fail)
    monkeypatch.setattr("pickle.load", fail)
    monkeypatch.setattr("torch.load", fail)
    load_checkpoint(saved)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (shutil.rmtree, "no such file"),
        (lambda f: (f / WEIGHTS_FILE).unlink(), "cannot be read"),
        (lambda f: (f / WEIGHTS_FILE).write_bytes((f / WEIGHTS_FILE).read_bytes()[:-100]), "truncated"),
        (lambda f: (f / WEIGHTS_FILE).write_bytes((f / WEIGHTS_FILE).read_bytes() + b"x"), "truncated or replaced"),
        (flip_last_byte, "SHA-256 differs"),
        (lambda f: put_weights(f, b"PK\x03\x04 a zip, perhaps a pickle"), "not a valid safetensors file"),
        (lambda f: (f / JSON_FILE).write_text("{"), "no valid JSON"),
        (lambda f: (f / JSON_FILE).write_text("[" * 100_000), "no valid JSON"),
        (lambda f: (f / JSON_FILE).write_text('{"a": 1}'), "not an Echelon checkpoint"),
        (lambda f: (f / JSON_FILE).write_text(" " * MAX_JSON_BYTES + "{}"), "larger than"),
        (lambda f: edit(f, version=9), "version 9 of the format"),
        (lambda f: remove(f, "steps"), "'steps' is missing"),
        (lambda f: edit(f, steps="many"), "'steps' has the wrong type str"),
        (lambda f: edit(f, observation_layout="0" * 64), "observation layout 000000000000 differs"),
        (lambda f: edit(f, action_layout="0" * 64), "action layout"),
        (lambda f: edit(f, battle={"blu": ["medium"]}), "did you mean 'blue'"),
        (lambda f: edit(f, network={"width": 10**12}), "network.width"),
        (lambda f: edit(f, network={"width": 16, "head": 8}), r"expected \(.*\) float32, got \("),
        (lambda f: replace_by_pipe(f / WEIGHTS_FILE), "policy.safetensors: not a regular file"),
        (lambda f: edit(f, format="x" * 10_000), r"format '[x.]{20,30}'\)$"),
        (lambda f: edit(f, version=10**999), r"version [0-9.]{20,50} of the format, this release"),
        (lambda f: change_weights(f, lambda w: w.pop("value_net.bias")), "missing or unknown tensors: value_net.bias"),
        (lambda f: change_weights(f, lambda w: w.update(extra=torch.zeros(1))), "unknown tensors: extra"),
        (
            lambda f: change_weights(f, lambda w: w["value_net.bias"].fill_(float("nan"))),
            "'value_net.bias' holds values",
        ),
        (
            lambda f: change_weights(f, lambda w: w.update({"value_net.bias": w["value_net.bias"].double()})),
            "got .* torch.float64",
        ),
    ],
)
def test_a_bad_checkpoint_is_rejected_with_the_reason(saved, damage, reason):
    damage(saved)
    with pytest.raises(CheckpointError, match=reason) as error:
        load_checkpoint(saved)
    assert str(saved) in str(error.value)


def test_a_checkpoint_too_large_to_load_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "MAX_JSON_BYTES", 1000)
    with pytest.raises(CheckpointError, match=r"checkpoint\.json: would be larger than the 1000 bytes"):
        save_checkpoint(tmp_path / "checkpoint", example())
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    bad = example()
    weights_of(bad.policy)["value_net.bias"].fill_(float("nan"))
    with pytest.raises(CheckpointError, match="not finite"):
        save_checkpoint(tmp_path / "bad", bad)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    save_in_run(tmp_path, example(steps=1))

    def fail(source, target):
        raise OSError("no space left")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="no space left"):
        save_in_run(tmp_path, example(steps=2))
    assert load_checkpoint(tmp_path).steps == 1
    assert [entry.name for entry in (tmp_path / "checkpoints").iterdir()] == ["0000000001"]


def test_a_runs_folder_refers_to_its_last_checkpoint(tmp_path):
    first = save_in_run(tmp_path, example(steps=1))
    second = save_in_run(tmp_path, example(steps=2))
    assert find_checkpoint(tmp_path) == second
    assert find_checkpoint(first) == first
    assert save_in_run(tmp_path, example(steps=2)) == second


def test_two_training_states_are_kept(tmp_path):
    state = TrainingState({"x": torch.zeros(1)}, {})
    folders = [save_in_run(tmp_path, example(steps=steps), state) for steps in range(1, 5)]
    assert [(folder / TRAINING_FILE).exists() for folder in folders] == [False, False, True, True]
    assert checkpoints_to_resume(tmp_path) == folders[:1:-1]
    (tmp_path / LAST_FILE).write_text("")
    assert checkpoints_to_resume(tmp_path) == folders[:1:-1], "found in the folders"
    folders.append(save_in_run(tmp_path, example(steps=5), state))
    assert find_checkpoint(tmp_path) == folders[-1]


def test_files_of_users_among_the_checkpoints_are_neither_touched_nor_in_the_way(tmp_path):
    state = TrainingState({"x": torch.zeros(1)}, {})
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for name in (".DS_Store", ".notes", "notes.txt", "0000000009"):
        (checkpoints / name).write_text("mine")
    (checkpoints / "dangling").symlink_to("nowhere")
    (checkpoints / ".git").mkdir()
    assert checkpoints_to_resume(tmp_path) == []
    copy = shutil.copytree(save_in_run(tmp_path, example(steps=1), state), checkpoints / "0000000007")
    before = {path: path.lstat().st_mtime_ns for path in checkpoints.rglob("*") if "0000000001" not in path.parts}
    incomplete = checkpoints / ".0000000002.abcdefgh"
    incomplete.mkdir()
    save_in_run(tmp_path, example(steps=2), state)
    assert {path: path.lstat().st_mtime_ns for path in before} == before
    assert (copy / TRAINING_FILE).exists()
    assert not incomplete.exists()
    shutil.rmtree(checkpoints / "0000000002")
    (checkpoints / "0000000002").write_text("mine")
    assert load_checkpoint(save_in_run(tmp_path, example(steps=3), state)).steps == 3
    assert not (checkpoints / "0000000001" / TRAINING_FILE).exists()
    assert load_checkpoint(save_in_run(tmp_path, example(steps=9), state)).steps == 9
    assert (checkpoints / "0000000009.foreign").read_text() == "mine"


@pytest.mark.parametrize("name", ["../saved", "", ".", "..", 3, None, "a/b"])
def test_the_last_checkpoint_must_be_inside_the_run(tmp_path, saved, name):
    (tmp_path / LAST_FILE).write_text(json.dumps({"checkpoint": name}))
    with pytest.raises(CheckpointError, match="expected the name of a checkpoint"):
        load_checkpoint(tmp_path)


def test_the_working_folder_can_be_a_run_and_a_file_is_none(tmp_path, saved, monkeypatch):
    with pytest.raises(CheckpointError, match="expected the folder of a checkpoint or a run, got a file"):
        find_checkpoint(saved / WEIGHTS_FILE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="neither a checkpoint"):
        find_checkpoint(Path("."))
    monkeypatch.chdir(saved)
    assert find_checkpoint(Path(".")) == Path(".")
