"""Pictures of a league, drawn without a display. Each is a figure, which `save` writes."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from echelon_env.evaluate.statistics import CONFIDENCE
from echelon_env.evaluate.tables import shorten
from echelon_env.storage.atomic import write_bytes
from echelon_train.league.ratings.bradley_terry import Strengths
from echelon_train.league.ratings.glicko2 import REACH, Rating
from echelon_train.league.ratings.nash_averaging import NashAverage
from echelon_train.league.ratings.payoffs import Misprediction, Payoffs, member_ratings
from echelon_train.league.store.members import Kind, Member

MOST_DRAWN = 50
"""Members in a picture, the best ones. One of several hundred is too large to be drawn."""

_DPI = 150
_NAME = 24  # characters of a member's name
_ROW = 0.3  # inches
_CELL = 0.55  # inches
_PANEL = 2.6  # inches for a scale beside the names
_NAMES = 2.2  # inches for the names
_FRAME = 1.4  # inches above and below the rows
_NUMBERED = 30  # members up to which the cells of a matrix show numbers
_DARK = 0.32  # distance from an even score beyond which a cell has white text
_EMPTY, _DIAGONAL = "0.85", "0.6"
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8}  # a name beside a point
_LINES = "-", "--", ":", "-."  # one for every ten members, as there are ten colours

Array = NDArray[np.float64]


def save(path: Path, figure: Figure) -> None:
    """Write a picture, as a whole or not at all, in the format of its suffix: any that matplotlib writes.

    Raises ValueError for a format that matplotlib does not know and OSError if the file cannot be written.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix("."), dpi=_DPI)
    write_bytes(path, picture.getvalue())


def payoff_matrix(
    payoffs: Payoffs,
    ratings: Mapping[str, Rating],
    *,
    mispredicted: Collection[Misprediction] = (),
    title: str = "",
) -> Figure:
    """The ratings with their intervals, and beside them the mean score of every pair.

    The members are ordered by rating: without cycles, the cells above the diagonal are blue and those below are red. In
    leagues of up to 30 members a cell shows the score of its row's member in %, with the interval below. A cell is
    light grey if the two have not played.

    The cells of mispredicted pairs get a frame. Raises ValueError if a member has no rating.
    """
    rated = member_ratings(payoffs, ratings)
    size = min(MOST_DRAWN, len(rated))
    order = sorted(range(len(rated)), key=lambda place: -rated[place].rating)[:size]
    members = [payoffs.members[place] for place in order]
    width = _CELL if size <= _NUMBERED else _ROW
    figure = Figure((_NAMES + _PANEL + width * size, _FRAME + 1.4 + width * size), layout="constrained")
    figure.suptitle(_of(title, size, len(rated)))
    scale, matrix = figure.subplots(1, 2, sharey=True, width_ratios=[_PANEL, max(_PANEL, width * size)])
    values = np.array([rated[place].rating for place in order])
    reach = REACH * np.array([rated[place].deviation for place in order])
    _draw_intervals(scale, values, values - reach, values + reach)
    scale.set_title(f"rating, {CONFIDENCE:.0%} interval", fontsize=11)
    scale.set_yticks(range(size), [shorten(name, _NAME) for name in members])
    _draw_matrix(figure, matrix, payoffs, order)
    places = {name: place for place, name in enumerate(members)}
    shown = [pair for pair in mispredicted if {pair.first, pair.second} <= places.keys()]
    for pair in shown:
        for i, j in ((pair.first, pair.second), (pair.second, pair.first)):
            corner = places[j] - 0.44, places[i] - 0.44
            matrix.add_patch(Rectangle(corner, 0.88, 0.88, fill=False, edgecolor="black", linewidth=2))
    if shown:
        figure.supxlabel("framed: the games contradict the ratings", fontsize=9)
    return figure


