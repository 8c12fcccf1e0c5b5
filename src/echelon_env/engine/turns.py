"""Threads that share the rows of a kernel: each takes the next ones in turn until none are left.

A kernel loops over its turns:

    at = first_turn(turn, first, at_once)
    while at < last:
        for row in range(at, end_of_turn(at, last, at_once)):
            ...
        at = next_turn(turn, last, at_once)

`turn` (1,) int64 holds the next row, the same for all threads, which take so many `at_once`. With 0 the caller has all
rows for itself, and `turn` is not used.
"""

from __future__ import annotations

from typing import Any

from echelon_env.engine.intrinsics import take
from echelon_env.engine.kernels import kernel


@kernel
def first_turn(turn: Any, first: int, at_once: int) -> Any:
    """The first row of the first turn."""
    return first if at_once == 0 else take(turn, at_once)


@kernel
def end_of_turn(at: int, last: int, at_once: int) -> Any:
    """The row after the last one of a turn."""
    return last if at_once == 0 else min(at + at_once, last)


@kernel
def next_turn(turn: Any, last: int, at_once: int) -> Any:
    """The first row of the next turn, or one from `last` on."""
    return last if at_once == 0 else take(turn, at_once)
