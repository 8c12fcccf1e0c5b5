"""Fills docs/baselines.md and the line in the README from the stored rows: ``python -m benchmarks.baselines.page``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.baselines import cross, results
from benchmarks.baselines.judge import current
from benchmarks.baselines.plan import (
    BUDGETS,
    GENERALIZATION,
    METHODS,
    SUITE,
    TABLE,
    champion_cost,
)
from benchmarks.machine import ROOT
from benchmarks.tables import filled
from echelon_env.config.opponent import CHAMPION
from echelon_env.evaluate.estimates import Interval, interquartile_mean, score_interval, stratified_bootstrap
from echelon_env.evaluate.players import BASELINES
from echelon_env.storage.atomic import write_bytes

PAGE, README = ROOT / "docs" / "baselines.md", ROOT / "README.md"
PICTURE = ROOT / "docs" / "pictures" / "baselines.png"
OWN = ("scratch", "mappo", "imitation", "imitation-ppo")
"""Methods of the trainer."""
OTHERS = tuple(name for name in METHODS if name not in OWN)

_SCORES = {"W": 1.0, "D": 0.5, "L": 0.0}


@dataclass(frozen=True)
class Entry:
    """The runs of one method in one scenario."""

    scenario: str
    method: str
    rows: tuple[Mapping[str, Any], ...]  # by seed

    @property
    def title(self) -> str:
        """What the table calls the method."""
        if self.method in METHODS:
            return METHODS[self.method].title
        return f"`{self.method}`" if self.method in BASELINES else str(self.method)

    @property
    def trained(self) -> bool:
        """Whether the table trains it; else it is a reference."""
        return self.method in METHODS

    @property
    def opponents(self) -> list[str]:
        """The opponents that it has played, in the suite's order."""
        return [*self.rows[0]["outcomes"][self.scenario]]

    def score(self, opponent: str) -> Interval:
        """The mean score against an opponent, the mean of the runs, with an interval over the maps."""
        return score_interval({self.scenario: self._by_map(opponent).mean(axis=0)})

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(runs, maps): the score of every map, the mean over the opponents."""
        means: NDArray[np.float64] = np.mean([self._by_map(opponent) for opponent in self.opponents], axis=0)
        return means

    @property
    def mean(self) -> Interval:
        """The mean score with an interval over the maps."""
        return score_interval({self.scenario: self.scores.mean(axis=0)})

    @property
    def iqm(self) -> Interval:
        """The interquartile mean of the scores of all runs and maps, with an interval over the maps."""
        strata = {str(number): scores for number, scores in enumerate(self.scores)}
        maps = dict.fromkeys(strata, range(self.scores.shape[1]))
        return stratified_bootstrap(strata, interquartile_mean, maps=maps)

    @property
    def iqm_of_runs(self) -> list[float]:
        """The interquartile mean of each run."""
        return [float(interquartile_mean(scores)) for scores in self.scores]

    @property
    def cost(self) -> tuple[float, float] | None:
        """Decisions and minutes of training, the mean of the runs; None for players that are not trained."""
        if self.method == CHAMPION:
            return champion_cost(self.scenario)
        if "decisions" not in self.rows[0]:
            return None
        decisions, minutes = np.mean([(row["decisions"], row["cpu_minutes"]) for row in self.rows], axis=0)
        return float(decisions), float(minutes)

    def _by_map(self, opponent: str) -> NDArray[np.float64]:
        """(runs, maps): the mean score of a map's two battles."""
        played = [[_SCORES[each] for each in row["outcomes"][self.scenario][opponent]] for row in self.rows]
        means: NDArray[np.float64] = np.array(played).reshape(len(self.rows), -1, 2).mean(axis=2)
        return means


def entries(rows: Iterable[Mapping[str, Any]], scenario: str, suite: str | None = SUITE) -> list[Entry]:
    """The methods of a scenario, the best first."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if (row["scenario"], row["suite"]) == (scenario, suite):
            runs.setdefault(row["method"], []).append(row)
    found = [
        Entry(scenario, method, tuple(sorted(each, key=lambda row: row["seed"] or 0))) for method, each in runs.items()
    ]
    return sorted(found, key=lambda entry: -entry.mean.estimate)


def table(found: Sequence[Entry]) -> str:
    """The methods of a scenario as a table in Markdown."""
    if not found:
        return "No row has been measured yet."
    opponents = list(dict.fromkeys(name for entry in found for name in entry.opponents))
    head = ["method", "runs", *(f"v {name}" for name in opponents), "mean score", "IQM", "IQM of each run"]
    lines = [[*head, "decisions", "minutes"], ["---"] * (len(head) + 2)]
    for entry in found:
        scores = [_share(entry.score(name)) if name in entry.opponents else "-" for name in opponents]
        cost = "-", "-"
        if entry.cost is not None:
            decisions, minutes = entry.cost
            cost = f"{decisions / 1e6:.1f} M", f"{minutes:.0f}"
        of_runs = ", ".join(f"{100 * each:.1f}" for each in entry.iqm_of_runs) if len(entry.rows) > 1 else "-"
        runs = str(len(entry.rows)) if entry.trained else "-"
        lines.append([entry.title, runs, *scores, _share(entry.mean), _share(entry.iqm), of_runs, *cost])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def lacking(rows: Iterable[Mapping[str, Any]]) -> str:
    """The planned runs that lack a row, in words."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for run in results.missing(rows):
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
        lines.append([f"`{entry.method}`", *scores, _share(entry.mean)])
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
            scores = " | ".join(f"{_share(entry.score(name))} %" for name in ("novice", "veteran", "expert"))
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
        lines.append([name, *map(_share, scores.values()), f"{lost:+.1f}"])
        head = ["player", *(f"`{field}`" for field in fields), "unseen - seen"]
    if not lines:
        return "No row has been measured yet."
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


_TRAINED_ON = {"skirmish": "all 16 biomes", "skirmish-seen": "12 biomes"}


def _share(interval: Interval) -> str:
    low, high = round(100 * interval.low), round(100 * interval.high)
    return f"{100 * interval.estimate:.1f} [{low}, {high}]" if low < high else f"{100 * interval.estimate:.1f}"


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
    words = {"missing": lacking, "readme": readme, "generalization": generalization}
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
    for path in (PAGE, README):
        write_bytes(path, filled_page(path.read_text(encoding="utf-8"), rows, pairs).encode())
    if rows:
        draw(rows).savefig(PICTURE, metadata={"Software": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
