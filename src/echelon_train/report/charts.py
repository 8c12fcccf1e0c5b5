"""Charts as figures of a page: pictures of matplotlib whose colours follow the page, and whose values can be read off.

matplotlib draws; the page's script only shows the values of the lines at the pointer, which a figure carries as data.
"""

from __future__ import annotations

import html
import io
import itertools
import json
import re
import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from echelon_train.report.markup import Html, element
from echelon_train.runs.charts import INK, Chart, draw, style

SIZE = 4.4, 2.5  # inches
_COLOUR = "currentColor"  # what stands for `INK` in the page
_numbers = itertools.count()


def charts(drawn: Iterable[Chart | None]) -> Html:
    """Charts beside each other; None is left out."""
    return element("div", *(_figure(each) for each in drawn if each is not None), class_="charts")


def _figure(chart: Chart) -> Html:
    with style():
        figure = Figure(SIZE, layout="constrained")
        lines = draw(figure.subplots(), chart)
        legend = chart.legend or len(chart.named) > 1
        return embed(figure, chart.title, lines, remark=chart.explanation, share=chart.share, legend=legend)


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

    It has one pair of axes, if there are `lines`, whose values the page shows by their labels. A `wide` one keeps its
    size on a narrow screen, and scrolls.
    """
    buffer = io.StringIO()
    with style(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of characters that matplotlib's font lacks: the page has others
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, _COLOUR)
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
