"""The champion and the scripted levels against each other in the scenarios that no suite of the table has.

``python -m benchmarks.baselines.ladder`` plays what is missing. ``echelon evaluate champion expert veteran competent
novice trivial --scenario NAME --battles 100`` plays the same battles of one scenario.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.baselines import results
from benchmarks.baselines.cross import all_pairs
from benchmarks.baselines.judge import current, judged, where
from benchmarks.baselines.plan import GENERALIZATION, SUITE
from benchmarks.machine import ROOT
from echelon_env import scenario_names, scenarios
from echelon_env.config.opponent import CHAMPION
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate import baseline, load_suite
from echelon_env.evaluate.seeds import evaluation_seed

FILE = ROOT / "docs" / "results" / "ladders.json"
"""Rows as those of the table, without a suite."""

PLAYERS = (CHAMPION, *reversed([*LEVELS]))
BATTLES = 100
"""Of each pair: half as many maps, each from both sides."""


def without_suite() -> list[str]:
    """The scenarios that no suite of the table has, in their order."""
    covered = {each.name for name in (SUITE, GENERALIZATION) for each in load_suite(name).scenarios}
    return [name for name in scenario_names() if name not in covered]


def missing(rows: Path) -> list[str]:
    """The scenarios that lack rows of the present rules and opponents."""
    stored = {(row["scenario"], row["method"]) for row in current(results.read(rows))}
    return [name for name in without_suite() if not stored.issuperset((name, player) for player in PLAYERS)]


def play(scenario: str, battles: int, rows: Path) -> None:
    """Play all pairs, and store a row for each player in place of one that is there."""
    seeds = [evaluation_seed(0, index) for index in range(battles // 2)]
    players = {name: baseline(name) for name in PLAYERS}
    for name, played in all_pairs(players, scenarios()[scenario].config, seeds, scenario).items():
        row = {"scenario": scenario, "method": name, "seed": None, **judged(None, {scenario: played})}
        results.append({**row, **where()}, rows, replace=True)


def main(arguments: list[str] | None = None) -> int:
    """Play and store the ladders that are missing, or that of one scenario."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines.ladder", description=__doc__)
    add = parser.add_argument
    add("--scenario", choices=without_suite(), help="default: all whose rows are missing")
    add("--battles", type=int, default=BATTLES, help="of each pair (default: %(default)s)")
    add("--rows", type=Path, default=FILE, help="file that rows are added to (default: the published one)")
    options = parser.parse_args(arguments)
    if options.battles < 2 or options.battles % 2:
        parser.error(
            f"--battles: expected an even number, as each map is played from both sides, got {options.battles}"
        )
    if options.battles != BATTLES and options.rows == FILE:
        parser.error(f"--battles: the published ladders have {BATTLES}, expected another file in --rows")
    for scenario in [options.scenario] if options.scenario else missing(options.rows):
        play(scenario, options.battles, options.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
