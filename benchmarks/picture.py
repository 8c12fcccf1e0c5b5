"""The results as one picture: APIs, phases, scaling and peers, as far as they were measured."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.machine import commit_in_words
from benchmarks.phases import LIVE, SUM, WHOLE
from benchmarks.results import Results
from benchmarks.scaling import RATE
from benchmarks.tables import Cell

DPI = 130
ECHELON, OTHERS, FLOOR = "tab:blue", "0.65", "tab:orange"
THOUSAND = 1000.0


def picture(results: Results) -> bytes:
    """A PNG. Raises ValueError if none of its sections was measured."""
    panels = [(draw, section) for section, draw in PANELS.items() if section in results.sections]
    if not panels:
        raise ValueError(f"expected results of one of {sorted(PANELS)}, got {sorted(results.sections)}")
    down = (len(panels) + 1) // 2
    figure = Figure(figsize=(12, 4.2 * down), layout="constrained")
    FigureCanvasAgg(figure)
    grid = list(figure.subplots(down, 2, squeeze=False).flat)
    for axes in grid:
        axes.set_axis_off()
    for axes, (draw, section) in zip(grid, panels, strict=False):
        axes.set_axis_on()
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


def _phases(axes: Axes, results: Results) -> None:
    table = results.sections["phases"]["phases"]
    floors = results.sections.get("floors", {}).get("floors")
    names = [row for row in table.rows if row not in (SUM, WHOLE, LIVE)]
    size = "10 v 10" if "10 v 10" in table.columns else table.columns[-1]
    axes.barh(names, _numbers(table.cell(name, size) for name in names), color=ECHELON, label="measured")
    if floors is not None and size in floors.columns:
        known = [name for name in names if name in floors.rows]
        bottom = _numbers(floors.cell(name, size) for name in known)
        axes.barh(known, bottom, 0.35, color=FLOOR, label="floor")
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    axes.set(title=f"A decision, phase by phase, {size}", xlabel="us a battle")


def _scaling(axes: Axes, results: Results) -> None:
    for name, label in (("mechs", "mechs (1 v 1 to 40 v 40)"), ("batch", "battles in the batch, 10 v 10")):
        table = results.sections["scaling"][name]
        places = [_count(column) for column in table.columns]
        axes.plot(places, _thousands(table.rows[RATE]), "o-", label=label)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    axes.set(title="Scaling, one thread", xlabel="mechs a battle, or battles", ylabel="thousand live agent-steps/s")


def _peers(axes: Axes, results: Results) -> None:
    table = results.sections["peers"]["peers"]
    names = list(table.rows)
    rates = _thousands([table.rows[name][0] for name in names])
    colours = [ECHELON if name.startswith(("Echelon", "the same")) else OTHERS for name in names]
    bars = axes.barh(names, rates, color=colours)
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=3, fontsize=8)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.set(title="Peers, one core each", xlabel="thousand live agent-steps/s")


PANELS: dict[str, Callable[[Axes, Results], None]] = {
    "apis": _apis, "phases": _phases, "scaling": _scaling, "peers": _peers,
}  # fmt: skip


def _count(column: str) -> int:
    """Mechs of "5 v 5", battles of "16"."""
    return sum(int(part) for part in column.split(" v "))


def _thousands(cells: Sequence[Cell]) -> list[float]:
    return [value / THOUSAND for value in _numbers(cells)]


def _numbers(cells: Any) -> list[float]:
    return [0.0 if cell is None or isinstance(cell, str) else cell for cell in cells]
