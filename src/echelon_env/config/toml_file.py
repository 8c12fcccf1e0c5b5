"""Configurations in TOML files: shipped ones by name, custom ones by path."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.storage.reading import read_regular_file

SUFFIX = ".toml"
MAX_BYTES = 1 << 20
"""Size of the largest file that is read."""

MAX_KEY_PARTS = 32
"""`tomllib` takes quadratic time for the parts of a dotted key."""

_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_KEY_PARTS}}}")

REPARSED = 10
"""Most times that a document is parsed again to find the line of an error."""

T = TypeVar("T")


def parse_value(text: str) -> Any:
    """Parse a TOML value; text that is not valid TOML is a string."""
    try:
        data = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # also an integer of too many digits
        return text
    return data["value"] if len(data) == 1 else text


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
    text = _read_text(path, kind)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1  # at the end of the document
        raise ConfigError(f"{path}:{line}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: arrays or tables are nested too deeply") from None
    except ValueError:  # the limit of Python
        raise ConfigError(f"{path}: an integer has thousands of digits") from None
    try:
        return make(data)
    except ConfigError as error:
        raise ConfigError(f"{path}:{_line_of(text, error.keys)}: {error}", *error.keys) from None


def _read_text(path: Path, kind: str) -> str:
    """The text of a file. Raises `ConfigError` for one that cannot be read, or that would take too long to parse."""
    if "\0" in str(path):
        raise ConfigError(f"{kind} {str(path)!r}: expected a path without NUL")
    try:
        text = read_regular_file(path, MAX_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{kind} {path}: is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{kind} {path}: {getattr(error, 'strerror', error)}") from None
    if _LONG_KEY.search(text):
        raise ConfigError(f"{kind} {path}: a key has more than {MAX_KEY_PARTS} parts")
    return text


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """The line of the first of the dotted keys that is in the file; 1 if none of them is."""
    statements = list(_statements(text))
    paths = [re.findall(r"[^.\[\]]+", key) for key in keys]
    tables = [path[:length] for path in paths for length in range(len(path) - 1, 0, -1)]
    for path in [*paths, *tables]:  # for a missing key, report the table that should hold it
        line = _first_line_with(statements, path)
        if line is not None:
            return line
    return 1


def _statements(text: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    """Each statement of a valid document: its line, whether it begins a table, and its data as a document of its own.

    Statements end where their lines can be parsed. To take linear time, long ones are only tried where their brackets
    are balanced, and the rest of the document is left out when `REPARSED` times its length has been tried.
    """
    lines: list[str] = []
    depth, quotes, left = 0, 0, REPARSED * (len(text) + 1000)
    for number, line in enumerate(text.split("\n"), 1):
        lines.append(line)
        depth += line.count("[") - line.count("]")
        quotes += line.count('"""') + line.count("'''")
        if len(lines) > 8 and (depth or quotes % 2):
            continue
        statement = "\n".join(lines) + "\n"
        left -= len(statement)
        if left < 0:
            return
        try:
            data = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if data:
            yield number - len(lines) + 1, lines[0].lstrip().startswith("["), data
        lines, depth, quotes = [], 0, 0


def _first_line_with(statements: Iterable[tuple[int, bool, dict[str, Any]]], key: list[str]) -> int | None:
    """The line of the statement that has a key, or that begins the table of that path."""
    table: list[str] = []
    lengths: Counter[tuple[str, ...]] = Counter()  # of the arrays of tables so far
    for line, begins_table, data in statements:
        if begins_table:
            table = _table_path(data, lengths)
            if table[: len(key)] == key:
                return line
        elif key[: len(table)] == table:
            value: Any = data
            for part in key[len(table) :]:
                value = _entry(value, part)
            if value is not None and len(key) > len(table):
                return line
    return None


def _table_path(header: Any, lengths: Counter[tuple[str, ...]]) -> list[str]:
    """The path of the table that a header begins, with the indices in arrays of tables, which are counted."""
    path: list[str] = []
    while header:
        if isinstance(header, list):
            lengths[tuple(path)] += 1
            header = header[0]
        else:
            ((key, header),) = header.items()
            path.append(key)
        if tuple(path) in lengths and not isinstance(header, list):
            path.append(str(lengths[tuple(path)] - 1))
    return path


def _entry(data: Any, key: str) -> Any:
    """The value of a table at a key, or of a list at an index; None if there is none."""
    if isinstance(data, list):
        return data[int(key)] if key.isdecimal() and int(key) < len(data) else None
    return data.get(key) if isinstance(data, dict) else None
