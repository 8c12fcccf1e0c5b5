"""Trials of a sweep on clusters by Ray, of this machine alone."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import optuna
import pytest
from rich.console import Console

from echelon_env.cli import main
from echelon_env.config.schema import ConfigError
from echelon_train.errors import TrainError
from echelon_train.runs.folder import read_metrics, read_run_config
from echelon_train.runs.sweep import RayTrials, sweep
from echelon_train.runs.training import train
from train.resuming import QUIET, differences
from train.runs.test_sweep import RUN, SEARCHES

LONG = {"steps": "1_000_000", "eval_every": "64"}
NODE = {"include_dashboard": False, "object_store_memory": 10**8}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


@contextlib.contextmanager
def started(*cpus):
    """A cluster with nodes of so many CPUs; the first is its head."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    with tempfile.TemporaryDirectory(prefix="ray") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = {"num_cpus": cpus[0], "temp_dir": folder, **NODE}
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        try:
            for each in cpus[1:]:
                cluster.add_node(num_cpus=each, **NODE)
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture(scope="module")
def cluster():
    with started(1, 1) as cluster:
        yield cluster


def wait_for(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def training_processes(nodes):
    """Processes of a cluster's nodes that train a trial."""
    raylets = {f"{node.all_processes['raylet'][0].process.pid}" for node in nodes}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if parent in raylets and folder.joinpath("cmdline").read_bytes().startswith(b"ray::_train"):
                found.append(int(folder.name))
    return found


@pytest.mark.slow
def test_trials_are_the_runs_that_this_process_would_make(cluster, config, tmp_path, monkeypatch):
    lines = io.StringIO()
    out = tmp_path / "sweep"
    found = sweep(config, {}, SEARCHES, out, trials=2, console=Console(file=lines), cluster=RayTrials(cluster.address))
    assert [trial.state for trial in found.trials] == ["complete"] * 2 and not found.interrupted
    assert {path.name for path in out.iterdir()} == {"study.journal", "locks", "trial-0000", "trial-0001"}
    for trial in found.trials:
        run = read_run_config(trial.run)
        assert run.ppo.learning_rate.start == trial.settings["ppo.learning_rate"]
        assert read_metrics(trial.run)[-1]["eval/win_rate"] == trial.win_rate
        alone = tmp_path / f"alone-{trial.number}"
        train(run, alone, console=QUIET)
        assert differences(alone, trial.run) == []
        assert {path.name for path in trial.run.iterdir()} == {path.name for path in alone.iterdir()} | {"curves.png"}
    began = [line for line in lines.getvalue().splitlines() if "ppo.learning_rate=" in line]
    assert lines.getvalue().splitlines()[:2] == began, "both at a time"
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda self: True)
    found = sweep(config, {}, SEARCHES, out, trials=3, console=QUIET, cluster=RayTrials(cluster.address, at_once=1))
    assert {trial.state for trial in found.trials if trial.number == 2} == {"pruned"}
    last = [read_metrics(out / name)[-1]["time/total_timesteps"] for name in ("trial-0002", "trial-0000")]
    assert 0 < last[0] < last[1]


@pytest.mark.slow
def test_a_killed_node_loses_its_trial_which_runs_again_on_another(config, tmp_path):
    lines, overrides = io.StringIO(), {"steps": "2_000", "eval_every": "64"}
    with started(0, 1, 1) as cluster:

        def kill():
            wait_for(lambda: "won in evaluation 1" in lines.getvalue())
            (node,) = (each for each in cluster.worker_nodes if training_processes([each]))
            cluster.remove_node(node, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        out, console, place = tmp_path / "sweep", Console(file=lines), RayTrials(cluster.address, at_once=1)
        found = sweep(config, overrides, SEARCHES, out, trials=1, prune=False, console=console, cluster=place)
        killer.join()
        assert [(trial.number, trial.state) for trial in found.trials] == [(1, "complete")]
        text = lines.getvalue().splitlines()
        assert sum("trial 0: its worker died, so it runs again: " in line for line in text) == 1
        assert text[0].replace("trial 0: ", "trial 1: ") in text, "with the settings of before"


def command(config, out, address):
    words = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main())"]
    words += ["sweep", str(config), "--out", str(out), "--trials", "2"]
    words += ["--ray", address, "--search", "ppo.learning_rate=log:1e-4:1e-2"]
    for key, value in LONG.items():
        words += ["--set", f"{key}={value}"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def read_until(process, text, lines):
    """Read the standard error of a command up to a line with a text, and collect its lines."""
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return
    pytest.fail("".join(lines))


def proposed(lines):
    """The learning rates of the trials that began, by the lines of a command."""
    return sorted(float(line.partition("ppo.learning_rate=")[2]) for line in lines if "ppo.learning_rate=" in line)


@pytest.mark.slow
def test_ctrl_c_ends_the_trials_which_run_again_next(cluster, config, tmp_path):
    out, lines = tmp_path / "sweep", []
    process = command(config, out, cluster.address)
    read_until(process, "won in evaluation 1", lines)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130 and "Interrupted. The same command continues." in stdout
    assert "Traceback" not in stderr
    wait_for(lambda: not training_processes(cluster.list_all_nodes()))
    lines += stderr.splitlines()
    overrides = {**LONG, "steps": "64"}
    with pytest.raises(TrainError, match="another run config"):
        sweep(config, overrides, SEARCHES[:1], out, trials=1, console=QUIET)
    study = optuna.load_study(
        study_name="sweep",
        storage=optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(out / "study.journal"))),
    )
    waiting = study.get_trials(states=(optuna.trial.TrialState.WAITING,))
    queued = sorted(trial.system_attrs["fixed_params"]["ppo.learning_rate"] for trial in waiting)
    assert len(queued) == 2 and queued == proposed(lines)


def test_a_cluster_that_cannot_be_reached_is_refused_before_anything_is_written(config, tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for each in (address, f"ray://{address}", "127.0.0.1:99999"):
        with pytest.raises(TrainError, match=f"Ray: no cluster answers at {each}: "):
            sweep(config, {}, SEARCHES, tmp_path / "sweep", console=QUIET, cluster=RayTrials(each))
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(TrainError, match=f"no cluster answers at {address}"):
        sweep(config, {}, SEARCHES, tmp_path / "sweep", console=QUIET, cluster=RayTrials())
    assert not (tmp_path / "sweep").exists()


def test_without_ray(config, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["sweep", str(config), "--out", str(tmp_path / "sweep"), "--search", "ppo.n_epochs=1:3"]
    assert main([*words, "--ray"]) == 2
    assert "Ray is not installed: pip install 'echelon-env[ray]'" in capsys.readouterr().err
    assert main([*words, "--at-once", "2"]) == 2
    assert "--at-once: is for trials on Ray" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="at_once: expected an integer of at least 1, got 0"):
        RayTrials(at_once=0)
    assert not (tmp_path / "sweep").exists()
