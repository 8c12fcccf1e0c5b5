"""The progress of a learner, from the metrics that its run has written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from echelon_env.storage.reading import parse_json
from echelon_train.runs.folder import METRICS_FILE
from echelon_train.supervisor.children import tail

_TAIL = 1 << 16  # bytes of the file that are read: several lines


@dataclass(frozen=True)
class Progress:
    """What the last line of metrics says; None: not known yet."""

    steps: int | None = None  # decisions so far
    speed: float | None = None  # decisions per second, of this part of the run
    score: float | None = None  # mean score against all opponents, 0 to 1
    stage_left: float | None = None  # share of the stage, 0 to 1


def read_progress(run: Path) -> Progress:
    """The progress of the run in a folder, which may not have begun."""
    try:
        line = parse_json(tail(run / METRICS_FILE, _TAIL).split(b"\n")[-2])  # the last line may be incomplete
    except (OSError, IndexError, ValueError):
        return Progress()
    if not isinstance(line, dict):
        return Progress()
    steps, left = line.get("time/total_timesteps"), line.get("league/stage_left")
    speed, score = line.get("time/fps"), line.get("league/mean_score")
    return Progress(
        steps if isinstance(steps, int) else None,
        float(speed) if isinstance(speed, (int, float)) else None,
        float(score) if isinstance(score, (int, float)) else None,
        float(left) if isinstance(left, (int, float)) else None,
    )
