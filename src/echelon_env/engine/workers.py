"""Threads that share the calls of a function. They cost less for each decision than `concurrent.futures` does."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arguments = tuple[Any, ...]

AT_ONCE = 4
"""Rows that a thread of a shared kernel takes at once."""


class Workers:
    """The calling thread and `num_threads` - 1 others. Copies, pickles and forked processes get their own threads."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._open = num_threads > 1
        self._renew()
        _ALL.add(self)

    def for_all(self, function: Callable[..., None], arguments: Sequence[Arguments]) -> None:
        """Call a function with each tuple of arguments. Every thread takes the next one until none is left.

        Raises the exception of a call, and KeyboardInterrupt, after all threads have stopped.
        """
        left = iter(arguments)  # threads share it: a list's iterator yields each entry once
        others = min(self.num_threads, len(arguments)) - 1 if self._open else 0
        self._start(others)
        shares: list[_Share] = []
        try:
            for _ in range(others):
                shares.append(_Share(function, left))
                self._shares.put(shares[-1])
            _work(function, left)
        finally:
            errors = [share.end() for share in shares]
        for error in filter(None, errors):
            raise error

    def close(self) -> None:
        """Stop the other threads. Later calls run in the caller's thread."""
        self._open, threads = False, self._threads
        self._stop()
        for thread in threads:
            thread.join()

    def _renew(self) -> None:
        """Have no threads. Those of before are none of this process, or stop."""
        self._shares: SimpleQueue[_Share | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._starting = Lock()

    def _start(self, others: int) -> None:
        """Start so many other threads, unless they run. They do not keep this object alive."""
        if len(self._threads) < others:
            with self._starting:
                while len(self._threads) < others:
                    thread = Thread(target=_serve, args=(self._shares,), daemon=True)
                    thread.start()
                    self._threads.append(thread)

    def _stop(self) -> None:
        for _ in self._threads:
            self._shares.put(None)
        self._threads = []

    def __del__(self) -> None:
        self._stop()

    def __reduce__(self) -> tuple[type[Workers], tuple[int]]:
        return Workers, (self.num_threads,)


class SharedKernel:
    """A kernel over rows that threads share. Results must not depend on who computes which rows.

    Parameters
    ----------
    bind
        Makes the kernel with an array `turn`, in which the threads take rows (see `turns`). Every thread calls one of
        its own, so that kernels can have scratch memory.
    num_threads
        Number of threads, with the caller's.
    wake
        Rows that take about as long as waking a thread does. Threads are woken one after the other, so the fastest
        number of them is about the square root of the rows in this unit.
    """

    def __init__(self, bind: Callable[[NDArray[np.int64]], Callable[..., None]], num_threads: int, wake: int) -> None:
        self.num_threads = num_threads
        self._workers = Workers(num_threads)
        self._turn = np.zeros(1, np.int64)
        self._kernels = [bind(self._turn) for _ in range(num_threads)]
        self._wake = wake

    def __call__(self, *arrays: NDArray[Any]) -> None:
        """Call the kernel with the arrays (R, ...), and the rows that a thread takes at once.

        One thread at a time may do so.
        """
        threads = min(self.num_threads, math.isqrt(len(arrays[0]) // self._wake))
        if threads <= 1:
            self._kernels[0](*arrays, 0)
            return

        def call(kernel: Callable[..., None]) -> None:
            kernel(*arrays, AT_ONCE)

        self._turn[0] = 0
        self._workers.for_all(call, [(kernel,) for kernel in self._kernels[:threads]])

    def close(self) -> None:
        """Stop the other threads. Later calls run in the caller's thread."""
        self._workers.close()


class _Share:
    """What another thread is to do of the calls that are left."""

    def __init__(self, function: Callable[..., None], left: Iterator[Arguments]) -> None:
        self._function, self._left = function, left
        self._taken, self._running = Lock(), Lock()
        self._running.acquire()
        self._done = False
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, in the other thread, unless it has ended."""
        if self._taken.acquire(blocking=False):
            try:
                _work(self._function, self._left)
            except BaseException as error:  # the caller raises it
                self._error = error
            finally:
                self._done = True
                self._running.release()

    def end(self) -> BaseException | None:
        """Wait until it is done, and return the exception; if no thread has begun, keep all from it."""
        if not self._taken.acquire(blocking=False):
            while not self._done:
                try:
                    self._running.acquire()
                except KeyboardInterrupt as error:  # the caller's; the other thread still works
                    self._error = error
        return self._error


_ALL: weakref.WeakSet[Workers] = weakref.WeakSet()


def _renew_threads() -> None:
    """In a forked process: the threads are gone, and what they shared may be locked for ever."""
    for workers in list(_ALL):
        workers._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_threads)


def _serve(shares: SimpleQueue[_Share | None]) -> None:
    """The other threads' work: share after share, until there is a None."""
    while (share := shares.get()) is not None:
        share.run()
        del share  # it refers to what owns the threads


def _work(function: Callable[..., None], arguments: Iterator[Arguments]) -> None:
    for each in arguments:
        function(*each)
