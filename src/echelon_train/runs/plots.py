"""Pictures of runs' metrics, drawn without a display."""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from echelon_env.storage.atomic import write_bytes
from echelon_train.runs.callbacks.statistics import WINDOW
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.metrics import (
    EVALUATION_STEPS,
    SAMPLES_LABEL,
    STEPS,
    Metrics,
    common_curves,
    matching,
    points,
    table,
)

CURVES_FILE = "curves.png"
_DPI = 120
_SMOOTHED = 50  # the running mean of n points is n / 50 wide


@dataclass(frozen=True)
class _Curve:
    """A metric of a run over the samples."""

    metric: str
    title: str
    sign: float = 1.0
    scale: str = "linear"


_CURVES = (
    _Curve("battle/return", "return of a mech per battle"),
    _Curve("train/entropy_loss", "entropy, nats", sign=-1.0),
    _Curve("train/approx_kl", "KL divergence of an update, nats"),
    _Curve("train/explained_variance", "explained variance"),
    _Curve("train/value_loss", "value loss", scale="log"),
    _Curve("train/learning_rate", "learning rate"),
    _Curve("time/fps", "samples/s, mean so far"),
)


_GROUPS = (
    ("win rate by opponent", "opponent/*/win_rate"),
    ("loss of the teacher's labels, nats", "train/kickstart_loss_*"),
)
"""Title and pattern of the names of metrics that are drawn together, if there are several."""


