"""Reading of files that may come from a stranger, at a bounded cost."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from reprlib import repr as shortened
from typing import Any, BinaryIO

MAX_VALUES = 1 << 22
"""Most commas and opening brackets of a JSON text: they bound the number of its values, and so the memory."""

MAX_DEPTH = 50
"""Of nested values of a JSON text, so that what walks through them needs no deep stack."""

_CONTAINERS = frozenset((dict, list))


_CHUNK = 2**20


@contextlib.contextmanager
def open_regular_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file to read its bytes.

    Raises OSError if it cannot be read, and ValueError, with the reason, for one that is not regular, such as a pipe,
    for whose other end nothing waits.
    """
    with open(path, "rb", opener=without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        yield file


def read_regular_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises as `open_regular_file`, and ValueError for a larger file.
    """
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size  # some file systems say 0
        data = file.read(min(size, limit) + 1)  # memory of this size is allocated at once
        while len(data) <= limit and (more := file.read(min(_CHUNK, limit + 1 - len(data)))):
            data += more
    if len(data) > limit:
        raise ValueError(f"larger than {limit:,} bytes")
    return data


def version_problem(found: Any, reads: int) -> str:
    """What is wrong with the version of a file's format, which changes with the rules of the game; empty if nothing."""
    if type(found) is int and found == reads:
        return ""
    if type(found) is int and found > reads:
        advice = "a newer release made it; update echelon-env"
    else:
        advice = "a release before 0.3 made it, under other rules of the game; use it there, or make it again"
    return f"version {shortened(found)} of the format, this release reads {reads}: {advice}"


def parse_json(
    text: bytes | str,
    *,
    max_values: int = MAX_VALUES,
    allow_nan: bool = False,
    object_hook: Callable[[dict[str, Any]], Any] = lambda plain: plain,
) -> Any:
    """The value of a JSON text in UTF-8; `object_hook` converts each object, as in the standard library.

    Raises ValueError, with the reason, for anything else: also for NaN and infinity, unless `allow_nan`, for an object
    with the same key twice, of which readers would take different values, for more than `max_values`, and for more than
    `MAX_DEPTH` nested values.
    """
    text = text if isinstance(text, str) else text.decode()
    if sum(map(text.count, ",[{")) > max_values:
        raise ValueError(f"expected at most {max_values:,} values")

    def convert(pairs: list[tuple[str, Any]]) -> Any:
        plain = dict(pairs)
        if len(plain) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise ValueError(f"expected different keys in each object, got {shortened(twice)} twice")
        return object_hook(plain)

    try:
        value = json.loads(  # noqa: TID251
            text, parse_constant=float if allow_nan else _refuse, object_pairs_hook=convert
        )
    except RecursionError:
        raise ValueError(f"expected at most {MAX_DEPTH} nested values") from None
    _check_values(value, allow_nan)
    return value


def _refuse(constant: str) -> float:
    raise ValueError(f"expected finite numbers, got {constant}")


def _check_values(value: Any, allow_nan: bool) -> None:
    """Raise ValueError for values nested too deeply, and for infinity, such as 1e999, unless `allow_nan`."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for each in level:
            values = each.values() if isinstance(each, dict) else each
            if not allow_nan and (math.inf in values or -math.inf in values):
                raise ValueError("expected finite numbers, got one beyond the range of floats")
            if not _CONTAINERS.isdisjoint(map(type, values)):
                inner += [found for found in values if type(found) in _CONTAINERS]
        if not inner:
            return
        level = inner
    raise ValueError(f"expected at most {MAX_DEPTH} nested values")


def without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe. A new one has the mode that `open` gives it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
