"""Threads that share work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

Arguments = tuple[Any, ...]


class Workers:
    """The calling thread and `num_threads` - 1 others; copies and pickles have other threads."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._others = ThreadPoolExecutor(num_threads - 1) if num_threads > 1 else None

    def for_all(self, function: Callable[..., None], arguments: Sequence[Arguments]) -> None:
        """Call a function with each tuple of arguments; every thread takes the next that is left, until none is.

        Raises what a call raised, when no thread is at work any more.
        """
        left = iter(arguments)  # a list's iterator gives each entry once, whichever threads ask
        if self._others is None:
            _take(function, left)
            return
        shares = [self._others.submit(_take, function, left) for _ in range(min(self.num_threads, len(arguments)) - 1)]
        try:
            _take(function, left)
        finally:
            shares = [share for share in shares if not share.cancel()]  # those that have not started
            wait(shares)
        for share in shares:
            share.result()

    def close(self) -> None:
        """Stop the other threads; what is called afterwards runs on the caller's."""
        if self._others is not None:
            self._others.shutdown()
            self._others = None

    def __reduce__(self) -> tuple[type[Workers], tuple[int]]:
        return Workers, (self.num_threads,)


def _take(function: Callable[..., None], arguments: Iterator[Arguments]) -> None:
    for each in arguments:
        function(*each)
