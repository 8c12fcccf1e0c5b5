"""Pictures of the statistics, for papers and reports.

The functions need matplotlib (extra ``train``) and raise ModuleNotFoundError without it. They need no display. The
suffix of the file name selects the format: ``.png``, ``.pdf``, ``.svg`` or any other that matplotlib writes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from echelon_env.evaluate.cross_play import Panel
from echelon_env.evaluate.statistics import CONFIDENCE
from echelon_env.evaluate.tables import shorten
from echelon_env.storage.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["save_intervals", "save_matrix"]

DPI = 150
"""Pixels per inch of a PNG."""

_NAME = 24  # characters of a player's name
_LETTER = 0.08  # inches
_CELL = 0.62  # inches
_ROW = 0.3  # inches
_PANEL_WIDTH = 2.6  # inches for the axis of a metric
_DARK = 0.32  # cells whose score is farther from 0.5 are dark and get white text
_COLOURS = "RdBu"
_EMPTY = "0.93"


def save_matrix(path: Path, cross_play: Mapping[str, Any], *, rows: Sequence[str] | None = None) -> None:
    """Draw the entry `cross_play` of a report: a panel for each scenario and, for several scenarios, a pooled one.

    A cell shows the score of the row's player in %, and the interval below it. Scores above 50 % are blue, below red.
    `rows` are the players that have a row, by default all. The columns are the players that any of them has played
    against. The file is written atomically.

    Raises ValueError for rows that are no players or have no matches, and for a format that matplotlib does not
    support; OSError if the file cannot be written.
    """
    players = cross_play["players"]
    unknown = [row for row in rows or () if row not in players]
    if unknown or (rows is not None and not rows):
        raise ValueError(f"rows: expected some of {players}, got {unknown or 'none'}")
    chosen = [players.index(row) for row in (players if rows is None else rows)]
    panels = dict(cross_play["scenarios"])
    if len(panels) > 1:
        panels["mean of all scenarios"] = cross_play["pooled"]
    others = [
        j
        for j in range(len(players))
        if any(each["score"][i][j] is not None for each in panels.values() for i in chosen)
    ]
    if not others:
        raise ValueError(f"expected players with matches, got {[players[i] for i in chosen]}")
    names = [shorten(name, _NAME) for name in players]
    left, above = (_LETTER * max(len(names[i]) for i in those) for those in (chosen, others))
    across = min(len(panels), 1 if 2 * len(chosen) <= len(others) else 2)
    down = math.ceil(len(panels) / across)
    width = across * (_CELL * len(others) + 0.3) + left
    figure = _figure(max(width, 4.5), down * (_CELL * len(chosen) + 0.5) + above + 1.2)
    grid = figure.subplots(down, across, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(panels):
            axes.set_axis_off()
            continue
        image = _draw_matrix(axes, list(panels.values())[place], chosen, others)
        axes.set_title(list(panels)[place], fontsize=11)
        axes.set_xticks(range(len(others)), [names[j] for j in others], rotation=40, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(chosen)), [names[i] for i in chosen])
        axes.tick_params(labeltop=place < across, labelleft=place % across == 0, labelbottom=False)
    bar = figure.colorbar(image, ax=grid, location="bottom", shrink=0.5, aspect=30, ticks=np.linspace(0, 1, 5))
    bar.ax.set_xticklabels([f"{percent}" for percent in range(0, 101, 25)])
    bar.set_label(f"score of row against column in %, {CONFIDENCE:.0%} interval", fontsize=9)
    bar.outline.set_visible(False)
    _save(path, figure)


def save_intervals(path: Path, intervals: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Draw shares with their intervals: a column for each metric, a row for each player or pairing.

    `intervals` is metric (such as ``"win rate"``) -> row -> ``estimate``, ``low`` and ``high`` of a share between 0 and
    1. A row may lack some metrics. The file is written atomically.

    Raises ValueError if there is no interval, and for a format that matplotlib does not support; OSError if the file
    cannot be written.
    """
    rows = list(dict.fromkeys(row for metric in intervals.values() for row in metric))
    if not rows:
        raise ValueError("expected at least one interval")
    names = [shorten(row, 2 * _NAME) for row in rows]
    width = _LETTER * max(map(len, names)) + (_PANEL_WIDTH + 1) * len(intervals)
    figure = _figure(width, _ROW * len(rows) + 1.1)
    columns = figure.subplots(1, len(intervals), sharey=True, squeeze=False)[0]
    for axes, (metric, of_rows) in zip(columns, intervals.items(), strict=True):
        axes.axvline(0.5, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        for place, row in enumerate(rows):
            if row in of_rows:
                _draw_interval(axes, place, of_rows[row])
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks(np.linspace(0, 1, 5), [f"{percent}" for percent in range(0, 101, 25)])
        axes.set_title(metric, fontsize=11)
        axes.grid(axis="x", alpha=0.3)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    columns[0].set_yticks(range(len(rows)), names)
    columns[0].set_ylim(len(rows) - 0.4, -0.6)
    figure.supxlabel(f"%, with {CONFIDENCE:.0%} intervals", fontsize=10)
    _save(path, figure)


def _draw_matrix(axes: Axes, panel: Panel, rows: list[int], columns: list[int]) -> AxesImage:
    keys = ("score", "low", "high")  # None becomes NaN
    score, low, high = (np.array(panel[key], np.float64)[np.ix_(rows, columns)] for key in keys)
    image = axes.imshow(score, cmap=_COLOURS, vmin=0, vmax=1)
    axes.set_facecolor(_EMPTY)
    for i, j in np.argwhere(~np.isnan(score)):
        colour = "white" if abs(score[i, j] - 0.5) > _DARK else "black"
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
        axes.text(j, i - 0.13, _percent(score[i, j]), fontsize=11, **style)
        axes.text(j, i + 0.24, f"{_percent(low[i, j])}–{_percent(high[i, j])}", fontsize=6.5, **style)
    axes.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    return image


def _draw_interval(axes: Axes, place: int, share: Mapping[str, float]) -> None:
    """Draw a row: a bar for the interval, a tick for the estimate, and both as numbers on the right."""
    estimate, low, high = (share[key] for key in ("estimate", "low", "high"))
    axes.plot([low, high], [place, place], color="tab:blue", alpha=0.45, linewidth=7, solid_capstyle="butt")
    axes.plot([estimate] * 2, [place - 0.3, place + 0.3], color="black", linewidth=1.5)
    numbers = f"{_percent(estimate)} [{_percent(low)}, {_percent(high)}]"
    axes.annotate(numbers, (1.03, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def _percent(share: float) -> str:
    """A share in whole per cent, or in tenths if it would be rounded to 0 or 100 without being exactly that."""
    whole = f"{100 * share:.0f}"
    return f"{100 * share:.1f}" if whole in ("0", "100") and share not in (0, 1) else whole


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(path: Path, figure: Figure) -> None:
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix("."), dpi=DPI)
    write_bytes(path, picture.getvalue())
