"""Numbers of a run's metrics as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Metrics = Sequence[dict[str, Any]]
"""The lines of a run's metrics, see `folder.read_metrics`."""

STEPS = "time/total_timesteps"
EVALUATION_STEPS = "eval/timesteps"
"""The samples at an evaluation, whose numbers are in the next line of metrics."""
SAMPLES_LABEL = "samples (decisions of learner mechs)"
_LARGEST = 1e100  # a larger number is none of a run


def table(metrics: Metrics, *names: str) -> NDArray[np.float64]:
    """(n, names): values of the metrics, from the lines that have finite numbers for all of them."""
    rows = [[line.get(name) for name in names] for line in metrics]
    return np.array([row for row in rows if all(map(is_number, row))], np.float64).reshape(-1, len(names))


def points(metrics: Metrics, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(samples, values) of a metric."""
    steps, values = table(metrics, EVALUATION_STEPS if name.startswith("eval/") else STEPS, name).T
    return steps, values


def matching(metrics: Metrics, pattern: str) -> dict[str, str]:
    """The metrics of a pattern such as ``opponent/*/win_rate``, by the text in place of the ``*``."""
    beginning, _, end = pattern.partition("*")
    names = dict.fromkeys(name for line in metrics for name in line)
    return {
        name[len(beginning) : len(name) - len(end)]: name
        for name in names
        if name.startswith(beginning) and name.endswith(end) and len(name) > len(beginning) + len(end)
    }


def common_curves(
    curves: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Curves (samples, values) of several runs, at the samples of all of them that lie in the part that all have.

    Returns
    -------
    The samples (n,), and the interpolated values (runs, n).
    """
    first, last = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
    grid = np.unique(np.concatenate([steps for steps, _ in curves]))
    grid = grid[(first <= grid) & (grid <= last)]
    return grid, np.array([np.interp(grid, steps, values) for steps, values in curves])


def is_number(value: Any) -> bool:
    """Whether the value of a metric is a finite number of a sensible size."""
    return type(value) in (int, float) and abs(value) < _LARGEST  # false for NaN
