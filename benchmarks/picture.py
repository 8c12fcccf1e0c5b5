"""The results as one picture: APIs and scaling, as far as they were measured."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.apis import LIVE
from benchmarks.machine import commit_in_words
from benchmarks.results import Results
from benchmarks.scaling import RATE
from benchmarks.tables import Cell

DPI = 130
THOUSAND = 1000.0


def picture(results: Results) -> bytes:
    """A PNG. Raises ValueError if none of its sections was measured."""
    panels = [(draw, section) for section, draw in PANELS.items() if section in results.sections]
    if not panels:
        raise ValueError(f"expected results of one of {sorted(PANELS)}, got {sorted(results.sections)}")
    figure = Figure(figsize=(5.5 * len(panels), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (draw, section) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        draw(axes, results)
        if section in results.later:
            axes.set_title(f"{axes.get_title()}\n{results.later[section]['processor']}", fontsize=10)
    machine = results.machine
    figure.suptitle(
        f"{machine['processor']}, Python {machine['python']}, {commit_in_words(machine['commit'])}", fontsize=10
    )
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _apis(axes: Axes, results: Results) -> None:
    table = results.sections["apis"]["novices"]
    apis = [row for row in table.rows if row != LIVE]
    for place, api in enumerate(apis):
        left = [column + (place - (len(apis) - 1) / 2) * 0.8 / len(apis) for column in range(len(table.columns))]
        axes.bar(left, _thousands(table.rows[api]), 0.8 / len(apis), label=api)
    axes.set_xticks(range(len(table.columns)), table.columns)
    axes.legend(fontsize=8)
    axes.set(title="APIs, between scripted novices", ylabel="thousand live agent-steps/s")


def _scaling(axes: Axes, results: Results) -> None:
    table = results.sections["scaling"]["batch"]
    axes.plot([int(column) for column in table.columns], _thousands(table.rows[RATE]), "o-")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(bottom=0)
    axes.set(title="Batches of 10 v 10, one thread", xlabel="battles", ylabel="thousand live agent-steps/s")


PANELS: dict[str, Callable[[Axes, Results], None]] = {"apis": _apis, "scaling": _scaling}


def _thousands(cells: Sequence[Cell]) -> list[float]:
    return [0.0 if cell is None or isinstance(cell, str) else cell / THOUSAND for cell in cells]
