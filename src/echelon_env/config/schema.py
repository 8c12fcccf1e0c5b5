"""Configurations as frozen dataclasses: fields with units and ranges, checks, overrides, conversion to plain data.

A field of a configuration is a number declared with `quantity`, a string, a choice (`Literal`), a tuple, a dict with
texts as keys, or another configuration; a declared range holds for all numbers in the field. A nested configuration
whose class has a method `parse(value, key)` can also be written as a number or a string; one whose class also has
`plain()` is written only as `parse` takes it. Errors are `ConfigError`s that state the key, the expected value and
the given one.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

import numpy as np

MAX_MESSAGE = 4_000
"""Characters of an error message."""

MAX_NAME = 200
"""Characters of a name to which the nearest valid one is looked for."""


class ConfigError(ValueError):
    """An invalid configuration: an unknown key or scenario, a value out of range, an impossible combination.

    `keys` are the dotted configuration keys that cause the error, the most likely first; may be empty. The middle of a
    long message is left out, because texts of strangers are quoted in messages.
    """

    def __init__(self, message: str, *keys: str) -> None:
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE // 2]} ... {message[-MAX_MESSAGE // 4 :]}"
        super().__init__(message)
        self.keys = keys


class UnexpectedArgumentError(ConfigError, TypeError):
    """A keyword argument that a class does not take, in the words of Python's `TypeError`, on which clients rely."""


MAX_VALUE = 1e6
"""Default upper bound of a quantity: far above useful values, and products of a few such values do not overflow."""

# cached because `get_type_hints` takes longer than all checks
_type_hints = typing.cast("Callable[[type[Any]], Mapping[str, Any]]", functools.cache(typing.get_type_hints))


def quantity(
    default: float | tuple[float, ...],
    unit: str,
    low: float = 0.0,
    high: float = MAX_VALUE,
    help: str = "",
    since: str | None = None,
) -> Any:
    """Declare a numeric field with its default, unit and inclusive range; `help` is shown on the command line.

    A field that is added after a release names its own release in `since`, see `battle_hash`.
    """
    metadata = {"unit": unit, "low": low, "high": high, "help": help}
    return field(default=default, metadata=metadata if since is None else metadata | {"since": since})


def measure(unit: str, low: float = 0.0, high: float = MAX_VALUE) -> Any:
    """Declare a required numeric field with its unit and inclusive range."""
    return field(metadata={"unit": unit, "low": low, "high": high})


def nearest_name(name: str, valid: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest valid name, and all valid names."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1) if len(name) <= MAX_NAME else []
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint} (valid: {', '.join(names)})"


def check_integer(name: str, value: Any, minimum: int = 1) -> int:
    """The value as an int. Raises `ConfigError` unless it is an integer of at least `minimum`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ConfigError(f"{name}: expected an integer of at least {minimum}, got {value!r}")
    return int(value)


def check_seed(seed: Any, name: str = "seed") -> int:
    """A seed as an int. Raises ValueError, with its name, unless it is an integer in [0, 2**64)."""
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ValueError(f"{name}: expected an integer in [0, 2**64), got {seed!r}")
    return int(seed)


def override(part: Any, overrides: Mapping[str, Any], path: str) -> Any:
    """A copy of a configuration with changed fields. `path` prefixes keys in errors.

    A nested part takes a mapping of its fields, a tuple of parts with names one of its entries by name.
    """
    names = [f.name for f in dataclasses.fields(part)]
    changes: dict[str, Any] = {}
    hints = _type_hints(type(part))
    for key, value in overrides.items():
        if key not in names:
            raise ConfigError(f"unknown config key {path + str(key)!r}{nearest_name(str(key), names)}", path + str(key))
        current = getattr(part, key)
        if dataclasses.is_dataclass(current) and isinstance(value, Mapping) and not hasattr(current, "plain"):
            changes[key] = override(current, value, f"{path}{key}.")
        elif isinstance(value, Mapping) and _has_names(current):
            changes[key] = _override_entries(current, value, f"{path}{key}.")
        else:
            changes[key] = _convert(hints[key], value, path + key)
    return dataclasses.replace(part, **changes)


def _has_names(entries: Any) -> bool:
    return isinstance(entries, tuple) and len(entries) > 0 and all(hasattr(entry, "name") for entry in entries)


def _override_entries(entries: tuple[Any, ...], overrides: Mapping[str, Any], path: str) -> tuple[Any, ...]:
    """The entries with changed fields, given by name."""
    names = [entry.name for entry in entries]
    for name, fields in overrides.items():
        if name not in names:
            raise ConfigError(
                f"unknown config key {path + str(name)!r}{nearest_name(str(name), names)}", path + str(name)
            )
        if not isinstance(fields, Mapping):
            raise ConfigError(f"config key {path + name!r}: expected a mapping, got {fields!r}", path + name)
    changed = []
    for entry in entries:
        own = f"{path}{entry.name}."
        changed.append(override(entry, overrides.get(entry.name, {}), own))
        check_fields(changed[-1], own)  # here the path has the entry's name instead of its index
    return tuple(changed)


def build(cls: type[Any], data: Any, path: str) -> Any:
    """Build a configuration of class `cls` from plain data. Missing keys keep their defaults.

    An optional class attribute `REMOVED` has names of fields that earlier versions had. The error about such a key says
    that it no longer exists.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"config key {path.rstrip('.') or 'config'!r}: expected a mapping, got {type(data).__name__}",
            path.rstrip("."),
        )
    names = [f.name for f in dataclasses.fields(cls)]
    removed = getattr(cls, "REMOVED", ())
    hints = _type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in names:
            hint = ": it no longer exists" if key in removed else nearest_name(str(key), names)
            raise ConfigError(f"unknown config key {path + str(key)!r}{hint}", path + str(key))
        values[key] = _convert(hints[key], value, path + key)
    missing = [f.name for f in dataclasses.fields(cls) if _is_required(f) and f.name not in values]
    if missing:
        where = f"config key {path.rstrip('.')!r}: " if path else ""
        raise ConfigError(f"{where}keys are missing: {', '.join(missing)}", path.rstrip("."))
    return cls(**values)