def rating_history(history: Mapping[int, Mapping[str, Rating]], *, title: str = "") -> Figure:
    """The members' ratings over the rating periods, with a band of one deviation to either side.

    The history is the number of a period -> the ratings after it, by member. A line starts at the member's first
    period.
    """
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for period in sorted(history):
        for name, rating in history[period].items():
            lines.setdefault(name, []).append((period, rating.rating, rating.deviation))
    names = sorted(lines, key=lambda name: -lines[name][-1][1])[:MOST_DRAWN]  # the best first in the legend
    figure = Figure((9, max(4.5, 1.0 + 0.2 * len(names))), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(names):
        periods, ratings, deviations = np.array(lines[name]).T
        label = f"{shorten(name, _NAME)}  {ratings[-1]:.0f} ± {deviations[-1]:.0f}"
        style: dict[str, Any] = {"color": f"C{number % 10}", "linestyle": _LINES[number // 10 % len(_LINES)]}
        axes.plot(periods, ratings, linewidth=1.6, marker="o", markersize=2.5, label=label, **style)
        low, high = ratings - deviations, ratings + deviations
        axes.fill_between(periods, low, high, color=style["color"], alpha=0.13, linewidth=0)
    axes.set(xlabel="rating period", ylabel="rating ± rating deviation", title=_of(title, len(names), len(lines)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def rating_curve(members: Sequence[Member], ratings: Mapping[str, Rating], *, title: str = "") -> Figure:
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
        style: dict[str, Any] = {"color": f"C{number}", "label": kind.replace("_", " ")}
        axes.errorbar(ages, values, reach, fmt="o", markersize=4, elinewidth=1, alpha=0.9, **style)
        for member, age, value in zip(of_kind, ages, values, strict=True):
            parent = None if member.parent is None else learned.get(member.parent)
            if parent is not None:
                ends = [parent.age, age], [ratings[parent.name].rating, value]
                axes.plot(*ends, color=f"C{number}", linewidth=1.4, alpha=0.7)
            if member.name not in parents:
                axes.annotate(shorten(member.name, _NAME), (age, value), (6, 0), **_BESIDE)
    axes.set(xlabel="decisions trained on", ylabel=f"rating, {CONFIDENCE:.0%} interval", title=title)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0.1)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    return figure


def strength_intervals(strengths: Strengths, *, title: str = "") -> Figure:
    """The Bradley-Terry strengths with their intervals, one row per member."""
    order = np.argsort(-strengths.strength, kind="stable")[:MOST_DRAWN]
    figure = _rows(len(order), 1, _of(title, len(order), len(strengths.members)))
    axes = figure.subplots()
    _draw_intervals(axes, strengths.strength[order], strengths.low[order], strengths.high[order])
    _name_rows(axes, [strengths.members[place] for place in order])
    axes.set_xlabel(f"Bradley-Terry strength, points, {CONFIDENCE:.0%} interval", fontsize=10)
    return figure


def nash_mixture(average: NashAverage, *, title: str = "") -> Figure:
    """The weights of the Nash mixture and every member's advantage against it, one row per member."""
    order = np.lexsort((-average.advantage, -average.weights))[:MOST_DRAWN]
    size = len(average.members)
    figure = _rows(len(order), 2, _of(title, len(order), size))
    weights, advantages = figure.subplots(1, 2, sharey=True)
    _draw_bars(weights, average.weights[order], [f"{weight:.1%}" for weight in average.weights[order]])
    # members with weight have an advantage of 0, except for rounding
    advantage = np.round(average.advantage[order]) + 0.0
    _draw_bars(advantages, advantage, [f"{points:.0f}" for points in advantage])
    weights.set_xlabel("weight in the Nash mixture", fontsize=10)
    advantages.set_xlabel("advantage against it, points", fontsize=10)
    weights.set_xlim(0, 1.2)
    weights.set_xticks(np.linspace(0, 1, 5))
    weights.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    advantages.xaxis.set_major_locator(MaxNLocator(5))
    _name_rows(weights, [average.members[place] for place in order])
    filled = int(average.filled.sum()) // 2
    if filled:
        note = f"{filled} of {size * (size - 1) // 2} pairs have not played: predicted by the ratings"
        figure.supxlabel(note, fontsize=9)
    return figure


def _draw_matrix(figure: Figure, axes: Axes, payoffs: Payoffs, order: list[int]) -> None:
    score, low, high = (values[np.ix_(order, order)] for values in (payoffs.score, payoffs.low, payoffs.high))
    image = axes.imshow(score, cmap="RdBu", vmin=0, vmax=1, aspect="auto")
    axes.set_facecolor(_EMPTY)
    for place in range(len(order)):
        axes.add_patch(Rectangle((place - 0.5, place - 0.5), 1, 1, color=_DIAGONAL))
    numbered = len(order) <= _NUMBERED
    if numbered:
        for i, j in np.argwhere(~np.isnan(score)):
            colour = "white" if abs(score[i, j] - 0.5) > _DARK else "black"
            style: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
            axes.text(j, i - 0.13, f"{100 * score[i, j]:.0f}", fontsize=10, **style)
            axes.text(j, i + 0.24, f"{100 * low[i, j]:.0f}–{100 * high[i, j]:.0f}", fontsize=6, **style)
    names = [shorten(payoffs.members[place], _NAME) for place in order]
    axes.set_xticks(range(len(order)), names, rotation=40, ha="left", rotation_mode="anchor")
    lines = np.arange(1, len(order)) - 0.5
    axes.set_xticks(lines, minor=True)
    axes.set_yticks(lines, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, location="bottom", fraction=0.05, aspect=30, ticks=np.linspace(0, 1, 5))
    bar.ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    interval = f", {CONFIDENCE:.0%} interval" if numbered else ""
    bar.set_label(f"score of row against column{interval}", fontsize=9)
    bar.outline.set_visible(False)


def _draw_intervals(axes: Axes, values: Array, low: Array, high: Array) -> None:
    """One row per value: a bar for the interval, a line across it for the estimate, and the numbers on the right."""
    rows = np.arange(len(values))
    axes.hlines(rows, low, high, color="tab:blue", alpha=0.45, linewidth=7)
    axes.vlines(values, rows - 0.3, rows + 0.3, color="black", linewidth=1.5)
    for row in rows:
        numbers = f"{values[row]:.0f} [{low[row]:.0f}, {high[row]:.0f}]"
        place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "va": "center", "fontsize": 8}
        axes.annotate(numbers, (1.0, row), xytext=(4, 0), textcoords="offset points", **place)
    _clear(axes)


def _draw_bars(axes: Axes, values: Array, numbers: list[str]) -> None:
    axes.bar_label(axes.barh(np.arange(len(values)), values, height=0.6), numbers, padding=3, fontsize=8)
    axes.margins(x=0.25)
    _clear(axes)


def _of(title: str, shown: int, members: int) -> str:
    """A title that says so if not all members are drawn."""
    return title if shown == members else f"{title} (the best {shown} of {members:,} members)".strip()


def _rows(members: int, columns: int, title: str) -> Figure:
    figure = Figure((_NAMES + (_PANEL + 1) * columns, _FRAME + _ROW * members), layout="constrained")
    figure.suptitle(title)
    return figure


def _name_rows(axes: Axes, members: list[str]) -> None:
    axes.set_yticks(range(len(members)), [shorten(name, _NAME) for name in members])
    axes.set_ylim(len(members) - 0.4, -0.6)


def _clear(axes: Axes) -> None:
    axes.grid(axis="x", alpha=0.3)
    axes.tick_params(axis="y", which="both", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
