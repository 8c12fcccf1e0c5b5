"""Configurations in TOML files: shipped ones by name, custom ones by path."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from echelon_env.config.schema import ConfigError, nearest_name

SUFFIX = ".toml"

T = TypeVar("T")


def shipped_names(folder: Path) -> tuple[str, ...]:
    """The names of the configurations in a folder, in alphabetical order; their files are not read."""
    return tuple(sorted(path.stem for path in folder.glob(f"*{SUFFIX}")))


def find_config_file(name_or_file: str | os.PathLike[str], folder: Path, kind: str) -> Path:
    """The path of a configuration: one in `folder` by its name, or a custom file (a path, or text ending in .toml).

    Raises `ConfigError` for an unknown name, with the nearest valid one. `kind` is the kind of configuration in errors.
    """
    if isinstance(name_or_file, str) and not name_or_file.endswith(SUFFIX):
        names = shipped_names(folder)
        if name_or_file not in names:
            hint = nearest_name(name_or_file, names)
            raise ConfigError(f"unknown {kind} {name_or_file!r}{hint}; a file's name ends in {SUFFIX}")
        return folder / f"{name_or_file}{SUFFIX}"
    return Path(name_or_file)


def read_config_file(path: Path, kind: str, make: Callable[[dict[str, Any]], T]) -> T:
    """Read a TOML file and return ``make(data)``.

    Raises `ConfigError` with the path and the line of the error if the file cannot be read, is no valid TOML, or if
    `make` raises `ConfigError`. `kind` is the kind of configuration in errors.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigError(f"{kind} {path}: {reason}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1  # at the end of the document
        raise ConfigError(f"{path}:{line}: {error}") from None
    try:
        return make(data)
    except ConfigError as error:
        raise ConfigError(f"{path}:{_line_of(text, error.keys)}: {error}", *error.keys) from None


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """The line of the first of the dotted keys that is in the file; 1 if none of them is."""
    paths = [re.findall(r"[^.\[\]]+", key) for key in keys]
    tables = [path[:length] for path in paths for length in range(len(path) - 1, 0, -1)]
    for path in [*paths, *tables]:  # for a missing key, report the table that should hold it
        line = _first_line_with(text, path)
        if line is not None:
            return line
    return 1


def _first_line_with(text: str, key: list[str]) -> int | None:
    """The line at which a key starts: parse growing prefixes of the file until the key appears."""
    lines = text.split("\n")
    complete = 0  # length in lines of the longest valid prefix without the key
    for count in range(1, len(lines) + 1):
        try:
            data: Any = tomllib.loads("\n".join(lines[:count]) + "\n")
        except tomllib.TOMLDecodeError:
            continue  # inside a value of several lines
        for part in key:
            data = _entry(data, part)
        if data is not None:
            return complete + 1
        complete = count
    return None


def _entry(data: Any, key: str) -> Any:
    """The value of a table at a key, or of a list at an index; None if there is none."""
    if isinstance(data, list):
        return data[int(key)] if key.isdecimal() and int(key) < len(data) else None
    return data.get(key) if isinstance(data, dict) else None
