"""Where a run and its checkpoints come from: layouts, package versions, the source's state, the machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

from echelon_env.evaluate.stamps import describe_machine
from echelon_env.layout.actions import ACTION_HIGH, ACTION_LOW, Action
from echelon_env.layout.observations import STREAMS

_PACKAGES = (
    "echelon-env", "numpy", "numba", "scipy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "safetensors",
)  # fmt: skip


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
    commit = _git("rev-parse", "HEAD")
    return None if commit is None else commit.decode().strip()


def git_diff() -> bytes:
    """What the checkout that this package runs from has changed since its commit, as a patch of its tracked files.

    Nothing for a clean checkout and for an installed package.
    """
    return _git("diff", "--binary", "--no-color", "--no-ext-diff", "HEAD") or b""


def machine() -> dict[str, Any]:
    """The machine in words, the cores that this process may use, and its GPUs."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"description": describe_machine(), "cores": cores, "gpus": gpus}


def _git(*args: str) -> bytes | None:
    """What git says of the checkout that this package runs from; None without git or a checkout."""
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    try:
        # an unrelated repository around a virtual environment is no match
        for command in ([*git, "ls-files", "--error-unmatch", here.name], [*git, *args]):
            output = subprocess.run(command, capture_output=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return output


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    return hashlib.sha256(json.dumps(list(rows)).encode()).hexdigest()
