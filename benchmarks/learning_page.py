"""Fills docs/learning.md from runs: ``python -m benchmarks.learning_page [FOLDER]``.

FOLDER is what `benchmarks.learning` was given as ``--out``. What came of its runs is kept in benchmarks/learning.json,
from which, without an argument, the page's tables are made anew; curves are drawn from the runs' metrics.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.learning import EXPERIMENTS, folder, results, table
from benchmarks.machine import ROOT
from echelon_env.atomic import write_bytes, write_json
from echelon_train.plots import save_comparison

PAGE = ROOT / "docs" / "learning.md"
KEPT = ROOT / "benchmarks" / "learning.json"
MARKED = re.compile(r"(<!-- learning: ([\w. -]+) -->\n).*?(<!-- end -->)", re.DOTALL)

PICTURES = {
    "fixed_map": {"one map": "fixed-map"},
    "unseen_maps": {"Echelon": "unseen-maps", "sb3-contrib": "unseen-maps-stock"},
    "duel": {
        "as shipped": "duel",
        "flat encoder": "duel-flat",
        "plain returns": "duel-plain-returns",
        "entropy not rewarded": "duel-entropy-0",
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
        for name in names:
            if name not in EXPERIMENTS:
                raise ValueError(f"{PAGE.name}: expected a mark of experiments, got {name!r}")
        return f"{match[1]}{table(found, names)}\n{match[3]}"

    return MARKED.sub(part, text)


def draw(out: Path, found: Mapping[str, Any]) -> None:
    """The training win rates of the runs that there are."""
    for picture, experiments in PICTURES.items():
        runs = {
            label: [folder(out, name, one["seed"]) for one in found[name]]
            for label, name in experiments.items()
            if name in found
        }
        if runs:
            save_comparison(ROOT / "docs" / "pictures" / f"learning_{picture}.png", runs, "battle/win_rate")


def main(arguments: list[str] | None = None) -> int:
    """Write the page, and with a folder the kept results and the pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning_page", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="of the runs' folders")
    options = parser.parse_args(arguments)
    if options.folder is not None:
        found = results(options.folder)
        if not found:
            parser.error(f"{options.folder}: there are no results of runs")
        draw(options.folder, found)
        write_json(KEPT, found)
    write_bytes(PAGE, filled(PAGE.read_text(), json.loads(KEPT.read_text())).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
