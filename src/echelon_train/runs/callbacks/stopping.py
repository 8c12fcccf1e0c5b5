"""Early end of a run: on Ctrl-C, on SIGTERM, on request, or when its time or its battles are used up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.ppo import distributed

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopCallback(BaseCallback):  # type: ignore[misc]
    """Ends training between two iterations after SIGINT or SIGTERM, on request, or when a budget is used up.

    A second signal ends it at once. In a distributed run all processes stop when one does. As a context manager, in the
    main thread, it installs signal handlers and restores the previous ones at the end.

    Parameters
    ----------
    console
        Where to acknowledge a signal.
    is_up
        Whether the run's time or its battles are used up; all processes call it at the same time.
    """

    def __init__(self, console: Console, is_up: Callable[[], bool]) -> None:
        super().__init__()
        self._console = console
        self._is_up = is_up
        self._ended = False
        self._previous: dict[signal.Signals, Any] = {}
        self.interrupted = False
        """Whether there was a signal."""
        self.stopping = False
        """Whether training ends before the next rollout, although none of its budgets is used up."""

    def end(self) -> None:
        """End training before the next rollout, in all processes."""
        self._ended = True

    def __enter__(self) -> StopCallback:
        """Install the signal handlers."""
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the previous handlers."""
        self._restore_handlers()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        self._restore_handlers()
        self._console.print("Stopping and saving after this iteration; Ctrl-C again to stop at once, without saving.")

    def _restore_handlers(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _on_rollout_start(self) -> None:
        interrupted = distributed.any_true(self.interrupted)
        if interrupted:  # in any process; a signal of this moment counts at the next rollout
            self.interrupted = True
        self.stopping = interrupted or distributed.any_true(self._ended)
        self.model.stopping = self.stopping or self._is_up()

    def _on_step(self) -> bool:
        return True
