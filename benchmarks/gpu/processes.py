"""The same run with one process, and with two that share the GPU: one may compute while the other's battles advance."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks.gpu.learning import command
from benchmarks.gpu.results import Entry
from benchmarks.gpu.setting import Setting, alternatives
from benchmarks.gpu.training import MAPS
from benchmarks.machine import ROOT, cores
from echelon_train.runs.folder import METRICS_FILE, read_metrics

MINUTES = 0.4
VISIBLE = "CUDA_VISIBLE_DEVICES"
NAMES = "time/total_timesteps", "time/fps"


def processes(setting: Setting) -> None:
    """Train with the same battles and minibatches in all, one run after the other."""
    battles, batch = alternatives(setting, (4, 160), (512, 16_384))
    for count in (1, 2):
        share = alternatives(setting, 1, max(1, cores() // count))
        changes = {
            "processes": count, "battles": battles // count, "ppo.batch-size": batch // count, "threads": share,
            "maps": MAPS,
            **alternatives(setting, {"steps": 1280}, {"max-minutes": MINUTES}),
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            run = command(setting, setting.device.type, out, **changes)
            try:
                code = subprocess.run(
                    run, cwd=ROOT, env=environment(setting.device.index), timeout=setting.seconds / 2
                ).returncode
                error = f"the run ended with exit code {code}" if code else ""
            except subprocess.TimeoutExpired:
                error = "stopped: it took too long"
            numbers = rate(out)
            error = error or ("" if numbers else "fewer than three iterations")
            setting.keep(Entry(f"skirmish, {battles} battles, {count} process{'es' * (count > 1)}", numbers, error))


def environment(gpu: int | None) -> dict[str, str]:
    """The environment of a process that sees one GPU of those that this process sees."""
    if gpu is None:
        return dict(os.environ)
    seen = [name for name in os.environ.get(VISIBLE, "").split(",") if name]
    return {**os.environ, VISIBLE: seen[gpu] if seen else str(gpu)}


def rate(out: Path) -> dict[str, float]:
    """The decisions per second of a run, without its first update and rollout. A line is written between both."""
    lines = read_metrics(out) if (out / METRICS_FILE).exists() else []
    decisions, rates = ([line[name] for line in lines if "time/fps" in line][1:] for name in NAMES)
    if len(rates) < 2:
        return {}
    seconds = decisions[-1] / rates[-1] - decisions[0] / rates[0]  # those in the metrics are whole ones
    return {"decisions/s": (decisions[-1] - decisions[0]) / seconds, "iterations": len(rates) - 1}
