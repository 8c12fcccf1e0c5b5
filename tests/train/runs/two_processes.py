"""Runs in two processes, from the command line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

RUN = [
    *("--scenario", "duel", "--opponent", "trivial", "--battles", "2", "--device", "cpu", "--eval-battles", "2"),
    *("--maps", "4", "--set", "battle.max_steps=12", "--network.width", "8", "--network.head", "8"),
    *("--ppo.n-steps", "16", "--ppo.batch-size", "16"),
    *("--ppo.n-epochs", "2", "--ppo.learning-rate", "1e-3", "--ppo.ent-coef", "0.01"),
]


def start(arguments: list[str], folder: Path, processes: int | None = 2) -> subprocess.Popen[str]:
    """Start a run in two processes; None: in as many as a resumed run has."""
    command = [sys.executable, "-m", "echelon_env", "train", *arguments]
    return subprocess.Popen(
        command if processes is None else [*command, "--processes", str(processes)],
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


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a process has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


def send_signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        os.kill(process, number)


def wait_for_metrics(process: subprocess.Popen[str], run: Path, lines: int) -> None:
    metrics = run / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= lines):
        time.sleep(0.05)
