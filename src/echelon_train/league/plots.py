"""Figures of a league's report, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from echelon_env.evaluate.estimates import CONFIDENCE
from echelon_env.evaluate.tables import shorten
from echelon_train.league.ratings.glicko2 import REACH, Rating
from echelon_train.league.store.members import Kind, Member

_NAME = 24  # characters of a member's name
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8}  # a name beside a point
_LINES = "-", "--", ":", "-."  # one for every ten members, as there are ten colours


def rating_history(history: Mapping[int, Mapping[str, Rating]]) -> Figure:
    """The members' ratings over the rating periods, with a band of one deviation to either side.

    The history is the number of a period -> the ratings after it, by member. A line starts at the member's first
    period.
    """
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for period in sorted(history):
        for name, rating in history[period].items():
            lines.setdefault(name, []).append((period, rating.rating, rating.deviation))
    names = sorted(lines, key=lambda name: -lines[name][-1][1])  # the best first in the legend
    figure = Figure((9, max(4.5, 1.0 + 0.2 * len(names))), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(names):
        periods, ratings, deviations = np.array(lines[name]).T
        label = f"{shorten(name, _NAME)}  {ratings[-1]:.0f} ± {deviations[-1]:.0f}"
        style: dict[str, Any] = {"color": f"C{number % 10}", "linestyle": _LINES[number // 10 % len(_LINES)]}
        axes.plot(periods, ratings, linewidth=1.6, marker="o", markersize=2.5, label=label, **style)
        low, high = ratings - deviations, ratings + deviations
        axes.fill_between(periods, low, high, color=style["color"], alpha=0.13, linewidth=0)
    axes.set(xlabel="rating period", ylabel="rating ± rating deviation")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def rating_curve(members: Sequence[Member], ratings: Mapping[str, Rating]) -> Figure:
    """The ratings of policies, with intervals, over the decisions that they were trained on.

    A line joins a policy to its parent. Policies without children are labelled. A scripted member is a horizontal line.
    """
    learned = {member.name: member for member in members if member.kind != "scripted"}
    figure = Figure((9, 5.5), layout="constrained")
    axes = figure.subplots()
    for member in members:
        if member.kind == "scripted":
            level = ratings[member.name].rating
            axes.axhline(level, color="0.6", linewidth=1, linestyle="--")
            axes.annotate(member.name, (1, level), (4, 0), **_BESIDE, xycoords=axes.get_yaxis_transform())
    parents = {member.parent for member in members}
    kinds = sorted({member.kind for member in learned.values()}, key=get_args(Kind).index)
    for number, kind in enumerate(kinds):
        of_kind = [member for member in learned.values() if member.kind == kind]
        ages = np.array([member.age for member in of_kind], dtype=np.float64)
        values = np.array([ratings[member.name].rating for member in of_kind])
        reach = REACH * np.array([ratings[member.name].deviation for member in of_kind])
        style: dict[str, Any] = {"color": f"C{number}", "label": kind}
        axes.errorbar(ages, values, reach, fmt="o", markersize=4, elinewidth=1, alpha=0.9, **style)
        for member, age, value in zip(of_kind, ages, values, strict=True):
            parent = None if member.parent is None else learned.get(member.parent)
            if parent is not None:
                ends = [parent.age, age], [ratings[parent.name].rating, value]
                axes.plot(*ends, color=f"C{number}", linewidth=1.4, alpha=0.7)
            if member.name not in parents:
                axes.annotate(shorten(member.name, _NAME), (age, value), (6, 0), **_BESIDE)
    axes.set(xlabel="decisions trained on", ylabel=f"rating, {CONFIDENCE:.0%} interval")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0.1)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    return figure
