"""Checks of what a database holds: it may come from a stranger, and is shown on terminals."""

from __future__ import annotations

import reprlib
from typing import Any, TypeVar

from echelon_env.storage.reading import parse_json
from echelon_train.league.errors import DamagedLeagueError

MAX_TEXT = 4096
"""Characters of the longest text that is shown, such as a path."""

T = TypeVar("T", dict[str, Any], list[Any])


def is_text(value: Any) -> bool:
    """Whether a value is a printable text of at most `MAX_TEXT` characters."""
    return isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()


def printable(text: str) -> str:
    """A text as `is_text` wants it: escaped if it is not printable, and cut."""
    return (text if text.isprintable() else text.encode("unicode_escape").decode())[:MAX_TEXT]


def check_text(value: Any, what: str) -> str:
    """The value. Raises DamagedLeagueError unless `is_text`."""
    if not is_text(value):
        raise DamagedLeagueError(f"{what}: expected a printable text, got {reprlib.repr(value)}")
    return str(value)


def parse(text: Any, kind: type[T], what: str) -> T:
    """The list or object of a JSON text. Raises DamagedLeagueError for anything else."""
    try:
        value = parse_json(text)
    except (ValueError, AttributeError) as error:
        raise DamagedLeagueError(f"{what}: expected JSON, got {reprlib.repr(text)} ({error})") from error
    if not isinstance(value, kind):
        raise DamagedLeagueError(f"{what}: expected a JSON {kind.__name__}, got {reprlib.repr(value)}")
    return value
