"""Training runs as TOML files, with settings overridden by hand.

A run config's file holds a ``scenario`` or a ``curriculum``, and the keys of `TrainConfig`; keys that are absent keep
their defaults::

    scenario = "skirmish"  # or curriculum = ["duel-open", "duel"], or a table [curriculum] of scenarios, promote, ...
    opponent = "novice"
    steps = 20_000_000

    [battle]               # what differs from the scenario
    rewards.death = -5.0

    [network]
    width = 256

    [ppo]
    learning_rate = "linear:7e-4:7e-5"

Paths in it are taken from the working directory, as they are on the command line.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from echelon_env.config.curriculum import Curriculum
from echelon_env.config.scenario import make_config
from echelon_env.config.schema import ConfigError, build, nearest_name
from echelon_env.config.toml_file import SUFFIX, find_config_file, read_config_file, shipped_names
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import TrainConfig, battle_config, training_curriculum

_SHIPPED = Path(__file__).parent / "run_files"
_KIND = "run config"
_CHOSEN = ("scenario", "curriculum")  # of which a run has one


def run_config_names() -> tuple[str, ...]:
    """The names of the run configs that come with the package, in the order of the alphabet."""
    return shipped_names(_SHIPPED)


def run_config_descriptions() -> dict[str, str]:
    """What the run configs that come with the package are, by their names."""
    documents = {name: tomllib.loads((_SHIPPED / f"{name}{SUFFIX}").read_text("utf-8")) for name in run_config_names()}
    return {name: document["description"] for name, document in documents.items()}


def load_run_config(source: str | Path, overrides: Mapping[str, str] = types.MappingProxyType({})) -> TrainConfig:
    """The configuration of a run.

    Parameters
    ----------
    source
        Name of a run config that comes with the package, or a file: a path, or a string that ends in .toml.
    overrides
        Text by dotted key (``{"ppo.n_epochs": "4", "battle.rewards.death": "-5"}``): values in TOML, where strings need
        no quotes. A scenario takes the place of a curriculum, and the reverse.

    Raises
    ------
    ConfigError
        For an unknown name or key (with the nearest valid one), a file that cannot be read and an impossible value;
        with the file and the line to blame, or the override.
    """

    def check(data: dict[str, Any]) -> tuple[dict[str, Any], TrainConfig]:
        return data, _resolve(data)

    data, config = read_config_file(find_config_file(source, _SHIPPED, _KIND), _KIND, check)
    if not overrides:
        return config
    try:
        return _resolve(_overridden(data, overrides))
    except ConfigError as error:  # the file is in order, so this is what the overrides have made of it
        guilty = [name for key in error.keys for name in overrides if f"{key}.".startswith(f"{name}.")] or overrides
        given = ", ".join(f"{name}={overrides[name]}" for name in dict.fromkeys(guilty))
        raise ConfigError(f"with {given}: {error}", *error.keys) from None


@dataclass(frozen=True)
class Setting:
    """A value of a run's configuration, as a command line needs to know it."""

    key: str  # with dots: "ppo.learning_rate"
    form: str  # what can be written: "N", "{sets,flat}"
    default: str  # empty where there is none
    help: str  # empty where the configuration says nothing


def settings(part: type[Any] = TrainConfig, path: str = "") -> Iterator[Setting]:
    """The settings of a run and of its parts, in order, without those of the battle and the curriculum.

    `path` begins the keys.
    """
    hints = typing.get_type_hints(part)
    for field in dataclasses.fields(part):
        hint, key = hints[field.name], path + field.name
        if field.name in ("battle", "curriculum"):
            continue
        if dataclasses.is_dataclass(hint) and hint is not Schedule:
            yield from settings(typing.cast("type[Any]", hint), f"{key}.")
            continue
        unit = field.metadata.get("unit", "")
        default = "" if field.default is None else f"{_plain(field.default)} {unit}".strip()
        yield Setting(key, _form(hint, field), default, field.metadata.get("help", ""))


def _form(hint: Any, field: dataclasses.Field[Any]) -> str:
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else field.metadata.get("choices")
    if choices:
        return f"{{{','.join(map(_plain, choices))}}}"
    forms = {int: "N", float: "X", bool: "{true,false}", Schedule: "SCHEDULE", Schedule | None: "SCHEDULE"}
    return forms.get(hint, field.name.upper())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:_}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _resolve(data: Mapping[str, Any]) -> TrainConfig:
    """The configuration that a file's data describes."""
    names = {field.name for field in dataclasses.fields(TrainConfig)} | {"scenario", "description"}
    for key in data:
        if key not in names:
            raise ConfigError(f"unknown config key {key!r}{nearest_name(key, names)}", key)
    own = {key: value for key, value in data.items() if key not in ("scenario", "description")}
    changes = own.pop("battle", {})
    if not isinstance(changes, Mapping):
        raise ConfigError(f"config key 'battle': expected a table, got {changes!r}", "battle")
    if "curriculum" in data:
        own["curriculum"] = curriculum = _curriculum(data["curriculum"], changes)
        own["battle"] = curriculum.scenarios[0].config
    if ("scenario" in data) == ("curriculum" in data):
        raise ConfigError(
            f"expected a scenario or a curriculum, got {'both' if 'scenario' in data else 'neither'}", *_CHOSEN
        )
    if "scenario" in data:
        with _blaming("scenario"):
            battle = battle_config(data["scenario"])
        with _blaming("battle"):
            own["battle"] = make_config(battle, **changes)
    return typing.cast("TrainConfig", build(TrainConfig, own, ""))


def _curriculum(given: Any, changes: Mapping[str, Any]) -> Curriculum:
    """A run's curriculum, with what differs from every stage's scenario."""
    rule = dict(given) if isinstance(given, Mapping) else {"scenarios": given}
    if "scenarios" not in rule:
        raise ConfigError(f"{', '.join(rule)}: a curriculum needs scenarios", *(f"curriculum.{key}" for key in rule))
    with _blaming("curriculum"):
        made = training_curriculum(rule.pop("scenarios"), **rule)
    with _blaming("battle"):
        stages = (dataclasses.replace(each, config=make_config(each.config, **changes)) for each in made.scenarios)
        return dataclasses.replace(made, scenarios=tuple(stages))


@contextlib.contextmanager
def _blaming(table: str) -> Iterator[None]:
    """Put a table's name before the keys that an error in it names."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{table}: {error}", *(f"{table}.{key}" for key in error.keys), table) from None


def _overridden(data: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """A copy of a file's data with values changed."""
    changed = copy.deepcopy(dict(data))
    for chosen, other in (_CHOSEN, _CHOSEN[::-1]):
        if chosen in overrides:
            changed.pop(other, None)
    if isinstance(changed.get("curriculum"), list):
        changed["curriculum"] = {"scenarios": changed["curriculum"]}
    for key, text in overrides.items():
        *tables, name = ["curriculum", "scenarios"] if key == "curriculum" else key.split(".")
        table = changed
        for part in tables:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"config key {key!r}: {part!r} is a value and holds no keys", key)
        table[name] = parse_value(text)
    return changed


def parse_value(text: str) -> Any:
    """A value as TOML writes it, and a string where it is none."""
    try:
        data = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return data["value"] if len(data) == 1 else text
