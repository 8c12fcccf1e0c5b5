"""Charts of metrics, drawn with matplotlib: for the pictures of a run and the figures of a report."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from echelon_env.evaluate.tables import shorten
from echelon_env.storage.atomic import write_bytes

MAX_LINES = 12
"""Of a chart."""
MAX_POINTS = 400
"""Of a line; a longer one shows means of equal numbers of neighbours."""
MAX_INTERVALS = 100
"""Of a line."""
INK = "#010203"
"""A colour that nothing else has, in place of which a page has its own."""
_SMOOTHED = 100  # a line of more points is pale, with its running mean
_NAME = 30  # characters of a label
_DPI = 120  # of a picture
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "echelon", "text.parse_math": False, "font.size": 9.0,
    "legend.frameon": False, "legend.fontsize": 8.0, "text.color": INK, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "grid.color": INK, "grid.alpha": 0.15,
    "axes.grid": True, "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
}  # fmt: skip

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A line of a chart: values (n,) over x (n,), with an optional interval (2, n): low and high.

    Of many values with intervals `MAX_INTERVALS` are drawn, evenly spaced.
    """

    label: str
    x: Array
    y: Array
    interval: Array | None = None
    colour: int = -1  # of the cycle; by default the number of the line
    pale: bool = False  # one of several runs whose median is another line
    points: bool = False  # of single measurements: marks without a line between them


@dataclass(frozen=True)
class Chart:
    """Lines with at least one point each. The first `MAX_LINES` that are not pale are drawn."""

    title: str
    lines: Sequence[Line]
    remark: str = ""
    share: bool = False  # whether the values are shares from 0 to 1
    log: bool = False  # whether the scale is logarithmic
    marks: Sequence[tuple[float, str]] = ()  # places on the horizontal axis, with names
    legend: bool = False  # whether a single line is named, too

    @property
    def named(self) -> list[Line]:
        """The lines that are not pale."""
        return [line for line in self.lines if not line.pale]

    @property
    def explanation(self) -> str:
        """The remark, and how many lines are left out."""
        left_out = f"the first {MAX_LINES} of {len(self.named)}" if len(self.named) > MAX_LINES else ""
        return f"{self.remark} {left_out}".strip()


@contextlib.contextmanager
def style() -> Iterator[None]:
    """The look of all charts, for figures that are made in the block."""
    with matplotlib.rc_context(_STYLE):
        yield


def draw(axes: Axes, chart: Chart) -> list[Line2D]:
    """Draw a chart in the block of `style`, without its title. Returns the lines of the values that are not pale."""
    colours = {id(line): number for number, line in enumerate(chart.named[:MAX_LINES])}
    drawn = [
        _draw_line(axes, line, f"C{(line.colour if line.colour >= 0 else colours.get(id(line), 0)) % 10}")
        for line in chart.lines
        if line.pale or id(line) in colours
    ]
    for place, name in chart.marks:
        axes.axvline(place, color=INK, alpha=0.5, linewidth=0.8, linestyle=":")
        look: dict[str, Any] = {"rotation": 90, "va": "top", "ha": "right", "fontsize": 7}
        axes.text(place, 0.98, shorten(name, _NAME), transform=axes.get_xaxis_transform(), **look)
    if chart.share:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    elif chart.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return [line for line in drawn if line is not None]


def save_picture(path: Path, title: str, drawn: Sequence[Chart | None], label: str) -> None:
    """Write charts, but for None, with one horizontal axis, named by a label, into a PNG, as a whole or not at all.

    Raises OSError.
    """
    charts = [each for each in drawn if each is not None]
    columns = max(1, -(-len(charts) // 2))
    with style():
        figure = Figure((max(8.0, 3.25 * columns), 3.0 * min(2, max(len(charts), 1.5))), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, fontweight="bold")
        shape = -(-len(charts) // columns), columns
        places: list[Axes] = [*figure.subplots(*shape, squeeze=False).flat] if charts else []
        for axes, chart in zip(places, charts, strict=False):
            lines = draw(axes, chart)
            axes.set_title(", ".join(filter(None, (chart.title, chart.explanation))), fontsize="medium", loc="left")
            if lines and (chart.legend or len(chart.named) > 1):
                axes.legend()
        for axes in places[len(charts) :]:
            axes.set_visible(False)
        figure.supxlabel(label, fontsize="medium")
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=_DPI, facecolor="white")
    write_bytes(path, picture.getvalue())  # a viewer may have the previous one open


def binned(x: Array, y: Array) -> tuple[Array, Array]:
    """At most `MAX_POINTS` points: means of equal numbers of neighbours, the last of fewer."""
    size = -(-len(x) // MAX_POINTS)
    if size <= 1:
        return x, y
    starts = np.arange(0, len(x), size)
    counts = np.diff([*starts, len(x)])
    return np.add.reduceat(x, starts) / counts, np.add.reduceat(y, starts) / counts


def _draw_line(axes: Axes, line: Line, colour: str) -> Line2D | None:
    """Draw a line. Returns that of the values, unless it is pale."""
    label = shorten(line.label, _NAME)
    if line.interval is not None and len(line.x) > MAX_INTERVALS:
        kept = np.linspace(0, len(line.x) - 1, MAX_INTERVALS).round().astype(int)
        line = replace(line, x=line.x[kept], y=line.y[kept], interval=line.interval[:, kept])
    if line.interval is not None and line.points:
        below, above = np.abs(line.interval - line.y)
        axes.errorbar(line.x, line.y, [below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2)
    elif line.interval is not None:
        axes.fill_between(line.x, *line.interval, color=colour, alpha=0.18, linewidth=0)
    if line.pale:
        axes.plot(*binned(line.x, line.y), color=colour, linewidth=0.7, alpha=0.4)
        return None
    x, y = (line.x, line.y) if line.interval is not None else binned(line.x, line.y)
    smoothed = len(y) > _SMOOTHED and not line.points
    marker = "o" if line.points or len(x) == 1 else None
    between = "none" if line.points else "-"
    (drawn,) = axes.plot(x, y, color=colour, linestyle=between, linewidth=1.3, marker=marker, markersize=3, label=label)
    if smoothed:
        drawn.set(linewidth=0.7, alpha=0.4)
        axes.plot(x, uniform_filter1d(y, len(y) // 50, mode="nearest"), color=colour, linewidth=1.4)
    return drawn
