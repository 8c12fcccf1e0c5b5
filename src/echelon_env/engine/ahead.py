"""A call that another thread may make ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from echelon_env.engine.workers import Workers


class Ahead:
    """A call that is made once: in another thread after `begin`, else in `finish`.

    Between the two it cannot be copied, nor its process be forked.

    Parameters
    ----------
    what
        Says in an error what has begun, and what is to be done.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._workers = Workers(2)
        self._end: Callable[[], None] | None = None

    def begin(self, function: Callable[[], None]) -> None:
        """Have another thread make the call, unless it has begun."""
        if self._end is None:
            self._end = self._workers.begin(function)

    def wait(self) -> None:
        """Wait for the call, if it has begun. Raises its exception."""
        if self._end is not None:
            self._end()

    def forget(self) -> None:
        """Wait for the call, as `wait` does. The next one is another."""
        try:
            self.wait()
        finally:
            self._end = None

    def finish(self, function: Callable[[], None]) -> None:
        """Have the call made: wait for it, or make it now. Raises its exception. The next one is another."""
        if self._end is None:
            function()
        else:
            self.forget()

    def check(self, when: str) -> None:
        """Raise RuntimeError if the call has begun."""
        if self._end is not None:
            raise RuntimeError(f"{self._what}, {when}")

    def close(self) -> None:
        """Stop the thread. Later calls are made in `finish`."""
        self._workers.close()

    def __getstate__(self) -> dict[str, Any]:
        self.check("before a copy")
        return self.__dict__
