"""The same run with one process, and with two that share the GPU: one computes while the other's battles advance."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.gpu.learning import command
from benchmarks.gpu.results import Entry
from benchmarks.gpu.setting import Setting, alternatives
from benchmarks.machine import ROOT, cores
from echelon_train.runs.folder import METRICS_FILE, read_metrics

MINUTES = 0.4
NAMES = "time/total_timesteps", "time/fps"


def processes(setting: Setting) -> None:
    """Train with the same battles, minibatches and cores in all, one run after the other."""
    battles, batch = alternatives(setting, (4, 160), (512, 16_384))
    for count in (1, 2):
        share = alternatives(setting, 1, max(1, cores() // count))
        changes = {
            "processes": count, "battles": battles // count, "ppo.batch-size": batch // count, "threads": share,
            "torch-threads": share, **alternatives(setting, {"steps": 960}, {"max-minutes": MINUTES}),
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            try:
                run = command(setting, setting.device.type, out, **changes)
                code = subprocess.run(run, cwd=ROOT, timeout=setting.seconds / 2).returncode
                error = "" if code == 0 else f"the run ended with exit code {code}"
            except subprocess.TimeoutExpired:
                error = "stopped: it took too long"
            setting.keep(Entry(f"skirmish, {battles} battles, {count} process{'es' * (count > 1)}", rate(out), error))


def rate(out: Path) -> dict[str, float]:
    """The decisions per second of a run, without its first iteration, which warms up."""
    lines = read_metrics(out) if (out / METRICS_FILE).exists() else []
    decisions, rates = ([line[name] for line in lines if "time/fps" in line] for name in NAMES)
    if len(rates) < 2:
        return {}
    seconds = decisions[-1] / rates[-1] - decisions[0] / rates[0]  # those in the metrics are whole ones
    return {"decisions/s": (decisions[-1] - decisions[0]) / seconds, "iterations": len(rates) - 1}