def _is_required(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _convert(hint: Any, value: Any, path: str) -> Any:
    """Convert plain data to a field's type: mappings to dataclasses, sequences to tuples, NumPy scalars to Python's."""
    if dataclasses.is_dataclass(hint) and not isinstance(value, typing.cast("type[Any]", hint)):
        if hasattr(hint, "parse") and (hasattr(hint, "plain") or not isinstance(value, Mapping)):
            return hint.parse(value, path)
        return build(typing.cast("type[Any]", hint), value, path + ".")
    origin = typing.get_origin(hint)
    if origin is types.UnionType and value is not None:
        for option in typing.get_args(hint):
            if dataclasses.is_dataclass(option) or typing.get_origin(option) is dict:
                return _convert(option, value, path)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"config key {path!r}: expected a mapping, got {value!r}", path)
        return {name: _convert(typing.get_args(hint)[1], item, f"{path}.{name}") for name, item in value.items()}
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, (list, tuple)):
            raise ConfigError(f"config key {path!r}: expected a sequence, got {value!r}", path)
        item_hint = typing.get_args(hint)[0]
        return tuple(_convert(item_hint, item, f"{path}[{index}]") for index, item in enumerate(value))
    if isinstance(value, np.generic):
        value = value.item()
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    return value


def values_of(part: Any) -> dict[str, Any]:
    """The fields of a configuration by name; integers that stand for floats as floats."""
    hints = _type_hints(type(part))
    return {f.name: _convert(hints[f.name], getattr(part, f.name), f.name) for f in dataclasses.fields(part)}


def to_plain(value: Any) -> Any:
    """A configuration as nested dicts, lists and plain values; equal configurations as the same."""
    if hasattr(value, "plain"):
        return value.plain()
    if dataclasses.is_dataclass(value):
        return {name: to_plain(part) for name, part in values_of(value).items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: to_plain(item) for name, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def check_fields(part: Any, path: str) -> None:
    """Raise `ConfigError` if a field of a configuration has the wrong type or is out of range."""
    hints = _type_hints(type(part))
    for f in dataclasses.fields(part):
        _check_value(getattr(part, f.name), hints[f.name], f.metadata, path + f.name)


def _check_value(value: Any, hint: Any, metadata: Mapping[str, Any], path: str) -> None:
    if hint in (int, float):  # most values; ratings of a large league are many
        _check_number(value, hint, metadata, path)
        return
    origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, typing.cast("type[Any]", hint)):
            raise ConfigError(f"config key {path!r}: expected {getattr(hint, '__name__', hint)}, got {value!r}", path)
        check_fields(value, path + ".")
    elif origin is Literal:
        if not isinstance(value, str) or value not in typing.get_args(hint):
            choices = [str(choice) for choice in typing.get_args(hint)]
            raise ConfigError(f"config key {path!r}: got {value!r}{nearest_name(str(value), choices)}", path)
    elif origin is tuple:
        if not isinstance(value, tuple):
            raise ConfigError(f"config key {path!r}: expected a tuple, got {value!r}", path)
        for index, item in enumerate(value):
            _check_value(item, typing.get_args(hint)[0], metadata, f"{path}[{index}]")
    elif origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"config key {path!r}: expected a mapping, got {value!r}", path)
        for name, item in value.items():
            _check_value(item, typing.get_args(hint)[1], metadata, f"{path}.{name}")
    elif origin is types.UnionType:
        options = typing.get_args(hint)
        fitting = [option for option in options if isinstance(value, typing.get_origin(option) or option)]
        if not fitting:
            raise ConfigError(f"config key {path!r}: expected {hint}, got {value!r}", path)
        _check_value(value, fitting[0], metadata, path)
    elif hint is not Any and not isinstance(value, hint):
        raise ConfigError(f"config key {path!r}: expected {hint.__name__}, got {value!r}", path)


def _check_number(value: Any, hint: type, metadata: Mapping[str, Any], path: str) -> None:
    accepted = (int, np.integer) if hint is int else (int, float, np.integer, np.floating)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, accepted):
        raise ConfigError(f"config key {path!r}: expected {hint.__name__}, got {value!r}", path)
    low, high = metadata.get("low", 0.0), metadata.get("high", math.inf)
    largest = sys.float_info.max
    if not max(low, -largest) <= value <= min(high, largest):
        limits = f"{low} to {high} {metadata.get('unit', '')}".rstrip()
        raise ConfigError(f"config key {path!r}: expected a number from {limits}, got {value!r}", path)
