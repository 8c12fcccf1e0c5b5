"""The stored rows of the table, ``docs/results/baselines.json``."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.baselines.judge import sealed
from benchmarks.baselines.plan import Run, evaluations, planned
from benchmarks.machine import ROOT
from echelon_env.storage.atomic import write_json

FILE = ROOT / "docs" / "results" / "baselines.json"


def read(path: Path) -> list[dict[str, Any]]:
    """The rows. Raises ValueError for one that was changed after it was written."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    for row in rows:
        if sealed(row)["hash"] != row["hash"]:
            raise ValueError(f"{path}: the row {key(row)} differs from its hash")
    return rows


def key(row: Mapping[str, Any]) -> tuple[str, str, int | None, str | None]:
    """What there is one row of."""
    return row["scenario"], row["method"], row["seed"], row["suite"]


def missing(rows: Iterable[Mapping[str, Any]]) -> list[Run]:
    """The planned runs that lack one of these rows, in their order."""
    stored = {key(row) for row in rows}
    return [
        run
        for run in planned()
        if any((run.scenario, run.method, run.seed, suite) not in stored for suite, _ in evaluations(run))
    ]


def append(row: dict[str, Any], path: Path, replace: bool = False) -> bool:
    """Add a row, or replace one of the same run and suite if allowed. Returns whether it is stored."""
    with _locked(path):
        rows = read(path)
        others = [each for each in rows if key(each) != key(row)]
        if len(others) < len(rows) and not replace:
            return False
        write_json(path, sorted([*others, sealed(row)], key=lambda each: tuple(map(str, key(each)))))
        return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two runs may end at the same time."""
    with path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
