import json
import os
import signal
import subprocess
import sys
import time

import optuna
import pytest

from echelon_env.cli import main
from echelon_env.config.schema import ConfigError
from echelon_env.networks.checkpoint import find_checkpoint
from echelon_env.networks.weights import CheckpointError
from echelon_train.errors import NonFiniteError, TrainError
from echelon_train.runs import sweep as module
from echelon_train.runs.folder import read_metrics, read_run_config
from echelon_train.runs.study import JOURNAL_FILE, Study
from echelon_train.runs.sweep import Search, sweep
from train.resuming import QUIET, at_step

RUN = """
scenario = "duel-open"
opponent = "trivial"
steps = 64
battles = 2
maps = 2
eval_every = 32
eval_battles = 2
battle.max_steps = 12
[network]
width = 8
head = 8
[ppo]
n_steps = 16
batch_size = 16
n_epochs = 1
"""
SEARCHES = (Search.parse("ppo.learning_rate=log:1e-4:1e-2"), Search.parse("network.width=8,12"))


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


def swept(config, out, **changes):
    return sweep(config, {}, changes.pop("searches", SEARCHES), out, console=QUIET, **changes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ppo.gamma=0.9:0.999", Search("ppo.gamma", 0.9, 0.999)),
        ("ppo.learning_rate=log:1e-4:1e-2", Search("ppo.learning_rate", 1e-4, 1e-2, log=True)),
        ("ppo.n_epochs=2:6", Search("ppo.n_epochs", 2, 6, integer=True)),
        ("network.encoder=sets,flat", Search("network.encoder", choices=("sets", "flat"))),
        ("ppo.learning_rate=linear:1e-3:0,1e-3", Search("ppo.learning_rate", choices=("linear:1e-3:0", "1e-3"))),
    ],
)
def test_a_search_is_read(text, expected):
    assert Search.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ppo.gamma", "expected KEY=LOW:HIGH"),
        ("ppo.gamma=0.9", "expected KEY=LOW:HIGH"),
        ("ppo.gamma=lin:0:1", "expected KEY=LOW:HIGH"),
        ("ppo.gamma=1:0", "expected LOW < HIGH, got 1 and 0"),
        ("ppo.gamma=log:0:1", "expected LOW < HIGH above 0"),
    ],
)
def test_invalid_searches_are_refused(text, problem):
    with pytest.raises(ConfigError, match=problem):
        Search.parse(text)


def test_trials_are_runs_with_the_settings_that_were_proposed(config, tmp_path):
    found = swept(config, tmp_path / "sweep", trials=3, prune=False)
    assert sorted(trial.number for trial in found.trials) == [0, 1, 2]
    assert not found.interrupted
    rates = [trial.win_rate for trial in found.trials]
    assert rates == sorted(rates, reverse=True)
    for trial in found.trials:
        assert trial.state == "complete" and trial.failure is None
        run = read_run_config(trial.run)
        assert run.ppo.learning_rate.start == trial.settings["ppo.learning_rate"]
        assert run.network.width == int(trial.settings["network.width"])
        assert read_metrics(trial.run)[-1]["eval/win_rate"] == trial.win_rate
    assert len({trial.settings["ppo.learning_rate"] for trial in found.trials}) == 3


def test_a_sweep_continues_and_another_one_is_refused(config, tmp_path):
    out = tmp_path / "sweep"
    first = swept(config, out, trials=1)
    assert [trial.settings for trial in swept(config, out, trials=1).trials] == [first.trials[0].settings]
    second = swept(config, out, trials=2)
    assert len(second.trials) == 2 and first.trials[0] in second.trials
    with pytest.raises(TrainError, match="another run config or search space"):
        swept(config, out, trials=3, searches=SEARCHES[:1])
    with pytest.raises(TrainError, match="another run config"):
        sweep(config, {"steps": "128"}, SEARCHES, out, console=QUIET)
    with pytest.raises(TrainError, match="trial-0000 is not an empty folder, and holds no sweep"):
        swept(config, out / "trial-0000", trials=1)
    assert len(swept(config, out, trials=2).trials) == 2


@pytest.mark.parametrize(
    ("overrides", "searches", "problem"),
    [
        ({}, (), "needs a search space"),
        ({"eval_every": "0"}, SEARCHES, "needs evaluations"),
        ({"network.width": "8"}, SEARCHES, "network.width: is already set or searched"),
        ({}, (*SEARCHES, SEARCHES[0]), "learning_rate: is already set or searched"),
        ({}, (Search.parse("ppo.gama=0.9:1.0"),), "did you mean"),
        ({}, (Search.parse("ppo.chunk=5:8"),), "expected a divisor"),
    ],
)
def test_invalid_requests_are_refused_before_anything_is_written(overrides, searches, problem, config, tmp_path):
    with pytest.raises(ConfigError, match=problem):
        sweep(config, overrides, searches, tmp_path / "sweep", console=QUIET)
    assert not (tmp_path / "sweep").exists()


