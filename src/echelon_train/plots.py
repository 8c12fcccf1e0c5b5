"""Pictures of how a run went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from echelon_train.callbacks.statistics import WINDOW
from echelon_train.evaluation import Evaluation

Metrics = Sequence[dict[str, Any]]


def save_learning_curve(
    path: Path, metrics: Metrics, evaluations: Sequence[tuple[int, Evaluation]], title: str
) -> None:
    """Draw a run's win rate and return over the samples into a PNG, without a display.

    Parameters
    ----------
    path
        The picture's file.
    metrics
        Lines of the run's metrics.
    evaluations
        (samples, evaluation) pairs, drawn with their intervals.
    title
        Above the picture.
    """
    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    rates, returns = figure.subplots(2, 1, sharex=True)
    _curve(rates, metrics, "battle/win_rate", f"training, last {WINDOW} battles")
    for number, (steps, evaluation) in enumerate(evaluations):
        wins = evaluation.wins
        rates.errorbar(
            [steps / 1000],
            [wins.estimate],
            yerr=[[wins.estimate - wins.low], [wins.high - wins.estimate]],
            fmt="o",
            capsize=5,
            color="tab:red",
            label=f"{len(evaluation.match.battles)} battles on unseen maps, 95 % interval" if number == 0 else None,
        )
    rates.set(ylabel="win rate", ylim=(-0.03, 1.03), title=title)
    rates.legend(loc="center right")
    _curve(returns, metrics, "battle/return", None)
    returns.set(ylabel="mean return of a battle", xlabel="thousand samples (decisions of learner mechs)")
    for axes in (rates, returns):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _curve(axes: Axes, metrics: Metrics, name: str, label: str | None) -> None:
    points = [(line["time/total_timesteps"] / 1000, line[name]) for line in metrics if name in line]
    if points:
        axes.plot(*zip(*points, strict=True), color="tab:blue", label=label)
