"""Runs that are resumed elsewhere or with other settings, and what they report."""

import shutil

import pytest

from echelon_env import ConfigError
from echelon_env.cli import main
from echelon_env.networks.weights import CheckpointError
from echelon_env.terrain import generate
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.runs import folder as run_folder_module
from echelon_train.runs.folder import read_run_config
from echelon_train.runs.training import resume, train
from train.resuming import QUIET, differences, resumable_run
from train.small import small_battle

SEEDS = (7, 8)


def write_recipes(folder, seeds=SEEDS):
    folder.mkdir()
    for seed in seeds:
        (folder / f"{seed}.json").write_text(generate(small_battle(), seed).recipe.to_json())
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run on the maps of a directory, which no longer exists; only copy it."""
    folder = tmp_path_factory.mktemp("runs")
    maps = write_recipes(folder / "maps")
    train(resumable_run(steps=64, maps=str(maps)), folder / "run", console=QUIET)
    shutil.rmtree(maps)
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_moved_maps_are_found_at_the_given_path(run, tmp_path):
    with pytest.raises(ConfigError, match="no recipes"):
        resume(run, steps=96, console=QUIET)
    there = str(write_recipes(tmp_path / "there"))
    assert resume(run, steps=96, maps=there, console=QUIET).steps == 96
    assert read_run_config(run).maps == there
    whole = tmp_path / "whole"
    train(resumable_run(steps=64, maps=there), whole, console=QUIET)
    resume(whole, steps=96, console=QUIET)
    assert differences(whole, run) == []


def test_other_maps_are_refused(run, tmp_path):
    others = str(write_recipes(tmp_path / "others", (7, 9)))
    with pytest.raises(CheckpointError, match="map"):
        resume(run, maps=others, console=QUIET)
    with pytest.raises(ConfigError, match=r"maps: expected the new path of the directory '.*maps', got 3"):
        resume(run, maps=3, console=QUIET)
    assert load_checkpoint(run).steps == 64


def test_maps_that_a_run_generates_are_kept(tmp_path):
    train(resumable_run(steps=32), tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="cannot change, as the run has 3 maps"):
        resume(tmp_path / "run", maps="there", console=QUIET)
    with pytest.raises(ConfigError, match="'steps': expected int, got 'many'"):
        resume(tmp_path / "run", steps="many", console=QUIET)


def test_a_run_resumed_on_another_machine_reports_the_differences(tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    train(resumable_run(steps=64), run, console=QUIET)
    monkeypatch.setattr(run_folder_module, "git_commit", lambda: "0123abc")
    options = ["--steps", "96", "--device", "auto", "--threads", "2", "--torch-threads", "2"]
    with monkeypatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        assert main(["train", "--resume", str(run), *options]) == 0
    printed = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in printed] == ["git commit", "device", "torch_threads"]
    assert all(line.startswith("changed since the run was started: ") for line in printed)
    assert "torch_threads: 1 then, 2 now; the result may differ" in printed[2]
    config = read_run_config(run)
    assert (config.device, config.threads, config.torch_threads, config.steps) == ("auto", 2, 2, 96)
    assert main(["train", "--resume", str(run)]) == 0
    assert capsys.readouterr().err == "", "nothing has changed since"
