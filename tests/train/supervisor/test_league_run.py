"""`echelon league run` with real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from echelon_train.supervisor.children import MAX_LOG, Child, last_line
from train.league.leagues import SCRIPT_ENVIRONMENT, saved

COMMAND = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main(sys.argv[1:]))"]
SETTINGS = [
    f"--set={each}"
    for each in (
        "scenario=duel-open", "battle.max_steps=20", "battles=2", "maps=4", "ppo.n_steps=16", "ppo.batch_size=32",
        "ppo.n_epochs=1", "network.width=8", "network.head=8", "network.critic=shared", "league.stage=128",
        "ppo.critic_warmup=1", "checkpoint_every=64", "eval_every=0",
    )
]  # fmt: skip


def start(league: Path, *options: str) -> subprocess.Popen:
    command = [*COMMAND, "league", "run", str(league), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        env=SCRIPT_ENVIRONMENT,
        stdout=pipe,
        stderr=pipe,
        text=True,
        preexec_fn=without_nohup,  # noqa: PLW1509  (there are no threads)
    )


def without_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait(condition, process, seconds=300.0):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.2)


def names(league: Path) -> set[str]:
    return {each.name for each in League.open(league).members()} if (league / "league.db").exists() else set()


def test_unusable_options_leave_nothing(commands, tmp_path):
    league = tmp_path / "league"
    assert "expected at least one learner" in commands.refusal("run", league, "--main", "0", "--exploiter", "0")
    assert "main" in commands.refusal("run", league, "--main", "99")
    assert "batles" in commands.refusal("run", league, "--set", "batles=8")
    assert "no such file" in commands.refusal("run", league, "--init", tmp_path / "absent")
    assert "maps: expected at least 2, one for every scenario, got 1" in commands.refusal("run", league, "--maps", "1")
    assert "coach" in commands.refusal("run", league, "--coach", "1")
    other = saved(tmp_path / "small-network", 1)
    assert "init" in commands.refusal("run", league, "--init", other), "its network has other shapes"
    assert not league.exists()
    (tmp_path / "file").write_text("")
    assert "is no league" in commands.refusal("run", tmp_path / "file")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_league_from_nothing_that_is_killed_and_continued(device, commands, tmp_path):
    policy = saved(tmp_path / "policy", 1)
    league = tmp_path / "league"
    matches = ["--maps", "1", "--until-rd", "150"]
    options = ["--init", str(policy), "--patience", "0", f"--set=device={device}"]
    first = start(league, *options, *matches, *SETTINGS)
    wait(lambda: {"start", "main-1"} <= names(league), first)
    assert names(league) >= {"novice", "trivial", "competent", "veteran", "expert"}
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert not [*fsck(league)]
    before = names(league)

    second = start(league, "--json")  # the plan and its settings are kept
    highest = max(int(each.rpartition("-")[2]) for each in before if each.startswith("main-"))
    wait(lambda: f"main-{highest + 1}" in names(league), second)
    assert before <= names(league)
    for option in ("--set=battles=4", "--config=duel"):
        assert "keep their settings" in commands.refusal("run", league, option)
    assert "another process runs this league" in commands.refusal("run", league)
    second.send_signal(signal.SIGHUP)
    second.send_signal(signal.SIGHUP)  # a closed terminal sends it more than once
    output, _ = second.communicate(timeout=120)
    assert second.returncode == 130
    assert json.loads(output)["interrupted"] is True
    assert not [*fsck(league)] and League.open(league).rebuild() == 0
    log = (league / "runs" / "run.log").read_text()
    assert log.count("the league run begins") == 2 and log.rstrip().endswith("the league run ends")
    assert (league / "runs" / "main" / "last.json").exists()
    assert "Interrupted after" in (league / "runs" / "main.log").read_text()


def test_a_child_ends_with_its_parent(tmp_path):
    child = Child(["league", "init", str(tmp_path / "league"), "--help"], tmp_path / "log")
    child.process.wait(60)
    assert child.poll() == 0 and "usage" in (tmp_path / "log").read_text()
    script = (
        "import sys, time\n"
        "from echelon_train.supervisor import child\n"
        "child.command_line = lambda arguments: time.sleep(600)\n"
        "sys.exit(child.main([]))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, env=SCRIPT_ENVIRONMENT)
    time.sleep(1.0)
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(60) == -signal.SIGTERM


def test_logs_are_bounded_and_their_last_line_is_the_reason(tmp_path):
    log = tmp_path / "main.log"
    assert last_line(log) == ""
    log.write_bytes(b"x" * (MAX_LOG + 1) + b"\nechelon: it broke\n\n")
    assert last_line(log) == "it broke"
    child = Child(["--version"], log)
    child.process.wait(60)
    assert child.poll() == 0
    assert log.stat().st_size < 1000 and log.with_suffix(".old").stat().st_size > MAX_LOG
