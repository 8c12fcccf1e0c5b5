"""Scenarios: named battle configurations, one TOML file each; and `make_config`.

A scenario file holds a ``description`` and keys of `BattleConfig`. Missing keys keep their defaults.
"""

from __future__ import annotations

import html
import os
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from echelon_env.config.battle import BattleConfig
from echelon_env.config.overrides import Overrides
from echelon_env.config.schema import ConfigError, override
from echelon_env.config.toml_file import SUFFIX, find_config_file, read_config_file, shipped_names

_SHIPPED = Path(__file__).parent / "scenarios"

ScenarioLike = str | os.PathLike[str] | BattleConfig | Mapping[str, Any]
"""The name or file of a scenario, a configuration, or its dict."""


@dataclass(frozen=True)
class Scenario:
    """A battle configuration with a name and a description."""

    name: str
    description: str
    config: BattleConfig


class Scenarios(Mapping[str, Scenario]):
    """Scenarios by name. It prints as a table, in notebooks as one of HTML."""

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        self._by_name = {scenario.name: scenario for scenario in scenarios}

    def __getitem__(self, name: str) -> Scenario:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        names = max(map(len, self._by_name), default=0)
        lines = []
        for name, teams, size, description in self._rows():
            start = f"{name:<{names}}  {teams:>7}  {size:>3} m  "
            lines.append(start + textwrap.shorten(description, 80 - len(start), placeholder="..."))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [("scenario", "teams", "map, m", ""), *self._rows()]
        cells = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    def _rows(self) -> Iterator[tuple[str, str, int, str]]:
        for name, scenario in self._by_name.items():
            config = scenario.config
            yield name, f"{len(config.blue)} v {len(config.red)}", config.terrain.size, scenario.description


@cache
def scenarios() -> Scenarios:
    """The shipped scenarios by name, sorted by number of mechs. `scenario_names` returns the names alone.

    >>> list(scenarios())[:3]
    ['duel', 'duel-cover', 'duel-open']
    >>> str(scenarios()).splitlines()[0]
    'duel               1 v 1  100 m  Two mediums, one zone, every biome.'
    """
    ordered = sorted(map(_shipped, scenario_names()), key=lambda scenario: (scenario.config.num_mechs, scenario.name))
    return Scenarios(ordered)


def scenario_names() -> tuple[str, ...]:
    """The names of the shipped scenarios in alphabetical order. It reads no file.

    >>> scenario_names()[:2]
    ('ambush', 'battle')
    """
    return shipped_names(_SHIPPED)


def load_scenario(name_or_file: str | os.PathLike[str]) -> Scenario:
    """Load a shipped scenario by its name, or a custom one from its file (a path, or a string that ends in .toml).

    Raises `ConfigError` for an unknown name (with the nearest valid one). Raises it for a file that cannot be read or
    is no valid scenario, with the path and the line of the error.
    """
    path = find_config_file(name_or_file, _SHIPPED, "scenario")
    return _shipped(path.stem) if path.parent == _SHIPPED else _read(path)


def make_config(scenario: ScenarioLike = "battle", **overrides: Unpack[Overrides]) -> BattleConfig:
    """Build a configuration from the name or file of a scenario, a configuration or its dict, with fields overridden.

    A nested part takes a mapping of the fields to change: ``make_config("duel", terrain={"size": 64})``. An entry of
    the catalogue is changed by its name: ``make_config("duel", catalog={"weapons": {"laser": {"damage": 20}}})``.
    Raises `ConfigError` for an unknown scenario or key (with the nearest valid name) and for invalid values.

    >>> make_config("duel", max_steps=240).max_steps
    240
    >>> make_config("duel", max_step=240)
    Traceback (most recent call last):
    echelon_env.config.schema.ConfigError: unknown config key 'max_step'; did you mean 'max_steps'? (valid: ...
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


def title_of(scenario: ScenarioLike, config: BattleConfig) -> str:
    """The name of a scenario, if it has one, and the numbers of its mechs.

    >>> title_of("duel", make_config("duel")), title_of({}, make_config("skirmish"))
    ("'duel', 1 v 1", '5 v 5')
    """
    name = f"{Path(scenario).stem!r}, " if isinstance(scenario, (str, os.PathLike)) else ""
    return f"{name}{len(config.blue)} v {len(config.red)}"


@cache
def _shipped(name: str) -> Scenario:
    return _read(_SHIPPED / f"{name}{SUFFIX}")


def _read(path: Path) -> Scenario:
    """Read the scenario of a file. Raises `ConfigError` with the file and the line."""

    def make(data: dict[str, Any]) -> Scenario:
        description = data.pop("description", None)
        if not isinstance(description, str) or not description.strip():
            raise ConfigError(f"description: expected a text about the scenario, got {description!r}", "description")
        return Scenario(path.stem, " ".join(description.split()), BattleConfig.from_dict(data))

    return read_config_file(path, "scenario", make)
