"""Charts as figures of a page: pictures of matplotlib whose colours follow the page, and whose values can be read off.

matplotlib draws; the page's script only shows the values of the lines at the pointer, which a figure carries as data.
"""

from __future__ import annotations

import contextlib
import html
import io
import itertools
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from echelon_env.evaluate.tables import shorten
from echelon_train.report.markup import Html, element

MAX_LINES = 12
"""Of a chart."""
MAX_POINTS = 400
"""Of a line; a longer one shows means of equal numbers of neighbours."""
MAX_INTERVALS = 100
"""Of a line."""
SIZE = 4.4, 2.5  # inches
_SMOOTHED = 100  # a line of more points is pale, with its running mean
_NAME = 30  # characters of a label
_INK, _INK_COLOUR = "#010203", "currentColor"  # a colour that nothing else has, and what stands for it in the page
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "echelon", "text.parse_math": False, "font.size": 9.0,
    "legend.frameon": False, "legend.fontsize": 8.0, "text.color": _INK, "axes.edgecolor": _INK,
    "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK, "grid.color": _INK, "grid.alpha": 0.15,
    "axes.grid": True, "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
}  # fmt: skip
_numbers = itertools.count()

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
    points: bool = False  # of single measurements


@contextlib.contextmanager
def style() -> Iterator[None]:
    """The look of the page's pictures, for figures that are made in the block."""
    with matplotlib.rc_context(_STYLE):
        yield


def chart(
    title: str,
    lines: Sequence[Line],
    *,
    remark: str = "",
    share: bool = False,
    log: bool = False,
    marks: Sequence[tuple[float, str]] = (),
    legend: bool = False,
) -> Html:
    """A chart of lines.

    Parameters
    ----------
    title, remark
        Its heading, and what follows it in small type.
    lines
        Its lines, with at least one point each; the first `MAX_LINES` that are not pale are drawn.
    share
        Whether the values are shares from 0 to 1.
    log
        Whether the scale is logarithmic.
    marks
        Places on the horizontal axis, with names.
    legend
        Whether a single line is named, too.
    """
    named = [line for line in lines if not line.pale]
    drawn = {id(line): number for number, line in enumerate(named[:MAX_LINES])}
    if len(named) > MAX_LINES:
        remark = f"{remark} the first {MAX_LINES} of {len(named)}".strip()
    with style():
        figure = Figure(SIZE, layout="constrained")
        axes = figure.subplots()
        shown = [
            _draw(axes, line, f"C{(line.colour if line.colour >= 0 else drawn.get(id(line), 0)) % 10}")
            for line in lines
            if line.pale or id(line) in drawn
        ]
        for place, name in marks:
            axes.axvline(place, color=_INK, alpha=0.5, linewidth=0.8, linestyle=":")
            style_of_name: dict[str, Any] = {"rotation": 90, "va": "top", "ha": "right", "fontsize": 7}
            axes.text(place, 0.98, shorten(name, _NAME), transform=axes.get_xaxis_transform(), **style_of_name)
        if share:
            axes.set_ylim(-0.03, 1.03)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        elif log:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        data = [line for line in shown if line is not None]
        return embed(figure, title, data, remark=remark, share=share, legend=legend or len(named) > 1)


def embed(
    figure: Figure,
    title: str,
    lines: Sequence[Line2D],
    *,
    remark: str = "",
    share: bool = False,
    legend: bool = False,
    wide: bool = False,
) -> Html:
    """A figure of matplotlib, made in the block of `style`, as an element of the page.

    Parameters
    ----------
    figure
        It has one pair of axes, if there are `lines`.
    title, remark
        Its heading, and what follows it in small type.
    lines
        Lines whose values the page shows, by their labels.
    share
        Whether these are shares.
    legend
        Whether a legend of the lines follows the heading.
    wide
        Whether it keeps its size on a narrow screen, and scrolls.
    """
    buffer = io.StringIO()
    with style(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of characters that matplotlib's font lacks: the page has others
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(_INK, _INK_COLOUR)
    text = re.sub(r"<[^>]*>", lambda found: re.sub(r"(\d\.\d\d)\d+", r"\1", found[0]), text)  # hundredths of a point
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    number = next(_numbers)  # the ids of several pictures in one page differ
    text = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>c{number}-", text)
    text = text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)
    caption = element("figcaption", title, element("small", f" {remark}") if remark else None)
    keys = (
        element("span", element("i", style=f"background:{to_hex(line.get_color())}"), line.get_label())
        for line in lines
    )
    named = element("div", *keys, class_="legend") if legend else None
    attributes = {"class_": "wide" if wide else None, "data-chart": _data(figure, lines, share) if lines else None}
    return element("figure", caption, named, Html(text), **attributes)


def charts(figures: Sequence[Html]) -> Html:
    """Charts beside each other."""
    return element("div", *figures, class_="charts")


def binned(x: Array, y: Array) -> tuple[Array, Array]:
    """At most `MAX_POINTS` points: means of equal numbers of neighbours, the last of fewer."""
    size = -(-len(x) // MAX_POINTS)
    if size <= 1:
        return x, y
    starts = np.arange(0, len(x), size)
    counts = np.diff([*starts, len(x)])
    return np.add.reduceat(x, starts) / counts, np.add.reduceat(y, starts) / counts


def _draw(axes: Axes, line: Line, colour: str) -> Line2D | None:
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
    (drawn,) = axes.plot(x, y, color=colour, linewidth=1.3, marker=marker, markersize=3, label=label)
    if smoothed:
        drawn.set(linewidth=0.7, alpha=0.4)
        axes.plot(x, uniform_filter1d(y, len(y) // 50, mode="nearest"), color=colour, linewidth=1.4)
    return drawn


def _data(figure: Figure, lines: Sequence[Line2D], share: bool) -> str:
    """The lines of a figure with one pair of axes, for the page's script."""
    (axes,) = figure.axes
    width, height = 72.0 * figure.get_size_inches()  # the units of the picture are points
    place = axes.get_position()
    box = [place.x0 * width, place.x1 * width, (1 - place.y1) * height, (1 - place.y0) * height]
    document = {
        "box": [round(float(each), 2) for each in box],
        "x": [float(f"{each:.7g}") for each in axes.get_xlim()],
        "share": share,
        "lines": [
            {
                "label": line.get_label(),
                "colour": to_hex(line.get_color()),
                "x": [float(f"{each:.9g}") for each in np.asarray(line.get_xdata(), np.float64)],
                "y": [float(f"{each:.6g}") for each in np.asarray(line.get_ydata(), np.float64)],
            }
            for line in lines
        ],
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False)
