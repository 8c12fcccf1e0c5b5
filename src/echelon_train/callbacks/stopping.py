"""Ending a run early: on Ctrl-C or when its time is up."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback


class StopCallback(BaseCallback):  # type: ignore[misc]
    """Ends training at the next step after Ctrl-C, or after a number of seconds; a second Ctrl-C interrupts at once.

    As a context manager it takes over SIGINT, in the main thread, and gives it back at the end.

    Parameters
    ----------
    console
        Where to acknowledge Ctrl-C.
    seconds
        Time that training may take; None for no limit.
    """

    def __init__(self, console: Console, seconds: float | None = None) -> None:
        super().__init__()
        self._console = console
        self._seconds = seconds
        self._deadline = float("inf")
        self._previous: Any = None
        self.interrupted = False

    def __enter__(self) -> StopCallback:
        """Take over SIGINT."""
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give SIGINT back."""
        self._give_back()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        self._give_back()
        self._console.print("Stopping and saving; Ctrl-C again to stop at once, without saving.")

    def _give_back(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _on_training_start(self) -> None:
        if self._seconds is not None:
            self._deadline = time.monotonic() + self._seconds

    def _on_step(self) -> bool:
        return not self.interrupted and time.monotonic() < self._deadline
