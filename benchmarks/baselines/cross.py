"""Cross-play of the trained policies of a scenario: ``python -m benchmarks.baselines.cross --scenario duel``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from benchmarks.baselines import results, runs
from benchmarks.baselines.judge import LETTERS, current, judged, where
from benchmarks.baselines.plan import BUDGETS, METHODS, SUITE, TABLE, Run
from benchmarks.machine import ROOT
from echelon_env import BattleConfig
from echelon_env.config.opponent import CHAMPION
from echelon_env.evaluate import Player, baseline, load_suite, play_match

FILE = ROOT / "docs" / "results" / "baselines-cross.json"
"""Rows as those of the table, whose opponents are the other policies."""

REFERENCES = (CHAMPION, "expert")
MAPS = 20
"""Of the suite, the first ones; each is played from both sides."""


def policies(scenario: str, out: Path) -> dict[Run, Player]:
    """The references, and the policies of each method's first run, if its training is done."""
    first = [Run(scenario, name, BUDGETS[scenario].seeds[0]) for name in METHODS]
    done = [run for run in first if (out / str(run) / runs.FACTS).exists()]
    references = {Run(scenario, name, None): baseline(name) for name in REFERENCES}
    return references | {run: runs.player(run, out / str(run)) for run in done}


def play(scenario: str, out: Path, rows: Path) -> None:
    """Play all pairs, and store a row for each policy in place of one that is there.

    The references' rows keep their outcomes against policies that are not there any more. Raises ValueError if no run
    of the scenario is done.
    """
    suite, players = load_suite(SUITE), policies(scenario, out)
    if len(players) == len(REFERENCES):
        raise ValueError(f"{out}: expected at least one run of {scenario} whose training is done, got none")
    config, seeds = suite.config(scenario), suite.scenario(scenario).seeds[:MAPS]
    outcomes = all_pairs({run.method: player for run, player in players.items()}, config, seeds, scenario)
    kept = {
        row["method"]: row["outcomes"][scenario]
        for row in current(results.read(rows))
        if row["scenario"] == scenario and row["method"] in REFERENCES
    }
    for run in players:
        judgement = judged(SUITE, {scenario: kept.get(run.method, {}) | outcomes[run.method]})
        row = {"scenario": scenario, "method": run.method, "seed": run.seed, **judgement}
        results.append({**row, **where()}, rows, replace=True)


def all_pairs(
    players: Mapping[str, Player], config: BattleConfig, seeds: Sequence[int], scenario: str
) -> dict[str, dict[str, str]]:
    """The outcomes of each player against each other one, by their names, on the maps of the seeds."""
    outcomes: dict[str, dict[str, str]] = {name: {} for name in players}
    for first, second in combinations(players, 2):
        battles = play_match(players[first], players[second], config, seeds, scenario=scenario).battles
        outcomes[first][second] = "".join(LETTERS[battle.outcome] for battle in battles)
        outcomes[second][first] = "".join(LETTERS[-battle.outcome] for battle in battles)
        won = outcomes[first][second].count("W")
        print(f"{scenario}: {first} v {second}: {won} of {len(battles)} won", flush=True)
    return outcomes


def main(arguments: list[str] | None = None) -> int:
    """Play and store the cross-play of a scenario."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines.cross", description=__doc__)
    add = parser.add_argument
    add("--scenario", choices=TABLE, default="duel", help="default: %(default)s")
    add("--out", type=Path, default=Path("runs/baselines"), help="folder of the runs' folders (default: %(default)s)")
    add("--rows", type=Path, default=FILE, help="file that rows are added to (default: the published one)")
    options = parser.parse_args(arguments)
    try:
        play(options.scenario, options.out, options.rows)
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
