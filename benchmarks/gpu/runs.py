"""Runs of `echelon train` with the same settings: on the GPU and on the CPU, or of one process and of several."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.results import Entry
from benchmarks.gpu.setting import Setting, alternatives
from benchmarks.gpu.training import MAPS
from benchmarks.machine import ROOT, cores
from echelon_train.runs.folder import METRICS_FILE, read_metrics

LEARNING_MINUTES, PROCESSES_MINUTES = 3.5, 0.4
POINTS = 40
"""Of a curve that are kept, at most."""
SETTINGS = {
    "opponent": "novice", "eval-every": 0, "checkpoint-every": 0, "seed": 1, "network.critic": "shared",
}  # fmt: skip
VISIBLE = "CUDA_VISIBLE_DEVICES"

Metrics = list[dict[str, Any]]


def learning(setting: Setting) -> None:
    """Two runs beside each other for some minutes, each with half of the cores; their curves are kept.

    Schedules follow the clock, so both anneal alike.
    """
    half = max(1, cores() // 2)
    where = {"CPU": "cpu"} if setting.small else {"GPU": str(setting.device), "CPU": "cpu"}
    cases = {
        f"skirmish against novice, {name}": {
            "device": device, "threads": half, "torch-threads": half if device == "cpu" else 1,
            **alternatives(setting, {}, {"max-minutes": LEARNING_MINUTES}),
        }
        for name, device in where.items()
    }  # fmt: skip
    with ThreadPoolExecutor(len(cases)) as pool:
        for entry in pool.map(lambda name: train(setting, name, cases[name], setting.seconds, curve), cases):
            setting.keep(entry)


def processes(setting: Setting) -> None:
    """A run of one process, then one of two that share the GPU, with the same battles and minibatches in all.

    One may compute while the other's battles advance.
    """
    for count in (1, 2):
        several(setting, f"{count} process{'es' * (count > 1)}", count, setting.device.index)


def gpus(setting: Setting) -> None:
    """The same run of one process on a GPU, then of two with a GPU each. A machine with one GPU measures nothing."""
    if not setting.small and torch.cuda.device_count() < 2:
        print("one GPU here: two are needed")
        return
    several(setting, "1 GPU", 1, setting.device.index)
    several(setting, "2 GPUs", 2, None)


def several(setting: Setting, name: str, count: int, gpu: int | None) -> None:
    """A short run of so many processes, with the same battles and minibatches in all. They see one GPU; None: all."""
    battles, batch = alternatives(setting, (4, 160), (512, 16_384))
    changes = {
        "processes": count, "battles": battles // count, "ppo.batch-size": batch // count, "maps": MAPS,
        "device": setting.device.type, "threads": alternatives(setting, 1, max(1, cores() // count)),
        "torch-threads": 1, **alternatives(setting, {"steps": 1280}, {"max-minutes": PROCESSES_MINUTES}),
    }  # fmt: skip
    setting.keep(train(setting, f"skirmish, {battles} battles, {name}", changes, setting.seconds / 2, rate, gpu))


def train(
    setting: Setting,
    name: str,
    changes: Mapping[str, Any],
    seconds: float,
    numbers: Callable[[Metrics], dict[str, Any]],
    gpu: int | None = None,
) -> Entry:
    """The numbers of a run's metrics, and its error if it failed or took longer."""
    small = {"battles": 2, "ppo.n-steps": 16, "ppo.batch-size": 80, "maps": 2, "network.width": 16, "steps": 640}
    full = {"battles": 512, "ppo.n-steps": 32, "ppo.batch-size": 16_384, "maps": 500, "steps": 1_000_000_000}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        options = {**SETTINGS, **alternatives(setting, small, full), **changes, "out": out}
        given = itertools.chain.from_iterable((f"--{key}", str(value)) for key, value in options.items())
        command = [sys.executable, "-m", "echelon_env", "train", "skirmish", *given]
        try:
            code = subprocess.run(command, cwd=ROOT, env=environment(gpu), timeout=seconds).returncode
            error = f"the run ended with exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            error = "stopped: it took too long"
        found = numbers(read_metrics(out) if (out / METRICS_FILE).exists() else [])
    return Entry(name, found, error or ("" if found else "too few iterations"))


def environment(gpu: int | None) -> dict[str, str]:
    """The environment of a process that sees one GPU of those that this process sees; of None all."""
    if gpu is None:
        return dict(os.environ)
    seen = [name for name in os.environ.get(VISIBLE, "").split(",") if name]
    return {**os.environ, VISIBLE: seen[gpu] if seen else str(gpu)}


def curve(metrics: Metrics) -> dict[str, Any]:
    """What a run has reached, and its win rate over the minutes."""
    lines = [line for line in metrics if "time/time_elapsed" in line]
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


def rate(metrics: Metrics) -> dict[str, float]:
    """The decisions per second of a run, without its first update and rollout. A line is written between both."""
    names = "time/total_timesteps", "time/fps"
    decisions, rates = ([line[name] for line in metrics if "time/fps" in line][1:] for name in names)
    if len(rates) < 2:
        return {}
    seconds = decisions[-1] / rates[-1] - decisions[0] / rates[0]  # those in the metrics are whole ones
    return {"decisions/s": (decisions[-1] - decisions[0]) / seconds, "iterations": len(rates) - 1}
