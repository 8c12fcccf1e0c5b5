"""The machine that a result was measured on, in words and numbers."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, Any]:
    """Processor, cores, system, versions, commit, date and the load of the last minute before the benchmark began."""
    return {
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "numba", "echelon-env")},
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def processor() -> str:
    """The processor's model, with its family and number where virtual machines hide the name."""
    with contextlib.suppress(OSError, KeyError), open("/proc/cpuinfo") as file:  # only Linux has the file
        lines = file.read().partition("\n\n")[0].splitlines()
        first = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return f"{first['model name']}, family {first['cpu family']}, model {first['model']}"
    return platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> str | None:
    """The checkout's commit, with a plus sign where files differ from it; None outside of a checkout."""
    try:
        head, changes = _git("rev-parse", "--short=10", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return head.strip() + ("+" if changes.strip() else "")


def commit_in_words(commit: str | None) -> str:
    """A commit as `describe` names it, for readers."""
    return "outside of a checkout" if commit is None else f"commit {commit}"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
