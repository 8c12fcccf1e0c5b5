"""Pictures of runs' metrics, drawn without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from echelon_train.runs.charts import Chart, save_picture
from echelon_train.runs.curves import PICTURE, Groups, run_charts, win_rate_chart, win_rate_comparison
from echelon_train.runs.evaluation import Evaluation
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.metrics import EVALUATION_STEPS, SAMPLES_LABEL, STEPS, Metrics

CURVES_FILE = "curves.png"


def save_run_curves(run: Path) -> None:
    """Draw a run's metrics into ``curves.png`` in its folder, with the changes of a curriculum's stage.

    Raises OSError and RunFolderError if the metrics cannot be read, or the picture cannot be written.
    """
    metrics = read_metrics(run)
    charts = [win_rate_chart(metrics), *run_charts(metrics, PICTURE)]
    _save(run / CURVES_FILE, run.resolve().name, charts)


def save_comparison(path: Path, title: str, groups: Groups) -> None:
    """Draw the win rates of groups of runs in their evaluations into a PNG. Raises OSError."""
    _save(path, title, [win_rate_comparison(groups)])


def save_learning_curve(
    path: Path, metrics: Metrics, evaluations: Sequence[tuple[int, Evaluation]], title: str
) -> None:
    """Draw a run's win rate and return into a PNG; `evaluations` are (samples, evaluation) pairs. Raises OSError."""
    shares = [(steps, evaluation.wins) for steps, evaluation in evaluations]
    evaluated = [
        {STEPS: steps, EVALUATION_STEPS: steps, "eval/win_rate": wins.estimate}
        | {"eval/win_rate_low": wins.low, "eval/win_rate_high": wins.high}
        for steps, wins in shares
    ]
    returns = [curve for curve in PICTURE if curve.title == "return"]
    _save(path, title, [win_rate_chart([*metrics, *evaluated]), *run_charts(metrics, returns)])


def _save(path: Path, title: str, charts: Sequence[Chart | None]) -> None:
    save_picture(path, title, [each for each in charts if each is not None], SAMPLES_LABEL)
