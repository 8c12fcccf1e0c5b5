"""Fills pages and the README from the stored rows: ``python -m benchmarks.baselines.page``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.baselines import ablations, cross, results
from benchmarks.baselines.entries import Entry, entries, in_percent
from benchmarks.baselines.judge import current
from benchmarks.baselines.plan import (
    ABLATIONS,
    BUDGETS,
    GENERALIZATION,
    METHODS,
    TABLE,
    champion_cost,
)
from benchmarks.machine import ROOT
from benchmarks.tables import filled
from echelon_env.config.opponent import CHAMPION
from echelon_env.storage.atomic import write_bytes

RESULTS = ROOT / "docs" / "results"
PAGES = RESULTS / "baselines.md", RESULTS / "learning.md", ROOT / "README.md"
PICTURES = ROOT / "docs" / "pictures"
OWN = ("scratch", "mappo", "imitation", "imitation-ppo")
"""Methods of the trainer."""
OTHERS = tuple(name for name in METHODS if name not in OWN)


def table(found: Sequence[Entry]) -> str:
    """The methods of a scenario as a table in Markdown."""
    if not found:
        return "No row has been measured yet."
    opponents = list(dict.fromkeys(name for entry in found for name in entry.opponents))
    head = ["method", "runs", *(f"v {name}" for name in opponents), "mean score", "IQM", "IQM of each run"]
    lines = [[*head, "decisions", "minutes"], ["---"] * (len(head) + 2)]
    for entry in found:
        scores = [in_percent(entry.score(name)) if name in entry.opponents else "-" for name in opponents]
        cost = "-", "-"
        if entry.cost is not None:
            decisions, minutes = entry.cost
            cost = f"{decisions / 1e6:.1f} M", f"{minutes:.0f}"
        of_runs = ", ".join(f"{100 * each:.1f}" for each in entry.iqm_of_runs) if len(entry.rows) > 1 else "-"
        runs = str(len(entry.rows)) if entry.trained else "-"
        lines.append([entry.title, runs, *scores, in_percent(entry.mean), in_percent(entry.iqm), of_runs, *cost])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def lacking(rows: Iterable[Mapping[str, Any]]) -> str:
    """The planned runs of the tables that lack a row, in words."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for run in (each for each in results.missing(rows) if each.method not in ABLATIONS):
        seeds.setdefault((run.scenario, run.method), []).extend([] if run.seed is None else [run.seed])
    if not seeds:
        return "Nothing is missing."
    lines = ["Not measured yet:", ""]
    for (scenario, method), each in seeds.items():
        title = METHODS[method].title if method in METHODS else f"`{method}`"
        lines.append(f"- `{scenario}`, {title}" + (f": seed {_list(each)}" if each else ""))
    return "\n".join(lines)


