"""Run configs: training runs as TOML files, with overrides from the command line.

A file has a ``scenario`` or a ``curriculum``, and keys of `TrainConfig`. Missing keys have their defaults::

    scenario = "skirmish"  # or ["skirmish", "battle"]: each process of the run trains in one of them
    # or curriculum = ["duel-open", "duel"], or a table [curriculum] of scenarios, promote, ...
    opponent = "novice"
    steps = 20_000_000

    [battle]               # changes of the scenario
    rewards.death = -5.0

    [network]
    width = 256

    [ppo]
    learning_rate = "linear:7e-4:7e-5"

Paths in a file are relative to the working directory, as on the command line.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from echelon_env.config.battle import BattleConfig
from echelon_env.config.curriculum import Curriculum
from echelon_env.config.scenario import Scenario, make_config, scenario_names
from echelon_env.config.schema import ConfigError, build, nearest_name
from echelon_env.config.toml_file import SUFFIX, find_config_file, parse_value, read_config_file, shipped_names
from echelon_train.config.eval_seeds import EvalSeeds
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import TrainConfig, training_curriculum

_SHIPPED = Path(__file__).parent / "run_files"
_KIND = "run config"
_EXCLUSIVE = ("scenario", "curriculum")  # a run has exactly one of them
_EXTRA = "extra_scenarios"  # follows from a file's scenario
_MAPS = ("eval_seeds", "eval_battles")  # of an evaluation; at most one of them


def run_config_names() -> tuple[str, ...]:
    """The names of the shipped run configs, in alphabetical order."""
    return shipped_names(_SHIPPED)


def run_config_descriptions() -> dict[str, str]:
    """The descriptions of the shipped run configs by name."""
    documents = {name: tomllib.loads((_SHIPPED / f"{name}{SUFFIX}").read_text("utf-8")) for name in run_config_names()}
    return {name: document["description"] for name, document in documents.items()}


def load_run_config(source: str | Path, overrides: Mapping[str, str] = types.MappingProxyType({})) -> TrainConfig:
    """Load the configuration of a run: a shipped one by its name, or a file, a path or a string that ends in .toml.

    `overrides` are values by dotted key (``{"ppo.n_epochs": "4", "battle.rewards.death": "-5"}``), in TOML syntax,
    where strings need no quotes. A scenario replaces a curriculum and vice versa.

    Raises `ConfigError` for an unknown name or key (with the nearest valid one), a scenario, an unreadable file and an
    invalid value. The message names the file and the line, or the override.
    """

    def check(data: dict[str, Any]) -> tuple[dict[str, Any], TrainConfig]:
        return data, _resolve(data)

    if source in scenario_names() and source not in run_config_names():
        raise ConfigError(f"{source!r} is a scenario, not a run config: give --scenario {source}", "scenario")
    data, config = read_config_file(find_config_file(source, _SHIPPED, _KIND), _KIND, check)
    if not overrides:
        return config
    try:
        return _resolve(_with_overrides(data, overrides))
    except ConfigError as error:  # the file alone is valid, so the overrides cause the error
        causes = [name for key in error.keys for name in overrides if f"{key}.".startswith(f"{name}.")] or overrides
        given = ", ".join(f"{name}={overrides[name]}" for name in dict.fromkeys(causes))
        raise ConfigError(f"with {given}: {error}", *error.keys) from None


@dataclass(frozen=True)
class Setting:
    """A setting of a run, for command-line options."""

    key: str  # dotted: "ppo.learning_rate"
    metavar: str  # the accepted values: "N", "{sets,flat}"
    default: str  # empty if there is none
    help: str  # empty if there is none


def settings(part: type[Any] = TrainConfig, path: str = "", config: Any = None) -> Iterator[Setting]:
    """All settings of a dataclass and of those nested in it, in order, except those of the battle and the curriculum.

    `path` is the prefix of the keys. The defaults are the values of `config`, an object of the class, if it is given.
    """
    hints = typing.get_type_hints(part)
    for field in dataclasses.fields(part):
        hint, key = hints[field.name], path + field.name
        if field.name in ("battle", "curriculum", _EXTRA):
            continue
        if dataclasses.is_dataclass(hint) and not hasattr(hint, "parse"):
            inner = None if config is None else getattr(config, field.name)
            yield from settings(typing.cast("type[Any]", hint), f"{key}.", inner)
            continue
        unit, text = field.metadata.get("unit", ""), field.metadata.get("help", "")
        value = field.default if config is None else getattr(config, field.name)
        default = "" if value is None else f"{_value_text(value)} {'' if unit in text else unit}".strip()
        yield Setting(key, _metavar(hint, field), default, text)


def _metavar(hint: Any, field: dataclasses.Field[Any]) -> str:
    if typing.get_origin(hint) is Literal:
        return f"{{{','.join(typing.get_args(hint))}}}"
    metavars = {int: "N", float: "X", bool: "{true,false}", Schedule: "SCHEDULE", EvalSeeds | None: "FILE"}
    return metavars.get(hint, field.name.upper())


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:_}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _resolve(data: Mapping[str, Any]) -> TrainConfig:
    """Build the configuration from a file's data."""
    names = {field.name for field in dataclasses.fields(TrainConfig)} - {_EXTRA} | {"scenario", "description"}
    for key in data:
        if key not in names:
            hint = nearest_name(key, names)
            if key in (field.name for field in dataclasses.fields(BattleConfig)):
                hint = "; give a scenario file as --scenario FILE, a key of the battle in the table [battle]"
            raise ConfigError(f"unknown config key {key!r}{hint}", key)
    if "eval_seeds" in data and "eval_battles" in data:
        raise ConfigError("eval_battles, eval_seeds: expected one of them", "eval_battles", "eval_seeds")
    own = {key: value for key, value in data.items() if key not in ("scenario", "description")}
    changes = own.pop("battle", {})
    if not isinstance(changes, Mapping):
        raise ConfigError(f"config key 'battle': expected a table, got {changes!r}", "battle")
    if "curriculum" in data:
        own["curriculum"] = curriculum = _curriculum(data["curriculum"], changes)
        own["battle"] = curriculum.scenarios[0].config
    if ("scenario" in data) == ("curriculum" in data):
        raise ConfigError(
            f"expected a scenario or a curriculum, got {'both' if 'scenario' in data else 'neither'}", *_EXCLUSIVE
        )
    if "scenario" in data:
        first, *extra = _scenarios(data["scenario"], changes)
        own["battle"] = first.config
        if extra:
            own |= {_EXTRA: tuple(extra), "processes": own.get("processes", 1 + len(extra))}
    return typing.cast("TrainConfig", build(TrainConfig, own, ""))


