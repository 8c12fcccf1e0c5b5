"""Scenarios: battles with a name and a purpose, one TOML file each, and what users may write for a configuration.

A scenario's file holds a ``description`` and the keys of `BattleConfig`; keys that are absent keep their defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from echelon_env.config import BattleConfig
from echelon_env.schema import ConfigError, nearest_name, override

_SHIPPED = Path(__file__).parent / "scenario_files"
_SUFFIX = ".toml"

ScenarioLike = str | os.PathLike[str] | BattleConfig | Mapping[str, Any]
"""What stands for a battle's configuration: a scenario's name or file, a configuration or its dict."""


@dataclass(frozen=True)
class Scenario:
    """A battle with a name and a purpose."""

    name: str
    description: str
    config: BattleConfig


@cache
def scenarios() -> Mapping[str, Scenario]:
    """The scenarios that come with the package, by name, from the fewest mechs to the most.

    >>> list(scenarios())[:3]
    ['duel', 'duel-cover', 'duel-open']
    """
    ordered = sorted(map(_shipped, scenario_names()), key=lambda scenario: (scenario.config.num_mechs, scenario.name))
    return MappingProxyType({scenario.name: scenario for scenario in ordered})


def scenario_names() -> tuple[str, ...]:
    """The names of `scenarios` in the order of the alphabet, without reading their files."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob(f"*{_SUFFIX}")))


def load_scenario(name_or_file: str | os.PathLike[str]) -> Scenario:
    """A shipped scenario by its name, or one of a user's own from its file (a path, or a string that ends in .toml).

    Raises `ConfigError` for an unknown name (with the nearest valid one) and for a file that cannot be read or is no
    valid scenario, with its path and the line to blame.
    """
    if isinstance(name_or_file, str) and not name_or_file.endswith(_SUFFIX):
        if name_or_file not in scenario_names():
            hint = nearest_name(name_or_file, scenario_names())
            raise ConfigError(f"unknown scenario {name_or_file!r}{hint}; a file's name ends in {_SUFFIX}")
        return _shipped(name_or_file)
    return _read(Path(name_or_file))


def make_config(scenario: ScenarioLike = "battle", **overrides: Any) -> BattleConfig:
    """A valid configuration from a scenario's name or file, a configuration or its dict, with fields overridden.

    A nested part takes a mapping of the fields to change: ``make_config("duel", terrain={"size": 64})``.
    Raises `ConfigError` for an unknown scenario or key (with the nearest valid name) and for impossible values.

    >>> make_config("duel", max_steps=240).max_steps
    240
    >>> make_config("duel", max_step=240)
    Traceback (most recent call last):
    echelon_env.schema.ConfigError: unknown config key 'max_step'; did you mean 'max_steps'? (valid: banned_weapons, ...
    """
    if isinstance(scenario, (str, os.PathLike)):
        config = load_scenario(scenario).config
    elif isinstance(scenario, BattleConfig):
        config = scenario
    elif isinstance(scenario, Mapping):
        config = BattleConfig.from_dict(scenario)
    else:
        raise ConfigError(
            f"expected a scenario's name or file, a BattleConfig or its dict, got {type(scenario).__name__}"
        )
    return typing.cast("BattleConfig", override(config, overrides, "")) if overrides else config


@cache
def _shipped(name: str) -> Scenario:
    return _read(_SHIPPED / f"{name}{_SUFFIX}")


def _read(path: Path) -> Scenario:
    """The scenario of a file. Raises `ConfigError`, which names the file and the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigError(f"scenario {path}: {reason}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1  # at the end of the document
        raise ConfigError(f"{path}:{line}: {error}") from None
    try:
        description = data.pop("description", None)
        if not isinstance(description, str) or not description.strip():
            raise ConfigError(f"description: expected what the scenario is, got {description!r}", "description")
        return Scenario(path.stem, " ".join(description.split()), BattleConfig.from_dict(data))
    except ConfigError as error:
        raise ConfigError(f"{path}:{_line_of(text, error.keys)}: {error}", *error.keys) from None


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """The line at which the first of the dotted keys that the file has begins; 1 if it has none of them."""
    paths = [re.findall(r"[^.\[\]]+", key) for key in keys]
    tables = [path[:length] for path in paths for length in range(len(path) - 1, 0, -1)]
    for path in [*paths, *tables]:  # a key that is absent is missed in the table that should hold it
        line = _first_line_with(text, path)
        if line is not None:
            return line
    return 1


def _first_line_with(text: str, key: list[str]) -> int | None:
    """The line at which a key begins: the parser itself says after which line the key is there."""
    lines = text.split("\n")
    complete = 0  # lines that are a valid file, without the key
    for count in range(1, len(lines) + 1):
        try:
            data: Any = tomllib.loads("\n".join(lines[:count]) + "\n")
        except tomllib.TOMLDecodeError:
            continue  # within a value of several lines
        for part in key:
            data = _entry(data, part)
        if data is not None:
            return complete + 1
        complete = count
    return None


def _entry(data: Any, key: str) -> Any:
    """What a table holds under a key, or a list at an index; None if that is nothing."""
    if isinstance(data, list):
        return data[int(key)] if key.isdecimal() and int(key) < len(data) else None
    return data.get(key) if isinstance(data, dict) else None