def test_a_trial_that_fails_is_reported_and_counts(config, tmp_path, monkeypatch):
    def train(*args, **kwargs):
        raise NonFiniteError("the gradients were not finite")

    monkeypatch.setattr(module, "train", train)
    found = swept(config, tmp_path / "sweep", trials=2)
    assert [(trial.state, trial.win_rate, trial.failure) for trial in found.trials] == [
        ("failed", None, "the gradients were not finite")
    ] * 2


def test_a_missing_checkpoint_ends_a_sweep_and_its_trial_runs_again(config, tmp_path, monkeypatch):
    out = tmp_path / "sweep"
    with monkeypatch.context() as patch:
        patch.setattr(module, "train", lambda *args, **kwargs: find_checkpoint(tmp_path / "missing"))
        with pytest.raises(CheckpointError, match="missing: no such file"):
            swept(config, out, trials=1)
    (trial,) = swept(config, out, trials=1).trials
    assert trial.run == out / "trial-0001" and trial.state == "complete"


def test_a_trial_that_does_worse_than_most_is_pruned(config, tmp_path, monkeypatch):
    whole = read_metrics(swept(config, tmp_path / "whole", trials=1).trials[0].run)[-1]["time/total_timesteps"]
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda self: True)
    (trial,) = swept(config, tmp_path / "sweep", trials=1).trials
    assert trial.state == "pruned" and trial.win_rate is not None
    assert 0 < read_metrics(trial.run)[-1]["time/total_timesteps"] < whole


def test_an_interrupted_trial_runs_again_next(config, tmp_path, monkeypatch):
    out = tmp_path / "sweep"
    with monkeypatch.context() as patch:
        at_step(patch, 10, lambda: signal.raise_signal(signal.SIGINT))
        assert swept(config, out, trials=2) == module.Sweep([], interrupted=True)
    proposed = read_run_config(out / "trial-0000").ppo.learning_rate.start
    found = swept(config, out, trials=1)
    assert [trial.settings["ppo.learning_rate"] for trial in found.trials] == [proposed]
    assert found.trials[0].run == out / "trial-0001"


PROCESS = """
import sys
from rich.console import Console
from echelon_train.runs.sweep import Search, sweep
searches = [Search.parse(text) for text in ("ppo.learning_rate=log:1e-4:1e-2", "network.width=8,12")]
sweep(sys.argv[1], {}, searches, __import__("pathlib").Path(sys.argv[2]), trials=4, console=Console(quiet=True))
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_processes_share_the_trials_and_those_of_a_killed_one_run_again(config, tmp_path):
    out = tmp_path / "sweep"
    command = [sys.executable, "-c", PROCESS, str(config), str(out)]
    killed = subprocess.Popen(command, env=ENVIRONMENT)
    deadline = time.monotonic() + 240
    while not (out / "trial-0000" / "run.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    proposed = read_run_config(out / "trial-0000").ppo.learning_rate.start
    both = [subprocess.Popen(command, env=ENVIRONMENT) for _ in range(2)]
    assert [process.wait(timeout=240) for process in both] == [0, 0]
    found = swept(config, out, trials=4)
    assert len(found.trials) == 4 and all(trial.state != "running" for trial in found.trials)
    assert 0 not in {trial.number for trial in found.trials}
    assert proposed in {trial.settings["ppo.learning_rate"] for trial in found.trials}


def test_the_command(config, tmp_path, capsys):
    command = ["sweep", str(config), "--out", str(tmp_path / "sweep"), "--trials", "2", "--search", "ppo.n_epochs=1:3"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 or str(tmp_path) in line for line in shown.splitlines())
    assert "complete" in shown and "ppo.n_epochs=" in shown and f"echelon evaluate {tmp_path / 'sweep'}" in shown
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["trials"]) == 2 and document["interrupted"] is False
    assert main([*command[:4], "--search", "ppo.n_epoch=1:3"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_initial_weights_stop_no_trial(tmp_path):
    study = Study(tmp_path / "study", {}, prune=True)
    for _ in range(6):
        claim = study.claim(10)
        assert claim.report(0.5) and claim.report(0.5)
        claim.finish(True)
    claim = study.claim(10)
    assert claim.report(0.0), "before training"
    assert not claim.report(0.0)
    claim.finish(False)


DAMAGES = {
    "bytes": lambda data: data[:20] + b"\xff" + data[20:],
    "half a line": lambda data: data[:30] + b"\n" + data[40:],
    "no record": lambda data: b"[]\n" + data,
    "another record": lambda data: data.replace(b"study_name", b"study_nome"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_refused(tmp_path, damage):
    Study(tmp_path, {}, prune=False)
    journal = tmp_path / JOURNAL_FILE
    journal.write_bytes(damaged := damage(journal.read_bytes()))
    with pytest.raises(TrainError, match=r"study\.journal: is damaged \(.*start a new sweep in another folder"):
        Study(tmp_path, {}, prune=False)
    assert journal.read_bytes() == damaged


@pytest.mark.parametrize("name", [JOURNAL_FILE, "locks/all"])
def test_a_pipe_in_a_sweep_is_refused_without_waiting(tmp_path, name):
    Study(tmp_path, {}, prune=False)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises((TrainError, OSError), match=name):
        Study(tmp_path, {}, prune=False)
