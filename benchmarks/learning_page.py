"""Fills docs/learning.md from runs: ``python -m benchmarks.learning_page [FOLDER]``.

FOLDER is the ``--out`` of `benchmarks.learning`. The results of its runs are added to benchmarks/learning.json. The
page's tables and pictures are made from that file and benchmarks/memory_task.json, also without an argument.
``--keep NAME=RUN ...`` adds the configs and curves of further runs to benchmarks/runs.json.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import memory_task
from benchmarks.learning import EXPERIMENTS, folder, results, table
from benchmarks.machine import ROOT
from echelon_env.storage.atomic import write_bytes, write_json
from echelon_train.runs.folder import METRICS_FILE, RUN_FILE, read_metrics
from echelon_train.runs.plots import save_comparison

PAGE = ROOT / "docs" / "learning.md"
KEPT = ROOT / "benchmarks" / "learning.json"
RUNS = ROOT / "benchmarks" / "runs.json"
MEMORY_TASK = "memory-task"
"""What the page calls `benchmarks.memory_task`."""
MARKED = re.compile(r"(<!-- learning: ([\w. -]+) -->\n).*?(<!-- end -->)", re.DOTALL)

STEPS, WIN_RATE, MINUTES = "time/total_timesteps", "battle/win_rate", "minutes"
POINTS = 120
"""Of a run's curve that are kept, at most."""

PICTURES = {
    "fixed_map": {"one map": "fixed-map"},
    "unseen_maps": {
        "Echelon": "unseen-maps",
        "sb3-contrib": "unseen-maps-stock",
        "sb3-contrib, slim": "unseen-maps-stock-slim",
    },
    "skirmish": {
        "imitation": "imitation",
        "PPO": "skirmish-whole",
        "PPO, handicapped experts": "skirmish-whole-handicap",
    },
    "duel": {
        "as shipped": "duel",
        "flat encoder": "duel-flat",
        "plain returns": "duel-plain-returns",
    },
    "duel_entropy": {
        "as shipped": "duel",
        "weight 0": "duel-entropy-0",
        "weight 0.01": "duel-entropy-0.01",
        "weight 0.01, stock's estimate": "duel-entropy-0.01-stock",
    },
    "duel_rewards": {
        "as shipped": "duel",
        "death 5": "duel-death-5",
        "death 20": "duel-death-20",
        "gamma 0.995": "duel-gamma-0.995",
    },
}
"""Experiments that are drawn together, by what the curve is called and by the picture's name."""


def filled(text: str, found: Mapping[str, Any]) -> str:
    """A page whose marked tables are those of the results. Raises ValueError for an experiment that there is not."""

    def part(match: re.Match[str]) -> str:
        names = match[2].split()
        if names == [MEMORY_TASK]:
            return f"{match[1]}{memory_task.table(memory_task.kept())}\n{match[3]}"
        for name in names:
            if name not in EXPERIMENTS:
                raise ValueError(f"{PAGE.name}: expected a mark of experiments, got {name!r}")
        return f"{match[1]}{table(found, names)}\n{match[3]}"

    return MARKED.sub(part, text)


def curve(run: Path, result: Mapping[str, Any]) -> list[list[float]]:
    """Some points of a run's training win rate: (minutes, share), the time being shared out among the decisions."""
    a_step = result["seconds"] / 60 / result["steps"]
    return [[round(steps * a_step, 3), share] for steps, share in points(run)]


def points(run: Path) -> list[tuple[int, float]]:
    """Some points of a run's training win rate: (decisions, share)."""
    found = [(line[STEPS], round(line[WIN_RATE], 3)) for line in read_metrics(run) if WIN_RATE in line]
    return [found[i] for i in np.unique(np.linspace(0, len(found) - 1, min(POINTS, len(found))).astype(int))]


def keep(runs: Mapping[str, Path]) -> None:
    """Add the configs and the curves of runs by name to `RUNS`."""
    kept = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    for name, run in runs.items():
        minutes = max(line.get("time/cpu_minutes", 0.0) for line in read_metrics(run))
        record = json.loads((run / RUN_FILE).read_text())
        kept[name] = {
            "git_commit": record["git_commit"], "cpu_minutes": round(minutes, 1),
            "config": flattened(record["config"]), "decisions_and_win_rate": points(run),
        }  # fmt: skip
    lines = [f"{json.dumps(name)}: {json.dumps(run)}" for name, run in sorted(kept.items())]
    write_bytes(RUNS, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dicts as one dict by keys with dots."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= flattened(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def draw(found: Mapping[str, Any]) -> None:
    """The training win rates of the runs whose curves there are."""
    for picture, experiments in PICTURES.items():
        runs = {
            label: [
                [{MINUTES: minutes, WIN_RATE: share} for minutes, share in one["curve"]]
                for one in found.get(name, ())
                if one["curve"]
            ]
            for label, name in experiments.items()
        }
        drawn = {label: group for label, group in runs.items() if group}
        if drawn:
            save_comparison(_picture(picture), drawn, WIN_RATE, MINUTES, "minutes of one core")


def _picture(name: str) -> Path:
    return ROOT / "docs" / "pictures" / f"learning_{name}.png"


def merged(kept: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """The kept results, with those of a folder's runs added or in their place, experiment by experiment."""
    found = {name: {one["seed"]: one for one in runs} for name, runs in kept.items()}
    for name, runs in results(out).items():
        earlier = found.setdefault(name, {})
        for one in runs:
            run = folder(out, name, one["seed"])
            one["config"] = flattened(one["config"])
            if (run / METRICS_FILE).exists():
                one["curve"] = curve(run, one)
            else:
                one["curve"] = earlier.get(one["seed"], {}).get("curve", [])
            earlier[one["seed"]] = one
    return {name: [found[name][seed] for seed in sorted(found[name])] for name in EXPERIMENTS if name in found}


def main(arguments: list[str] | None = None) -> int:
    """Write the page, and with a folder the kept results and the pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning_page", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="of the runs' folders")
    parser.add_argument("--keep", nargs="+", default=[], metavar="NAME=RUN", help="keep these runs' configs and curves")
    options = parser.parse_args(arguments)
    if options.keep:
        pairs = [each.partition("=") for each in options.keep]
        if not all(name and run for name, _, run in pairs):
            parser.error(f"--keep: expected NAME=RUN, got {' '.join(options.keep)}")
        keep({name: Path(run) for name, _, run in pairs})
    kept = json.loads(KEPT.read_text())
    if options.folder is not None:
        if not results(options.folder):
            parser.error(f"{options.folder}: there are no results of runs")
        kept = merged(kept, options.folder)
        write_json(KEPT, kept)
    draw(kept)
    memory_task.draw(memory_task.kept(), _picture("memory"))
    write_bytes(PAGE, filled(PAGE.read_text(), kept).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
