"""Early end of a run: on a signal, on request, or when its time or its battles are used up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.ppo import distributed
from echelon_train.signals import stop_signals


class StopCallback(BaseCallback):  # type: ignore[misc]
    """Ends training between two iterations after a signal, on request, or when a budget is used up.

    In a distributed run all processes stop when one does. `is_up` says whether the run's time or its battles are used
    up; all processes call it at the same time. `console` acknowledges a signal.
    """

    def __init__(self, console: Console, is_up: Callable[[], bool]) -> None:
        super().__init__()
        self._console = console
        self._is_up = is_up
        self._ended = False
        self.interrupted = False
        """Whether there was a signal."""
        self.stopping = False
        """Whether training ends before the next rollout, although none of its budgets is used up."""

    def end(self) -> None:
        """End training before the next rollout, in all processes."""
        self._ended = True

    def signals(self) -> AbstractContextManager[None]:
        """End training at a signal in the block, see `stop_signals`; a second one ends it at once."""
        return stop_signals(self._on_signal, self._console)

    def _on_signal(self) -> None:
        self.interrupted = True
        self._console.print("Stopping and saving after this iteration; Ctrl-C again to stop at once, without saving.")

    def _on_rollout_start(self) -> None:
        interrupted = distributed.any_true(self.interrupted)
        if interrupted:  # in any process; a signal of this moment counts at the next rollout
            self.interrupted = True
        self.stopping = interrupted or distributed.any_true(self._ended)
        self.model.stopping = self.stopping or self._is_up()

    def _on_step(self) -> bool:
        return True
