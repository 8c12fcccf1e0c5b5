"""Two runs of the same settings beside each other for some minutes: one on the GPU, one on the CPU."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.gpu.results import Entry
from benchmarks.gpu.setting import Setting, alternatives
from benchmarks.machine import ROOT, cores
from echelon_train.runs.folder import METRICS_FILE, read_metrics

MINUTES = 6.0
POINTS = 40
"""Of a curve that are kept, at most."""
SETTINGS = {
    "opponent": "novice", "eval-every": 0, "checkpoint-every": 0, "seed": 1, "network.critic": "shared",
}  # fmt: skip


def learning(setting: Setting) -> None:
    """Train beside each other, each with half of the cores, and keep the curves."""
    folder = Path(tempfile.mkdtemp())
    devices = {"CPU": "cpu"} if setting.small else {"GPU": str(setting.device), "CPU": "cpu"}
    began: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, device in devices.items():
            began[name] = subprocess.Popen(command(setting, device, folder / name), cwd=ROOT)
        for name, process in began.items():
            try:
                code = process.wait(max(0.0, setting.seconds - setting.elapsed))
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            numbers = curve(folder / name)
            error = "" if code == 0 else f"the run ended with exit code {code}"
            setting.keep(Entry(f"skirmish against novice, {name}", numbers, error))
    finally:
        for process in began.values():  # one that has ended is left alone
            process.kill()
            process.wait()
        shutil.rmtree(folder)


def command(setting: Setting, device: str, out: Path, **changes: Any) -> list[str]:
    """The run's command, with changes of its options: schedules follow the clock, so both runs anneal alike."""
    half = max(1, cores() // 2)
    sizes = {"battles": 2, "ppo.n-steps": 16, "ppo.batch-size": 80, "maps": 2, "network.width": 16, "steps": 640}
    full = {
        "battles": 512, "ppo.n-steps": 32, "ppo.batch-size": 16_384, "maps": 500, "steps": 1_000_000_000,
        "max-minutes": MINUTES,
    }  # fmt: skip
    options = {
        **SETTINGS, **alternatives(setting, sizes, full), "device": device, "threads": half,
        "torch-threads": half if device == "cpu" else 1, "out": out, **changes,
    }  # fmt: skip
    given = itertools.chain.from_iterable((f"--{name}", str(value)) for name, value in options.items())
    return [sys.executable, "-m", "echelon_train", "skirmish", *given]


def curve(out: Path) -> dict[str, Any]:
    """What a run has reached, and its win rate over the minutes."""
    if not (out / METRICS_FILE).exists():
        return {}
    lines = [line for line in read_metrics(out) if "time/time_elapsed" in line]
    if not lines:
        return {}
    seconds, steps = (float(lines[-1][name]) for name in ("time/time_elapsed", "time/total_timesteps"))
    rates = [
        [line["time/time_elapsed"] / 60, 100 * line["battle/win_rate"]]
        for line in lines
        if line.get("battle/win_rate") is not None
    ]
    kept = rates[:: max(1, len(rates) // POINTS)]
    last = {"won at the end, %": rates[-1][1]} if rates else {}
    rate = {"decisions/s": steps / seconds} if seconds else {}
    return {"minutes": seconds / 60, "decisions": steps, **rate, **last, "won over the minutes, %": kept}