def _scenarios(given: Any, changes: Mapping[str, Any]) -> list[Scenario]:
    """The scenarios of a run's processes; `changes` apply to all of them."""
    if given == []:
        raise ConfigError("scenario: expected at least one, got none", "scenario")
    with _prefix_errors("scenario"):
        made = training_curriculum(given if isinstance(given, list) else [given])
    return _changed(made.scenarios, changes)


def _curriculum(given: Any, changes: Mapping[str, Any]) -> Curriculum:
    """A run's curriculum; `changes` apply to the scenario of every stage."""
    rule = dict(given) if isinstance(given, Mapping) else {"scenarios": given}
    if "scenarios" not in rule:
        raise ConfigError(f"{', '.join(rule)}: a curriculum needs scenarios", *(f"curriculum.{key}" for key in rule))
    with _prefix_errors("curriculum"):
        made = training_curriculum(rule.pop("scenarios"), **rule)
    return dataclasses.replace(made, scenarios=tuple(_changed(made.scenarios, changes)))


def _changed(scenarios: Iterable[Scenario], changes: Mapping[str, Any]) -> list[Scenario]:
    """Scenarios with a file's changes of the battle."""
    with _prefix_errors("battle"):
        return [dataclasses.replace(each, config=make_config(each.config, **changes)) for each in scenarios]


@contextlib.contextmanager
def _prefix_errors(table: str) -> Iterator[None]:
    """Prefix errors, and the keys that they name, with the name of a table."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{table}: {error}", *(f"{table}.{key}" for key in error.keys), table) from None


def _with_overrides(data: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """A copy of a file's data with overrides applied."""
    changed = copy.deepcopy(dict(data))
    for chosen, other in (_EXCLUSIVE, _EXCLUSIVE[::-1]):
        if chosen in overrides:
            changed.pop(other, None)
    for chosen, other in (_MAPS, _MAPS[::-1]):
        if chosen in overrides and other not in overrides:
            changed.pop(other, None)
    if isinstance(changed.get("curriculum"), list):
        changed["curriculum"] = {"scenarios": changed["curriculum"]}
    for key, text in overrides.items():
        *tables, name = ["curriculum", "scenarios"] if key == "curriculum" else key.split(".")
        table = changed
        for part in tables:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"config key {key!r}: {part!r} is a value, not a table", key)
        table[name] = parse_value(text)
    return changed
