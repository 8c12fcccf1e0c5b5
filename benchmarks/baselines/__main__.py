"""One row of the table of baselines, or all that are missing: ``python -m benchmarks.baselines --help``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.baselines import judge, ours, results, stock
from benchmarks.baselines.budget import Clock
from benchmarks.baselines.plan import BUDGETS, METHODS, REFERENCES, SUITE, Run, planned
from echelon_env.evaluate import Player, baseline
from echelon_train.config.files import load_run_config
from echelon_train.config.train import TrainConfig
from echelon_train.runs.building import make_env

_STOCK = tuple(stock.ALGORITHMS)


def train(run: Run, out: Path, minutes: float) -> dict[str, Any]:
    """Train a run, or go on with it. Returns its decisions, minutes and settings."""
    clock, began = Clock(60 * minutes), time.perf_counter()
    if run.method in (*_STOCK, "cleanrl"):
        config = battles(run)
        env = make_env(config)
        if run.method == "cleanrl":
            from benchmarks.baselines import one_file

            decisions = one_file.train(run.scenario, env, run.seed, out, clock)
        else:
            decisions = stock.train(run.method, env, run.seed, out, clock)
            env.close()
    else:
        decisions = ours.run(run.method, run.scenario, run.seed, out, clock)
    return {
        "decisions": decisions, "cpu_minutes": round(clock.used / 60, 2), "budget_minutes": minutes,
        "elapsed_minutes": round((time.perf_counter() - began) / 60, 2),
    }  # fmt: skip


def battles(run: Run) -> TrainConfig:
    """The battles of other libraries' methods: the scenario's own rewards, the suite's levels as opponents."""
    settings = {
        "scenario": run.scenario, "opponent": ours.LEVELS, "seed": str(run.seed),
        "battles": str(BUDGETS[run.scenario].battles), "eval_opponent": "expert", "battle.rewards.zone": "0.25",
        "battle.rewards.outcome": "10", "network.critic": "shared",
    }  # fmt: skip
    return load_run_config("skirmish", settings)


def player(run: Run, out: Path) -> Player:
    """The policy of a run that has ended."""
    if run.method == "cleanrl":
        from benchmarks.baselines import one_file

        return one_file.player(out)
    return stock.player(run.method, out) if run.method in _STOCK else ours.player(run.method, out)


def make_row(run: Run, out: Path, minutes: float) -> None:
    """Train and evaluate a run, and store its row."""
    folder = out / str(run)
    facts = train(run, folder, minutes)
    made = judge.judge(player(run, folder), SUITE, [run.scenario])
    results.append({"scenario": run.scenario, "method": run.method, "seed": run.seed, **facts, **made, **judge.where()})


def make_reference(name: str, scenario: str) -> None:
    """Evaluate a player that is not trained here, and store its row."""
    made = judge.judge(baseline(name), SUITE, [scenario])
    results.append({"scenario": scenario, "method": name, "seed": None, **made, **judge.where()})


def missing(suite: str = SUITE) -> list[Run]:
    """The planned runs without a row, in their order."""
    stored = {results.key(row)[:3] for row in results.read() if row["suite"] == suite}
    return [run for run in planned() if (run.scenario, run.method, run.seed) not in stored]


def main(arguments: list[str] | None = None) -> int:
    """Make one row, or all that are missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    add = parser.add_argument
    add("--method", choices=[*METHODS, *REFERENCES], help="of the row (default: all rows that are missing)")
    add("--scenario", choices=[*BUDGETS], default="duel", help="default: %(default)s")
    add("--seed", type=int, default=1, help="default: %(default)s")
    add("--minutes", type=float, help="of a core for training (default: the scenario's budget)")
    add("--out", type=Path, default=Path("runs/baselines"), help="folder of the runs' folders (default: %(default)s)")
    add("--jobs", type=int, default=2, help="rows at a time, a core each (default: %(default)s)")
    add("--list", action="store_true", help="print the rows that are missing")
    options = parser.parse_args(arguments)
    if options.list:
        print(*missing(), sep="\n")
        return 0
    if options.method in REFERENCES:
        make_reference(options.method, options.scenario)
        return 0
    if options.method:
        run = Run(options.scenario, options.method, options.seed)
        make_row(run, options.out, options.minutes or BUDGETS[run.scenario].minutes)
        return 0
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = [*pool.map(lambda run: _in_a_process(run, options.out), missing())]
    return 1 if any(codes) else 0


def _in_a_process(run: Run, out: Path) -> int:
    row = ["--scenario", run.scenario, "--method", run.method, "--seed", str(run.seed), "--out", str(out)]
    return subprocess.run([sys.executable, "-m", "benchmarks.baselines", *row]).returncode


if __name__ == "__main__":
    sys.exit(main())