def save_run_curves(run: Path) -> Path:
    """Draw a run's metrics into ``curves.png`` in its folder.

    These are win rates in training and in evaluations, return, entropy, KL divergence, explained variance, value loss,
    learning rate, speed, and, with several each, win rates by opponent and losses of a teacher's labels by block, if
    the run has logged them. Changes of a curriculum's stage are marked.

    Returns
    -------
    The picture's path.

    Raises
    ------
    OSError, RunFolderError
        If the metrics cannot be read, or the picture cannot be written.
    """
    metrics = read_metrics(run)
    curves = [curve for curve in _CURVES if points(metrics, curve.metric)[0].size]
    groups = {title: names for title, pattern in _GROUPS if len(names := matching(metrics, pattern)) > 1}
    columns = max(4, -(-(1 + len(curves) + len(groups)) // 2))
    figure = _figure((3.25 * columns, 6))
    figure.suptitle(run.resolve().name, fontweight="bold")
    places = figure.subplots(2, columns).ravel()
    _draw_win_rates(places[0], metrics)
    for axes, curve in zip(places[1:], curves, strict=False):
        steps, values = points(metrics, curve.metric)
        _draw(axes, steps, curve.sign * values)
        axes.set_yscale(curve.scale)
        axes.set_title(curve.title, fontsize="medium", loc="left")
    used = 1 + len(curves) + len(groups)
    for axes, (title, names) in zip(places[1 + len(curves) :], groups.items(), strict=False):
        for number, (label, metric) in enumerate(names.items()):
            axes.plot(*points(metrics, metric), color=f"C{number}", linewidth=1.2, label=label)
        axes.set_title(title, fontsize="medium", loc="left")
        _add_legend(axes)
    for axes in places[:used]:
        _finish(axes)
        _mark_stages(axes, metrics, named=axes is places[0])
    for axes in places[used:]:
        axes.set_visible(False)
    figure.supxlabel(SAMPLES_LABEL, fontsize="medium")
    path = run / CURVES_FILE
    _save(path, figure)
    return path


def save_comparison(
    path: Path,
    runs: Mapping[str, Sequence[Metrics]],
    metric: str,
    along: str | None = None,
    along_label: str = SAMPLES_LABEL,
) -> None:
    """Draw a metric of several groups of runs into one PNG: the median of each group, and its runs as thin lines.

    Parameters
    ----------
    path
        The picture's file.
    runs
        Lines of the metrics of runs that differ in their seed only, by the group's label.
    metric
        Name of the metric, such as ``battle/win_rate``.
    along, along_label
        Name of the metric of the horizontal axis, by default the samples, and its label. A median covers the part that
        all runs of a group have.

    Raises
    ------
    ValueError
        For a run without a line that has both metrics.
    OSError
        If the picture cannot be written.
    """
    figure = _figure((8, 4.5))
    axes = figure.subplots()
    for number, (label, group) in enumerate(runs.items()):
        curves = [points(metrics, metric, along) for metrics in group]
        for steps, values in curves:
            if not steps.size:
                raise ValueError(f"a run of {label!r} has logged no {metric!r}")
            axes.plot(steps, values, color=f"C{number}", linewidth=0.8, alpha=0.45)
        grid, values = common_curves(curves)
        median = np.median(values, axis=0)
        seeds = f", median of {len(curves)} seeds" if len(curves) > 1 else ""
        axes.plot(grid, median, color=f"C{number}", linewidth=2.2, label=f"{label}{seeds}")
    kind, _, name = metric.partition("/")
    axes.set(xlabel=along_label, ylabel=f"{name.replace('_', ' ')} ({kind})")
    if name.endswith(("win_rate", "draw_rate", "loss_rate", "success_rate")):
        _scale_as_share(axes)
    axes.legend(frameon=False)
    _finish(axes)
    _save(path, figure)


def save_learning_curve(
    path: Path, metrics: Metrics, evaluations: Sequence[tuple[int, Evaluation]], title: str
) -> None:
    """Draw a run's win rate and return over the samples into a PNG.

    Parameters
    ----------
    path
        The picture's file.
    metrics
        Lines of the run's metrics.
    evaluations
        (samples, evaluation) pairs, drawn with their intervals.
    title
        Title of the picture.
    """
    figure = _figure((8, 6))
    rates, returns = figure.subplots(2, 1, sharex=True)
    _draw(rates, *points(metrics, "battle/win_rate"), label=f"training, last {WINDOW} battles")
    if evaluations:
        wins = [evaluation.wins for _, evaluation in evaluations]
        bounds = np.array([[each.estimate, each.low, each.high] for each in wins])
        label = f"{len(evaluations[0][1].battles)} battles on unseen maps, 95 % interval"
        _draw_intervals(rates, np.array([steps for steps, _ in evaluations]), bounds, label)
    rates.set(ylabel="win rate", title=title)
    _scale_as_share(rates)
    _add_legend(rates)
    _draw(returns, *points(metrics, "battle/return"))
    returns.set(ylabel="mean return of a battle", xlabel=SAMPLES_LABEL)
    for axes in (rates, returns):
        _finish(axes)
    _save(path, figure)


def _figure(size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(path: Path, figure: Figure) -> None:
    """Write a PNG as a whole or not at all, because a viewer may have the previous one open."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI)
    write_bytes(path, picture.getvalue())


def _draw(axes: Axes, steps: NDArray[np.float64], values: NDArray[np.float64], label: str | None = None) -> None:
    """Draw a curve; one with many points is pale, with its running mean."""
    size = len(values) // _SMOOTHED
    if size > 1:
        axes.plot(steps, values, color="C0", linewidth=0.8, alpha=0.35)
        values = uniform_filter1d(values, size, mode="nearest")
    if len(values):
        axes.plot(steps, values, color="C0", linewidth=1.6, marker="." if len(values) == 1 else None, label=label)


def _draw_intervals(axes: Axes, steps: NDArray[np.float64], bounds: NDArray[np.float64], label: str) -> None:
    """Estimates with their intervals; `bounds` is (n, 3): estimate, low, high."""
    middle, low, high = bounds.T
    axes.errorbar(
        steps, middle, yerr=[middle - low, high - middle], fmt="o", markersize=4, capsize=3, color="C3", label=label
    )


def _draw_win_rates(axes: Axes, metrics: Metrics) -> None:
    _draw(axes, *points(metrics, "battle/win_rate"), label=f"training, last {WINDOW} battles")
    evaluations = table(metrics, EVALUATION_STEPS, "eval/win_rate", "eval/win_rate_low", "eval/win_rate_high")
    if evaluations.size:
        _draw_intervals(axes, evaluations[:, 0], evaluations[:, 1:], "evaluation, 95 % interval")
    axes.set_title("win rate", fontsize="medium", loc="left")
    _scale_as_share(axes)
    _add_legend(axes)


def _add_legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", frameon=False)


def _scale_as_share(axes: Axes) -> None:
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def _finish(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _mark_stages(axes: Axes, metrics: Metrics, named: bool) -> None:
    """Mark the changes of a curriculum's stage, optionally with the names of the new scenarios."""
    stages = [(line[STEPS], line["curriculum/scenario"]) for line in metrics if "curriculum/scenario" in line]
    for (_, before), (steps, name) in itertools.pairwise(stages):
        if name != before:
            axes.axvline(steps, color="0.6", linewidth=0.8, linestyle=":")
            if named:
                place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "rotation": 90, "va": "top"}
                axes.text(steps, 0.98, f"{name} ", fontsize=7, color="0.4", **place)
