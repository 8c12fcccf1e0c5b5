"""Whole runs in two processes that torchrun starts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.store.registry import League
from echelon_train.runs.folder import read_metrics
from train.resuming import differences

RUN = [
    "--scenario",
    "duel",
    "--opponent",
    "trivial",
    "--battles",
    "2",
    "--device",
    "cpu",
    "--eval-battles",
    "2",
    "--maps",
    "4",
    "--set",
    "battle.max_steps=12",
    "--network.width",
    "8",
    "--network.head",
    "8",
    "--network.normalize-observations",
    "true",
    "--ppo.n-steps",
    "16",
    "--ppo.batch-size",
    "16",
    "--ppo.n-epochs",
    "2",
    "--ppo.learning-rate",
    "1e-3",
    "--ppo.ent-coef",
    "0.01",
]


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    return subprocess.Popen(
        [*torchrun, "-m", "echelon_train", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )


def finish(process: subprocess.Popen[str]) -> str:
    """The standard output of a run, which must succeed."""
    try:
        stdout, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, stderr
    return stdout


@pytest.mark.slow
def test_a_run_of_two_processes_leaves_one_good_folder(tmp_path):
    arguments = [*RUN, "--steps", "256", "--eval-every", "128", "--checkpoint-every", "128"]
    stdout = finish(start(arguments, tmp_path))
    [run] = (tmp_path / "runs").iterdir()
    assert stdout.count("Trained on") == 1, "one process prints for both"
    checkpoint = load_checkpoint(run)
    # two processes with two battles of a mech each, 16 steps at a time; dead rows do not count
    assert 256 <= checkpoint.steps <= 256 + 64
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [line["time/total_timesteps"] for line in lines]
    assert steps == sorted(steps)
    assert steps[0] > 32
    assert "eval/win_rate" in lines[0]
    assert {"best.json", "last.json", "run.json", "curves.png"} < {file.name for file in run.iterdir()}
    assert checkpoint.trained_maps


@pytest.mark.slow
def test_a_resumed_run_equals_one_that_never_stopped(tmp_path):
    arguments = [*RUN, "--eval-every", "0", "--checkpoint-every", "0"]
    finish(start([*arguments, "--steps", "512", "--out", "whole"], tmp_path))
    finish(start([*arguments, "--steps", "256", "--out", "parts"], tmp_path))
    finish(start(["--resume", "parts", "--steps", "512"], tmp_path))
    whole, parts = load_checkpoint(tmp_path / "whole"), load_checkpoint(tmp_path / "parts")
    assert whole.steps == parts.steps >= 512
    for (name, one), two in zip(whole.policy.state_dict().items(), parts.policy.state_dict().values(), strict=True):
        assert torch.equal(one, two), name
    [state] = (tmp_path / "parts" / "checkpoints").glob("*/training.safetensors")
    names = safetensors.torch.load_file(state).keys()
    assert {"random.torch", "rank1.random.torch"} < set(names)

    alone = subprocess.run(
        [sys.executable, "-m", "echelon_train", "--resume", "parts", "--steps", "1024"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert alone.returncode == 2
    assert "the run had 2 processes and has 1 now" in " ".join(alone.stderr.split())


@pytest.mark.slow
def test_a_killed_run_through_a_curriculum_resumes_as_if_it_had_never_stopped(tmp_path):
    """With a central critic, scheduled rewards, and a lock on the folder while it runs."""
    arguments = [
        *[part for part in RUN if part not in ("--scenario", "duel")],
        *["--curriculum", "duel", "skirmish", "--window", "2", "--promote", "0", "--demote", "-1"],
        *["--network.critic", "central", "--reward-schedules.death", "linear:-1:-9", "--steps", "2048"],
        *["--reward-schedules.team-spirit", "linear:0:1", "--eval-every", "0", "--checkpoint-every", "256"],
    ]
    finish(start([*arguments, "--out", "whole"], tmp_path))
    killed = start([*arguments, "--out", "killed"], tmp_path)
    processes = [killed.pid]
    try:
        wait_for_metrics(killed, tmp_path / "killed", lines=8)
        processes = [killed.pid, *workers(killed)]
        send_signal(processes, signal.SIGSTOP)
        refused = start(["--resume", "killed"], tmp_path)
        assert "another process is training in this folder" in refused.communicate(timeout=120)[1]
        assert refused.returncode != 0
    finally:
        send_signal(processes, signal.SIGKILL)
        killed.communicate()
    assert 0 < load_checkpoint(tmp_path / "killed").steps < 2048 - 256
    finish(start(["--resume", "killed"], tmp_path))
    assert differences(tmp_path / "whole", tmp_path / "killed") == []
    stages = [line["curriculum/scenario"] for line in read_metrics(tmp_path / "whole") if "curriculum/scenario" in line]
    assert list(dict.fromkeys(stages)) == ["duel", "skirmish"]


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that torchrun has started; they do not end with it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


def send_signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        os.kill(process, number)


def wait_for_metrics(process: subprocess.Popen[str], run: Path, lines: int) -> None:
    metrics = run / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= lines):
        time.sleep(0.05)


@pytest.mark.slow
def test_a_signal_saves_in_all_processes(tmp_path):
    process = start([*RUN, "--steps", "100_000_000", "--eval-every", "0", "--out", "run"], tmp_path)
    try:
        wait_for_metrics(process, tmp_path / "run", lines=1)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
    assert "Interrupted after" in stdout, stderr
    assert load_checkpoint(tmp_path / "run").steps > 0
    assert "SIGKILL" not in stderr, "all ended by themselves"
    finish(start(["--resume", "run", "--steps", "1"], tmp_path))


@pytest.mark.slow
def test_two_processes_train_one_member_of_a_league(tmp_path):
    """It adds each snapshot once, plays against it in both processes, and continues."""
    league = League.create(tmp_path / "league")
    arguments = [
        *RUN, "--league", "league", "--role", "main", "--league.snapshot-every", "128", "--eval-every", "0",
        "--checkpoint-every", "0", "--out", "run",
    ]  # fmt: skip
    stdout = finish(start([*arguments, "--steps", "512"], tmp_path))
    snapshots = [each for each in league.members() if each.kind == "main"]
    assert [each.name for each in snapshots] == [f"main-{number}" for number in range(1, len(snapshots) + 1)]
    assert len(snapshots) >= 3
    assert stdout.count("League: added") == len(snapshots)
    finish(start(["--resume", "run", "--steps", "1024"], tmp_path))
    members = {each.name: each.parent for each in league.members()}
    assert members[f"main-{len(snapshots) + 1}"] == snapshots[-1].name
    assert max(line.get("league/opponents", 0) for line in read_metrics(tmp_path / "run")) > 1
