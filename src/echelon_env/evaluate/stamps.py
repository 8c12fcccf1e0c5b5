"""What a result was computed with, so that two results can be told to be comparable."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from echelon_env.config.battle import BattleConfig

_PACKAGE = Path(__file__).resolve().parent.parent
ENGINE_SOURCES = (
    "actions.py",
    "catalog.py",
    "config.py",
    "config_file.py",
    "controlled.py",
    "engine/**/*.py",
    "map_config.py",
    "observations.py",
    "scenario.py",
    "scenario_files/*.toml",
    "schema.py",
    "terrain/**/*.py",
)
OPPONENT_SOURCES = ("evaluate/players.py", "opponents/**/*.py")
_PACKAGES = ("numba", "numpy", "scipy", "torch")


def stamp() -> dict[str, str]:
    """The versions of this package, of Python and of what computes, and the hashes of the sources that matter.

    ``engine_hash`` is of the sources that a battle's course follows from, given the players' actions: rules, engine,
    maps, observations, actions and scenarios. ``opponents_hash`` is of the sources of the players that come with the
    package. Both are of the files as they were when this module was imported, and the same on every platform and for
    every kind of installation. PyTorch's version is there where it is installed.

    >>> stamp().keys() >= {"engine_hash", "opponents_hash", "package", "python", "numba", "numpy", "scipy"}
    True
    """
    versions = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "package": importlib.metadata.version("echelon-env"),
        "engine_hash": _ENGINE_HASH,
        "opponents_hash": _OPPONENTS_HASH,
        "python": platform.python_version(),
        **versions,
    }


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


def document_hash(document: Any) -> str:
    """SHA-256 of plain data as JSON without spaces, keys sorted, ASCII. Raises ValueError for numbers not finite."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def battle_hash(config: BattleConfig) -> str:
    """SHA-256 of what a battle's course follows from: `document_hash` of a configuration's dict without the rewards."""
    return document_hash({key: value for key, value in config.to_dict().items() if key != "rewards"})


# now, not when a stamp is wanted: a file may be edited while the code imported from it still plays
_ENGINE_HASH = source_hash(_PACKAGE, ENGINE_SOURCES)
_OPPONENTS_HASH = source_hash(_PACKAGE, OPPONENT_SOURCES)
