"""What a result was computed with, so that two results can be told to be comparable."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
ENGINE_SOURCES = (
    "actions.py",
    "catalog.py",
    "config.py",
    "engine/**/*.py",
    "map_config.py",
    "observations.py",
    "scenario.py",
    "scenario_files/*.toml",
    "schema.py",
    "terrain/**/*.py",
)
OPPONENT_SOURCES = ("opponents/**/*.py",)
_PACKAGES = ("numba", "numpy")


def stamp() -> dict[str, str]:
    """The versions of this package, of Python and of what computes, and the hashes of the sources that matter.

    ``engine_hash`` is of the sources that a battle's course follows from, given the players' actions: rules, engine,
    maps, observations, actions and scenarios. ``opponents_hash`` is of the scripted levels' sources. Both are the same
    on every platform and for every kind of installation.

    >>> sorted(stamp())
    ['engine_hash', 'numba', 'numpy', 'opponents_hash', 'package', 'python']
    """
    return {
        "package": importlib.metadata.version("echelon-env"),
        "engine_hash": engine_hash(),
        "opponents_hash": opponents_hash(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }


@cache
def engine_hash() -> str:
    """SHA-256 of the sources that a battle's course follows from, given the players' actions."""
    return source_hash(_PACKAGE, ENGINE_SOURCES)


@cache
def opponents_hash() -> str:
    """SHA-256 of the sources of the scripted levels."""
    return source_hash(_PACKAGE, OPPONENT_SOURCES)


def source_hash(folder: Path, patterns: Iterable[str]) -> str:
    """SHA-256 over the names and texts of the files in a folder that match a pattern, in the order of their names.

    Lines may end as the platform has it, and the order in which it lists files does not matter. Raises OSError for a
    file that cannot be read.
    """
    files = {path.relative_to(folder).as_posix(): path for pattern in patterns for path in folder.glob(pattern)}
    digest = hashlib.sha256()
    for name in sorted(files):
        text = files[name].read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\n{len(text)}\n".encode() + text)
    return digest.hexdigest()
