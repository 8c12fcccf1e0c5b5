"""Runs in several processes that the first one starts."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.errors import ProcessError
from echelon_train.league.store.registry import League
from echelon_train.ppo import distributed
from echelon_train.runs import processes
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import train
from train.resuming import QUIET, differences
from train.runs.two_processes import RUN, finish, send_signal, start, wait_for_metrics, workers
from train.small import small_run


@pytest.mark.cuda
def test_two_processes_train_on_one_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    arguments = [*RUN, "--device", "cuda", "--eval-every", "0", "--steps", "512", "--out", "run"]
    finish(start(arguments, tmp_path))
    finish(start(["--resume", "run", "--steps", "768"], tmp_path, processes=None))
    assert load_checkpoint(tmp_path / "run").steps >= 768


@pytest.mark.slow
def test_ctrl_c_saves_in_all_processes_and_exits_130(tmp_path):
    process = start([*RUN, "--steps", "100_000_000", "--eval-every", "0", "--out", "run"], tmp_path)
    try:
        wait_for_metrics(process, tmp_path / "run", lines=1)
        others = workers(process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert stdout.count("Stopping and saving") == stdout.count("Interrupted after") == 1
    assert "Traceback" not in stderr
    assert len(others) == 1
    assert not any(map(runs, others))
    finish(start(["--resume", "run", "--steps", "1"], tmp_path, processes=None))


@pytest.mark.slow
def test_the_others_end_with_the_first(tmp_path):
    process = start([*RUN, "--steps", "100_000_000", "--eval-every", "0", "--out", "run"], tmp_path)
    try:
        wait_for_metrics(process, tmp_path / "run", lines=1)
        [other] = workers(process)
    finally:
        send_signal([process.pid], signal.SIGKILL)
        process.communicate()
    deadline = time.monotonic() + 60.0
    while runs(other) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(other)


def runs(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return re.search(r"^State:\s+[ZX]", Path(f"/proc/{process}/status").read_text(), re.MULTILINE) is None
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_from_python_and_a_process_that_fails_ends_the_run_with_its_message(tmp_path, monkeypatch):
    config = small_run(processes=2, eval_every=32)
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(processes, "WORKER", "train.runs.failing_worker")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        with pytest.raises(ProcessError, match="process 1 of 2 failed: ValueError: broken in the worker"):
            train(config, tmp_path / "failed", console=QUIET)
    assert distributed.world_size() == 1
    assert not (tmp_path / "failed").exists(), "there is no checkpoint yet"
    result = train(config, tmp_path / "run", console=QUIET, should_continue=lambda *args: not seen.append(args))
    assert (result.steps, result.done) == (64, True), "two processes of 16 steps of two mechs"
    assert [steps for steps, _ in seen] == [0, 64]


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
        refused = start(["--resume", "killed"], tmp_path, processes=None)
        assert "another process is training in this folder" in refused.communicate(timeout=120)[1]
        assert refused.returncode != 0
    finally:
        send_signal(processes, signal.SIGKILL)
        killed.communicate()
    assert 0 < load_checkpoint(tmp_path / "killed").steps < 2048 - 256
    finish(start(["--resume", "killed"], tmp_path, processes=None))
    assert differences(tmp_path / "whole", tmp_path / "killed") == []
    stages = [line["curriculum/scenario"] for line in read_metrics(tmp_path / "whole") if "curriculum/scenario" in line]
    assert list(dict.fromkeys(stages)) == ["duel", "skirmish"]


@pytest.mark.long
def test_two_processes_train_one_member_of_a_league_each_in_its_own_scenario(tmp_path):
    """It adds each snapshot once, plays against it in both processes, and continues."""
    league = League.create(tmp_path / "league")
    arguments = [
        *RUN, "--league", "league", "--role", "main", "--league.stage", "128", "--eval-every", "0",
        "--checkpoint-every", "0", "--eval-opponent", "novice", "--network.critic", "central",
        "--league.self-play", "0", "--out", "run",
    ]  # fmt: skip
    place = arguments.index("--scenario")
    arguments[place : place + 2] = "--scenario", "trio", "--scenario", "duel"
    stdout = finish(start([*arguments, "--steps", "1024"], tmp_path))
    snapshots = [each for each in league.members() if each.kind == "main"]
    assert [each.name for each in snapshots] == [f"main-{number}" for number in range(1, len(snapshots) + 1)]
    assert len(snapshots) >= 3
    assert stdout.count("League: added") == len(snapshots)
    finish(start(["--resume", "run", "--steps", "1536"], tmp_path, processes=None))
    members = {each.name: each.parent for each in league.members()}
    assert members[f"main-{len(snapshots) + 1}"] == snapshots[-1].name
    assert max(line.get("league/opponents", 0) for line in read_metrics(tmp_path / "run")) > 1
    checkpoint = load_checkpoint(tmp_path / "run")
    assert len(checkpoint.battle.blue) == 3, "the first scenario is that of checkpoints"
    assert len(checkpoint.trained_maps) > 4, "those of the two scenarios, which have 4 each"
