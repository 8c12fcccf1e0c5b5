"""The peers' virtual environments: made once, kept in a directory, never touched when they are whole."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from echelon_env.storage.atomic import write_bytes

ROOM = 3e9  # bytes that the largest of them needs while it is made
WHOLE = "whole.txt"  # in an environment whose installation has come to its end
LONGEST_INSTALLATION = 900.0  # s


class PeerError(RuntimeError):
    """Why a peer is not measured."""


def python_of(requirements: tuple[str, ...], directory: Path) -> str:
    """The interpreter of an environment with pinned packages, made if it is not there.

    Raises `PeerError`, with pip's or the system's own words, if they do not install.
    """
    tag = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    folder = directory / f"{requirements[0].split('==')[0].split('[')[0]}-{tag}"
    python = folder / "bin" / "python"
    try:
        if not (folder / WHOLE).exists():
            _make(folder, python, requirements)
    except OSError as error:
        raise PeerError(str(error)) from None
    return str(python)


def _make(folder: Path, python: Path, requirements: tuple[str, ...]) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted installation left
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if free < ROOM:
        raise PeerError(f"expected {ROOM / 1e9:.0f} GB free in {folder.parent} to install it, got {free / 1e9:.1f}")
    try:
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])
        write_bytes(folder / WHOLE, "\n".join(requirements).encode())
    except (PeerError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        raise


def run(command: list[str]) -> None:
    """Run a command that installs something. Raises `PeerError` with its own words if it fails."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_INSTALLATION)
    except subprocess.TimeoutExpired:
        raise PeerError(f"installation took longer than {LONGEST_INSTALLATION:.0f} s") from None
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or [result.stderr.strip()]
        raise PeerError(lines[-1].removeprefix("ERROR: "))
