"""Provenance of runs and checkpoints: package versions, the commit and the machine."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from echelon_env.evaluate.stamps import describe_machine

_PACKAGES = (
    "echelon-env", "numpy", "numba", "scipy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib", "safetensors",
)  # fmt: skip


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that affect a policy's behaviour."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


@functools.cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def git_commit() -> str | None:
    """The commit of this package's checkout, or None for an installed package."""
    commit = _git("rev-parse", "HEAD")
    return None if commit is None else commit.decode().strip()


def git_diff() -> bytes:
    """The uncommitted changes of tracked files in this package's checkout, as a patch.

    Empty for a clean checkout and for an installed package.
    """
    return _git("diff", "--binary", "--no-color", "--no-ext-diff", "HEAD") or b""


def machine_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """A description of the machine, the number of cores that this process may use, and the names of its GPUs."""
    import torch

    cores = machine_cores()
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"description": describe_machine(), "cores": cores, "gpus": gpus}


def _git(*args: str) -> bytes | None:
    """The output of a git command in this package's checkout; None without git or a checkout."""
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    try:
        # the first command fails in an unrelated repository around a virtual environment
        for command in ([*git, "ls-files", "--error-unmatch", here.name], [*git, *args]):
            output = subprocess.run(command, capture_output=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return output
