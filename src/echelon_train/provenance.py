"""Where a checkpoint comes from: layouts, package versions, the source's commit."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

from echelon_env.actions import ACTION_HIGH, ACTION_LOW, Action
from echelon_env.observations import STREAMS

_PACKAGES = ("echelon-env", "numpy", "numba", "torch", "stable-baselines3", "sb3-contrib", "safetensors")


def observation_layout_hash() -> str:
    """SHA-256 of every observation feature's stream, row, name, unit and bounds, in order."""
    return _digest(
        (stream.name, stream.rows, feature.name, feature.unit, feature.low, feature.high)
        for stream in STREAMS.values()
        for feature in stream.features
    )


def action_layout_hash() -> str:
    """SHA-256 of every action entry's name, in order, and of the bounds."""
    entries: list[IntEnum] = list(Action)
    return _digest([*((entry.name, entry.value) for entry in entries), (ACTION_LOW, ACTION_HIGH)])


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that a policy's behaviour depends on."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def git_commit() -> str | None:
    """The commit of the checkout that this package runs from, or None for an installed package."""
    here = Path(__file__).resolve()
    try:
        _git(here.parent, "ls-files", "--error-unmatch", here.name)  # an unrelated repository around a venv is no match
        return _git(here.parent, "rev-parse", "HEAD").strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *args: str) -> str:
    result = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, timeout=10, check=True)
    return result.stdout


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    return hashlib.sha256(json.dumps(list(rows)).encode()).hexdigest()
