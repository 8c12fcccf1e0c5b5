"""Reading of files that may come from a stranger, at a bounded cost."""

from __future__ import annotations

import os
import stat


def read_regular_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises OSError if it cannot be read, and ValueError, with the reason, for a larger file and for one that is not
    regular, such as a pipe, for whose other end nothing waits.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"larger than the limit of {limit} bytes")
    return data


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
