"""Operations of integers and of threads that are machine instructions. `_jit` has their machine code."""

from threading import Lock
from typing import Any


def bit_length(value: int) -> int:
    """Number of bits of a non-negative integer without leading zeros; 0 for 0."""
    return int(value).bit_length()


def take(turn: Any, count: int) -> int:
    """Add a count to the only entry of `turn` (1,) int64, and return what it was before.

    No other thread gets the same.
    """
    with take.lock:  # type: ignore[attr-defined]
        before = int(turn[0])
        turn[0] += count
    return before


take.lock = Lock()  # type: ignore[attr-defined]
