"""A training run of the table, whatever its method."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.baselines import one_file, ours, stock
from benchmarks.baselines.budget import Clock
from benchmarks.baselines.plan import BUDGETS, Run
from echelon_env.evaluate import Player
from echelon_env.storage.atomic import write_json
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.runs.building import make_env

FACTS = "facts.json"
"""Says that the training of a run is done, and what it took."""

ONE_FILE = "cleanrl"


def train(run: Run, out: Path, minutes: float) -> dict[str, Any]:
    """Train a run, or go on with it; nothing if it is done. Returns its decisions and minutes.

    Raises ValueError for a folder with a run of another budget.
    """
    facts: dict[str, Any] = {}
    if (out / FACTS).exists():
        facts = json.loads((out / FACTS).read_text())
        if facts["budget_minutes"] != minutes:
            raise ValueError(f"{out}: has a run of {facts['budget_minutes']:g} minutes, expected one of {minutes:g}")
        return facts
    clock, began = Clock(60 * minutes), time.perf_counter()
    assert run.seed is not None, run
    if run.method == ONE_FILE:
        decisions = one_file.train(run.scenario, make_env(battles(run)), run.seed, out, clock)
    elif run.method in stock.ALGORITHMS:
        decisions = stock.train(run.method, make_env(battles(run)), run.seed, out, clock)
    else:
        decisions = ours.run(run.method, run.scenario, run.seed, out, clock)
        facts["curve"] = ours.curve(out)
    facts |= {
        "decisions": decisions, "cpu_minutes": round(clock.used / 60, 2), "budget_minutes": minutes,
        "elapsed_minutes": round((time.perf_counter() - began) / 60, 2),
    }  # fmt: skip
    write_json(out / FACTS, facts)
    return facts


def battles(run: Run) -> TrainConfig:
    """The battles of other libraries' methods: the scenario's own rewards, the suite's levels as opponents."""
    settings = {
        "scenario": run.scenario, "opponent": ours.LEVELS, "eval_opponent": "expert", "seed": str(run.seed),
        "battles": str(BUDGETS[run.scenario].battles), **ours.OWN_REWARDS, "network.critic": "shared",
    }  # fmt: skip
    return load_run_config("skirmish", settings)


def player(run: Run, out: Path) -> Player:
    """The policy of a run that is done; it samples its actions."""
    if run.method == ONE_FILE:
        return one_file.player(out)
    return stock.player(run.method, out) if run.method in stock.ALGORITHMS else ours.player(run.method, out)