def cross_table(found: Sequence[Entry]) -> str:
    """Mean scores of each policy (rows) against each other one (columns), in per cent."""
    if not found:
        return "Not measured yet."
    head = ["", *(f"`{entry.method}`" for entry in found), "mean score"]
    lines = [head, ["---"] * len(head)]
    for entry in found:
        scores = (
            f"{100 * entry.score(other.method).estimate:g}" if other.method in entry.opponents else ""
            for other in found
        )
        lines.append([f"`{entry.method}`", *scores, in_percent(entry.mean)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def readme(rows: Sequence[Mapping[str, Any]]) -> str:
    """The champion, the best method of the trainer and the best of the others, for the first page."""
    lines = ["| scenario | method | v novice | v veteran | v expert |", "|---|---|---|---|---|"]
    for scenario in TABLE:
        found = entries(rows, scenario)
        best = (
            next((entry for entry in found if entry.method in methods), None) for methods in ((CHAMPION,), OWN, OTHERS)
        )
        for entry in filter(None, best):
            scores = " | ".join(f"{in_percent(entry.score(name))} %" for name in ("novice", "veteran", "expert"))
            runs = f"{len(entry.rows)} run{'s' * (len(entry.rows) > 1)}"
            _, minutes = entry.cost or (0.0, BUDGETS[scenario].minutes)
            lines.append(f"| `{scenario}`, {minutes:.0f} min, {runs} | {entry.title} | {scores} |")
    return "\n".join(lines)


def generalization(rows: Iterable[Mapping[str, Any]]) -> str:
    """Mean scores on biomes and team sizes: a line for each run of the recipe and for each reference."""
    lines = []
    for row in sorted(rows, key=lambda row: (row["scenario"], row["method"], row["seed"] or 0)):
        if row["suite"] != GENERALIZATION:
            continue
        fields = {field: Entry(field, row["method"], (row,)) for field in row["outcomes"]}
        title, scores = next(iter(fields.values())).title, {field: entry.mean for field, entry in fields.items()}
        name = f"{title}, {_TRAINED_ON[row['scenario']]}, seed {row['seed']}" if row["method"] in METHODS else title
        lost = 100 * (scores["skirmish-unseen"].estimate - scores["skirmish-seen"].estimate)
        lines.append([name, *map(in_percent, scores.values()), f"{lost:+.1f}"])
        head = ["player", *(f"`{field}`" for field in fields), "unseen - seen"]
    if not lines:
        return "No row has been measured yet."
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


_TRAINED_ON = {"skirmish": "all 16 biomes", "skirmish-seen": "12 biomes"}


def _list(seeds: Sequence[int]) -> str:
    return " and ".join(filter(None, [", ".join(map(str, seeds[:-1])), str(seeds[-1])]))


def draw(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Mean scores of all methods, a panel for each scenario."""
    panels = {name: found for name in TABLE if (found := entries(rows, name))}
    sizes = [len(found) for found in panels.values()]
    figure = Figure((9, 0.6 + 0.27 * sum(sizes) + 0.45 * len(sizes)), dpi=110, layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": sizes})
    for axes, (name, found) in zip(grid[:, 0], panels.items(), strict=True):
        _panel(axes, name, found)
    grid[-1, 0].set_xlabel("mean score against the suite's opponents in %, with 95 % interval over maps")
    return figure


def _panel(axes: Axes, scenario: str, found: Sequence[Entry]) -> None:
    for place, entry in enumerate(found):
        mean = entry.mean
        color = "#1f5fa8" if entry.trained else "#8a8a8a"
        axes.plot([100 * mean.low, 100 * mean.high], [place, place], color=color, linewidth=2, solid_capstyle="round")
        axes.plot([100 * mean.estimate], [place], "o", color=color, markersize=5)
        for score in entry.scores.mean(axis=1) if len(entry.rows) > 1 else ():
            axes.plot([100 * score], [place], "|", color=color, markersize=9)
    axes.set_yticks(range(len(found)), [entry.title.replace("`", "") for entry in found], fontsize=8)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlim(-2, 102)
    minutes = BUDGETS[scenario].minutes
    champion = champion_cost(scenario)[1]
    title = f"{scenario}: {minutes:g} minutes of one core (champion: {champion:.0f})"
    axes.set_title(title, fontsize=9, loc="left")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def filled_page(text: str, rows: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]]) -> str:
    """A page whose marked parts are those of the rows and of the rows of cross-play."""
    return filled(text, "baselines", lambda name: _part(name, rows, pairs))


def _part(name: str, rows: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]]) -> str:
    """What a mark of a page stands for, of rows and of rows of cross-play. Raises ValueError for a name of none."""
    words = {"missing": lacking, "readme": readme, "generalization": generalization, "ablations": ablations.table}
    if name in words:
        return words[name](rows)
    scenario = name.removeprefix("cross-")
    if scenario not in TABLE:
        marks = *words, *TABLE, *(f"cross-{each}" for each in TABLE)
        raise ValueError(f"expected a mark of {', '.join(marks)}, got {name!r}")
    return table(entries(rows, name)) if name == scenario else cross_table(entries(pairs, scenario))


def main(arguments: list[str] | None = None) -> int:
    """Write the page, its picture, and the README, or print the tables of other rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines.page", description=__doc__)
    parser.add_argument("--rows", type=Path, help="print the tables of the rows in this file, and write nothing")
    options = parser.parse_args(arguments)
    if options.rows is not None:
        chosen = current(results.read(options.rows))
        if not chosen:
            parser.error(
                f"--rows: expected rows of the installed suite, engine and opponents in {options.rows}, got none"
            )
        print(*(f"{name}\n\n{table(found)}\n" for name in TABLE if (found := entries(chosen, name))), sep="\n")
        return 0
    rows, pairs = (current(results.read(file)) for file in (results.FILE, cross.FILE))
    for path in PAGES:
        write_bytes(path, filled_page(path.read_text(encoding="utf-8"), rows, pairs).encode())
    if rows:
        draw(rows).savefig(PICTURES / "baselines.png", metadata={"Software": None})
    if ablations.measured(rows):
        ablations.draw(rows).savefig(PICTURES / "ablations.png", metadata={"Software": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
