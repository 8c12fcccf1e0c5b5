"""A thread pool."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Arguments = tuple[Any, ...]


def shares(count: int, num_threads: int) -> list[tuple[int, int]]:
    """Ranges (first, last + 1) of `count` items for threads that take one after the other.

    A range holds half of what would be each thread's share of the items that are left ("guided self-scheduling"): there
    are few ranges, and the threads finish within the time of one item of each other.
    """
    if num_threads == 1:
        return [(0, count)]
    ranges, first = [], 0
    while first < count:
        last = first + max(1, (count - first) // (2 * num_threads))
        ranges.append((first, last))
        first = last
    return ranges


class Workers:
    """The calling thread and `num_threads` - 1 others. Copies, pickles and forked processes get their own threads."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._others = ThreadPoolExecutor(num_threads - 1) if num_threads > 1 else None
        _ALL.add(self)

    def for_all(self, function: Callable[..., None], arguments: Sequence[Arguments]) -> None:
        """Call a function with each tuple of arguments. Every thread takes the next one until none is left.

        Raises the exception of a call after all threads have stopped.
        """
        left = iter(arguments)  # threads share it: a list's iterator yields each entry once
        if self._others is None:
            _work(function, left)
            return
        others = [self._others.submit(_work, function, left) for _ in range(min(self.num_threads, len(arguments)) - 1)]
        try:
            _work(function, left)
        finally:  # waits for those that have started and cancels the rest
            errors = [other.exception() for other in others if not other.cancel()]
        for error in filter(None, errors):
            raise error

    def close(self) -> None:
        """Stop the other threads. Later calls run in the caller's thread."""
        if self._others is not None:
            self._others.shutdown()
            self._others = None

    def __reduce__(self) -> tuple[type[Workers], tuple[int]]:
        return Workers, (self.num_threads,)


_ALL: weakref.WeakSet[Workers] = weakref.WeakSet()


def _renew_threads() -> None:
    """In a forked process: the threads are gone, and what they shared may be locked for ever."""
    for workers in list(_ALL):
        if workers._others is not None:
            workers._others = ThreadPoolExecutor(workers.num_threads - 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_threads)


def _work(function: Callable[..., None], arguments: Iterator[Arguments]) -> None:
    for each in arguments:
        function(*each)
