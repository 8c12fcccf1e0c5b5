import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.runs.callbacks import StopCallback

ARGUMENTS = ["--opponent", "trivial", "--battles", "2", "--device", "cpu", "--eval-every", "0", "--steps", "100000000"]


WANDB = """
from pathlib import Path
Path(__file__).with_name("imported").touch()
raise ImportError("not requested")
"""


@pytest.mark.long
def test_ctrl_c_saves_says_where_and_exits_130(tmp_path: Path):
    """Weights & Biases is not used before that."""
    out, packages = tmp_path / "run", tmp_path / "packages"
    packages.mkdir()
    (packages / "wandb.py").write_text(WANDB)
    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", "import sys; from echelon_env.cli import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*command, "train", *ARGUMENTS, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": path},
    )
    try:
        metrics = out / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 0):
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert not (packages / "imported").exists()
    checkpoint = load_checkpoint(out)
    assert checkpoint.steps > 0
    assert f"checkpoints/{checkpoint.steps:010d}" in stdout.replace("\n", "")
    assert not [p for p in (out / "checkpoints").iterdir() if p.name.startswith(".")]


def test_a_signal_while_processes_wait_for_each_other_is_not_lost(monkeypatch, quiet):
    callback = StopCallback(quiet, lambda: False)
    callback.model = SimpleNamespace(stopping=False)

    def waiting(flag):
        callback.interrupted = True  # by the handler
        return flag

    monkeypatch.setattr("echelon_train.runs.callbacks.stopping.distributed.any_true", waiting)
    callback._on_rollout_start()
    assert (callback.interrupted, callback.stopping) == (True, False), "the other processes do not know yet"
    callback._on_rollout_start()
    assert callback.stopping and callback.model.stopping
