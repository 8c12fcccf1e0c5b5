"""Ending a run early: on Ctrl-C, when the system asks for it, or when its time is up."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.ppo import distributed

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopCallback(BaseCallback):  # type: ignore[misc]
    """Ends training between two iterations after SIGINT or SIGTERM, or after a number of seconds.

    A second signal ends it at once. Of several processes that train together all stop when one does. As a context
    manager it takes over the signals, in the main thread, and gives them back at the end.

    Parameters
    ----------
    console
        Where to acknowledge a signal.
    seconds
        Time that training may take; None for no limit.
    """

    def __init__(self, console: Console, seconds: float | None = None) -> None:
        super().__init__()
        self._console = console
        self._seconds = seconds
        self._deadline = float("inf")
        self._previous: dict[signal.Signals, Any] = {}
        self.interrupted = False
        """Whether there was a signal."""
        self.stopping = False
        """Whether training ends before the coming rollout."""

    def end(self) -> None:
        """Have training end as if its time were up."""
        self._deadline = float("-inf")

    def __enter__(self) -> StopCallback:
        """Take over the signals."""
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give the signals back."""
        self._give_back()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        self._give_back()
        self._console.print("Stopping and saving after this iteration; Ctrl-C again to stop at once, without saving.")

    def _give_back(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _on_training_start(self) -> None:
        if self._seconds is not None:
            self._deadline = time.monotonic() + self._seconds

    def _on_rollout_start(self) -> None:
        self.interrupted = distributed.any_true(self.interrupted)
        self.stopping = self.interrupted or distributed.any_true(time.monotonic() >= self._deadline)

    def _on_step(self) -> bool:
        return not self.stopping
