"""The progress of a learner, from the metrics that its run has written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from echelon_env.storage.reading import open_regular_file, parse_json
from echelon_train.runs.folder import METRICS_FILE

_TAIL = 1 << 16  # bytes of the file that are read: several lines


@dataclass(frozen=True)
class Progress:
    """What the last line of metrics says; None: not known yet."""

    steps: int | None = None  # decisions so far
    speed: float | None = None  # decisions per second, of this part of the run
    score: float | None = None  # mean score against all opponents, 0 to 1
    since_snapshot: int | None = None  # decisions


def read_progress(run: Path) -> Progress:
    """The progress of the run in a folder, which may not have begun."""
    try:
        with open_regular_file(run / METRICS_FILE) as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().split(b"\n")[:-1]  # the last line may be incomplete
        line = parse_json(lines[-1])
    except (OSError, IndexError, ValueError):
        return Progress()
    if not isinstance(line, dict):
        return Progress()
    steps, since = line.get("time/total_timesteps"), line.get("league/since_snapshot")
    speed, score = line.get("time/fps"), line.get("league/mean_score")
    return Progress(
        steps if isinstance(steps, int) else None,
        float(speed) if isinstance(speed, (int, float)) else None,
        float(score) if isinstance(score, (int, float)) else None,
        int(since) if isinstance(since, (int, float)) else None,
    )
