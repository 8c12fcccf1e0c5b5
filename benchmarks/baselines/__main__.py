"""One row of the table of baselines, or all that are missing: ``python -m benchmarks.baselines --help``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.baselines import judge, plan, results, runs
from benchmarks.baselines.judge import current
from benchmarks.baselines.plan import BUDGETS, REFERENCES, TABLE, TRAINED, Run, budget_of, evaluations
from echelon_env.cli.tournament import make_player
from echelon_env.evaluate import Player, baseline


def make_rows(run: Run, out: Path, minutes: float, rows: Path, replace: bool = False) -> None:
    """Train a run unless that is done, evaluate it, and print and store its rows."""
    trained = run.method in TRAINED  # else a player that is not trained here
    facts = runs.train(run, out / str(run), minutes) if trained else {}
    player = runs.player(run, out / str(run)) if trained else baseline(run.method)
    for suite, scenarios in evaluations(run):
        add_row(run, player, suite, scenarios, facts, rows, replace)


def add_row(
    run: Run, player: Player, suite: str, scenarios: Iterable[str], facts: dict[str, Any], rows: Path, replace: bool
) -> None:
    """Evaluate a policy on scenarios of a suite, and print and store its row."""
    made = judge.judge(player, suite, scenarios)
    row = {"scenario": run.scenario, "method": run.method, "seed": run.seed, **facts, **made, **judge.where()}
    stored = results.append(row, rows, replace)
    print(f"{run} on {suite}: {'stored' if stored else 'not stored, as there is a row; --replace replaces it'}")
    for scenario, outcomes in made["outcomes"].items():
        wins = (f"{played.count('W')} v {name}" for name, played in outcomes.items())
        print(f"  {scenario}: of {len(next(iter(outcomes.values())))} battles each won {', '.join(wins)}")


def missing(rows: Path) -> list[Run]:
    """The planned runs that lack a row of the present rules and opponents, in their order."""
    return results.missing(current(results.read(rows)))


def main(arguments: list[str] | None = None) -> int:
    """Make one row, or all that are missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    add = parser.add_argument
    add("--method", choices=[*TRAINED, *REFERENCES], help="of the row (default: all rows that are missing)")
    add("--scenario", choices=[*BUDGETS], default="duel", help="default: %(default)s")
    add("--seed", type=int, default=1, help="default: %(default)s")
    add("--minutes", type=float, help="of a core for training (default: the scenario's budget)")
    add("--player", metavar="PLAYER", help="evaluate this player of echelon evaluate instead of training one")
    add("--title", help="of the player's row (default: the player)")
    add("--decisions", type=float, help="that the player was trained for")
    add("--out", type=Path, default=Path("runs/baselines"), help="folder of the runs' folders (default: %(default)s)")
    add("--rows", type=Path, default=results.FILE, help="file that rows are added to (default: the published one)")
    add("--replace", action="store_true", help="store the row in place of one that is there")
    add("--jobs", type=int, default=2, help="runs at a time, a core each (default: %(default)s)")
    add("--list", action="store_true", help="print the runs that are missing")
    options = parser.parse_args(arguments)
    if options.list:
        print(*missing(options.rows), sep="\n")
    elif options.player:
        if (options.title or options.player) in (*TRAINED, *REFERENCES) or options.scenario not in TABLE:
            parser.error(f"--player: expected a title of its own and a scenario of {', '.join(TABLE)}")
        if (options.decisions is None) != (options.minutes is None):
            parser.error("--player: expected both --decisions and --minutes, or neither")
        cost = {"decisions": options.decisions, "cpu_minutes": options.minutes}
        facts = cost if None not in cost.values() else {}
        run = Run(options.scenario, options.title or options.player, None)
        player = make_player(options.player, 0)
        add_row(run, player, plan.SUITE, [run.scenario], facts, options.rows, options.replace)
    elif options.method:
        if options.method in TRAINED and options.scenario not in TRAINED[options.method].scenarios:
            parser.error(f"{options.method} is not planned in {options.scenario}")
        run = Run(options.scenario, options.method, options.seed if options.method in TRAINED else None)
        make_rows(
            run,
            options.out,
            options.minutes or budget_of(run.method, run.scenario).minutes,
            options.rows,
            options.replace,
        )
    else:
        with ThreadPoolExecutor(options.jobs) as pool:
            codes = pool.map(lambda run: _in_a_process(run, options.out, options.rows), missing(options.rows))
            return 1 if any([*codes]) else 0
    return 0


def _in_a_process(run: Run, out: Path, rows: Path) -> int:
    row = ["--scenario", run.scenario, "--method", run.method]
    row += [] if run.seed is None else ["--seed", str(run.seed)]
    files = ["--out", str(out), "--rows", str(rows), "--replace"]  # of other rules, if there is one
    return subprocess.run([sys.executable, "-m", "benchmarks.baselines", *row, *files]).returncode


if __name__ == "__main__":
    sys.exit(main())
