"""The experiments' table and picture, from the rows of the ablations: parts of docs/results/learning.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from benchmarks.baselines.entries import Entry, entries, in_percent
from benchmarks.baselines.plan import ABLATION, ABLATIONS
from echelon_env.evaluate.estimates import CONFIDENCE, Interval

SCENARIO = "skirmish"
FEWEST = 3
"""Runs from which on an interval over them says something."""
SHOWN = ("novice", "competent", "veteran", "expert")
"""Opponents with a column; the mean score is over all of the suite's."""


def over_seeds(scores: Sequence[float]) -> Interval:
    """The mean of the runs' scores, with Student's interval over the runs; of fewer than `FEWEST` without one."""
    mean = float(np.mean(scores))
    if len(scores) < FEWEST:
        return Interval(mean, mean, mean)
    low, high = stats.t.interval(CONFIDENCE, len(scores) - 1, mean, stats.sem(scores))
    return Interval(mean, float(low), float(high))


def measured(rows: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """The ablations that have rows, in the plan's order."""
    found = {entry.method: entry for entry in entries(rows, SCENARIO, ablations=True)}
    return [found[name] for name in ABLATIONS if name in found]


def gain(entry: Entry, base: Entry) -> str:
    """The mean difference of an ablation to the base in points, seed by seed, with Student's interval."""
    of_base, own = _by_seed(base), _by_seed(entry)
    differences = [100 * (own[seed] - of_base[seed]) for seed in own.keys() & of_base.keys()]
    if entry is base or not differences:
        return ""
    found = over_seeds(differences)
    interval = f" [{found.low:.1f}, {found.high:.1f}]" if len(differences) >= FEWEST else ""
    return f"{found.estimate:+.1f}{interval}"


def _by_seed(entry: Entry) -> dict[int, float]:
    return {row["seed"]: float(score) for row, score in zip(entry.rows, entry.scores.mean(axis=1), strict=True)}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The ablations in Markdown."""
    found = measured(rows)
    if not found:
        return "No row has been measured yet."
    head = ["change", "runs", *(f"v {name}" for name in SHOWN), "mean score of each run", "mean", "gain", "decisions"]
    lines = [head, ["---"] * len(head)]
    for entry in found:
        runs = entry.scores.mean(axis=1)
        scores = (f"{100 * entry.score(name).estimate:.1f}" for name in SHOWN)
        each = ", ".join(f"{100 * score:.1f}" for score in runs)
        assert entry.cost is not None, entry.method
        decisions = f"{entry.cost[0] / 1e6:.1f} M"
        mean, gained = in_percent(over_seeds(runs)), gain(entry, found[0])
        lines.append([entry.title, str(len(runs)), *scores, each, mean, gained, decisions])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Win rates in training along the minutes: the mean of each ablation's runs, and the runs without a change."""
    figure = Figure((9, 5), dpi=110, layout="constrained")
    axes = figure.subplots()
    minutes = np.linspace(0.0, ABLATION.minutes, 65)
    for place, entry in enumerate(measured(rows)):
        points = [np.array(row["curve"]) for row in entry.rows]  # minutes, decisions, win rate
        curves = [np.interp(minutes, each[:, 0], each[:, 2], left=np.nan) for each in points]
        first = entry.method == next(iter(ABLATIONS))
        for curve in curves if first else ():
            axes.plot(minutes, 100 * curve, color="black", linewidth=0.5, alpha=0.5)
        color = "black" if first else f"C{place - 1}"
        label = entry.title.replace("`", "")
        axes.plot(minutes, 100 * np.mean(curves, axis=0), color=color, linewidth=2.5 if first else 1.5, label=label)
    axes.set_xlabel("minutes of one core")
    axes.set_ylabel("battles won in training, %")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
