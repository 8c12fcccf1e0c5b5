"""Stamps: the versions and hashes that a result was computed with."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
from functools import cache
from importlib import resources
from typing import Any

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import to_plain, values_of

_PACKAGES = ("numba", "numpy", "scipy", "torch")


def stamp() -> dict[str, str]:
    """The versions of this package, Python and the numeric libraries, and the hashes of behaviour.

    ``engine_hash`` is a digest of the engine's behaviour: golden battles, golden maps and the layouts of observations
    and actions. Configurations have a separate hash, see `battle_hash`. ``opponents_hash`` is a digest of the actions
    of the shipped players. Refactoring and speed-ups leave both unchanged. A changed rule changes the first, and the
    second if the players see its effect. A changed player changes the second.

    Both are derived from ``evaluate/behaviour.json``. The test suite computes that file again and fails if the
    behaviour differs. Until the tests are run, an edited copy of the package reports the old hashes.
    The versions of Numba and PyTorch are included if they are installed.

    >>> stamp().keys() >= {"engine_hash", "opponents_hash", "package", "python", "numpy", "scipy"}
    True
    """
    versions = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    golden = behaviour()
    return {
        "package": importlib.metadata.version("echelon-env"),
        "engine_hash": document_hash(golden["engine"]),
        "opponents_hash": document_hash(golden["opponents"]),
        "python": platform.python_version(),
        **versions,
    }


@cache
def behaviour() -> dict[str, Any]:
    """The golden digests of this version, of the engine and of the opponents."""
    text = resources.files(__package__).joinpath("behaviour.json").read_text(encoding="utf-8")
    golden: dict[str, Any] = json.loads(text)
    return golden


def document_hash(document: Any) -> str:
    """SHA-256 of plain data as ASCII JSON with sorted keys and no spaces. Raises ValueError for non-finite numbers."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def battle_hash(config: BattleConfig) -> str:
    """SHA-256 of everything in a configuration that affects a battle, `battle_document`."""
    return document_hash(battle_document(config))


def battle_document(config: BattleConfig) -> dict[str, Any]:
    """Everything in a configuration that affects a battle as plain data: all fields except the rewards.

    A field that was added later (``since`` in its metadata) is included only if it differs from its default. So a new
    field leaves the hashes of older suites, matches and leagues unchanged. `BattleConfig.from_dict` reads the document.
    """
    return {name: value for name, value in _hashed(config).items() if name != "rewards"}


def _hashed(value: Any) -> Any:
    """A configuration as plain data, without later fields that have their default values."""
    if dataclasses.is_dataclass(value):
        values = values_of(value)
        return {name: _hashed(values[name]) for name in _counted(value)}
    if isinstance(value, tuple):
        return [_hashed(item) for item in value]
    return to_plain(value)


def _counted(part: Any) -> list[str]:
    """The names of the fields of a configuration that its hash includes."""
    names = []
    for field in dataclasses.fields(part):
        factory = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        if "since" not in field.metadata or getattr(part, field.name) != default:
            names.append(field.name)
    return names


def describe_machine() -> str:
    """A line about the machine: processor, cores, system, Python."""
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            processor = next(
                (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), processor
            )
    except OSError:
        pass  # the file exists only on Linux
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
