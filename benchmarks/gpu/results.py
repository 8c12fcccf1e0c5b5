"""The file of results: entries of parts, appended as they come."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables import read_document
from echelon_env.storage.atomic import write_json

SCHEMA = 1
PARTS = ("speed", "opponents", "engine", "processes", "gpus", "learning")


@dataclass(frozen=True)
class Entry:
    """The numbers of a case, or why it has none."""

    name: str
    numbers: dict[str, Any]
    """Numbers, and lists of pairs of numbers, by name."""
    error: str = ""


@dataclass(frozen=True)
class Run:
    """A part as it was run once."""

    part: str
    measured: bool
    """False where there was no GPU: the numbers then say nothing."""
    machine: dict[str, Any]
    entries: list[Entry]


def append(path: Path, run: Run) -> None:
    """Write a run behind those in the file, or in place of the last one if that is the same run with fewer entries.

    Raises ValueError for a file that holds something else, and OSError.
    """
    runs = read(path) if path.exists() else []
    if runs and (runs[-1].part, runs[-1].machine) == (run.part, run.machine):
        runs.pop()
    write_json(path, {"schema": SCHEMA, "runs": [asdict(each) for each in (*runs, run)]})


def read(path: Path) -> list[Run]:
    """The runs of a file, in the order in which they were made. Raises ValueError, naming the file, if it has none."""
    return read_document(path, SCHEMA, "results of benchmarks.gpu", lambda data: [_run(each) for each in data["runs"]])


def last_of_each(runs: list[Run]) -> dict[str, Run]:
    """The last run of every part that measured something, by the part."""
    return {run.part: run for run in runs if run.measured and run.entries}


def _run(data: dict[str, Any]) -> Run:
    if data["part"] not in PARTS:
        raise ValueError(f"part: expected one of {', '.join(PARTS)}, got {data['part']!r}")
    if type(data["measured"]) is not bool:
        raise ValueError(f"measured: expected a boolean, got {data['measured']!r}")
    entries = [Entry(str(each["name"]), _numbers(each["numbers"]), str(each["error"])) for each in data["entries"]]
    return Run(data["part"], data["measured"], dict(data["machine"]), entries)


def _numbers(data: dict[str, Any]) -> dict[str, Any]:
    for name, value in data.items():
        pairs = value if isinstance(value, list) else [[value]]
        for each in (number for pair in pairs for number in pair):
            if type(each) not in (int, float) or not math.isfinite(each):
                raise ValueError(f"{name!r}: expected finite numbers, got {value!r}")
    return dict(data)
