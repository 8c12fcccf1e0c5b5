"""Pictures of runs' metrics, drawn without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from echelon_train.runs.charts import Chart, save_picture
from echelon_train.runs.curves import PICTURE, Groups, run_charts, win_rate_chart, win_rate_comparison
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.metrics import SAMPLES_LABEL

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


def _save(path: Path, title: str, charts: Sequence[Chart | None]) -> None:
    save_picture(path, title, [each for each in charts if each is not None], SAMPLES_LABEL)
