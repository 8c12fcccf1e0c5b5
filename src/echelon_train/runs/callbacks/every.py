"""What a run does every so many decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback


@dataclass
class Every:
    """Due at the start, then every `every` decisions, counted from the last time. The fields are its complete state."""

    every: int
    """Decisions between two times; with 0 it is due at the start only."""
    next: int = 0
    """Decisions of the run at the next time."""

    def is_due(self, steps: int) -> bool:
        """Whether it is due after `steps` decisions of the run. The time then counts as done."""
        if steps < self.next or (steps > 0 and not self.every):
            return False
        self.next = steps + self.every
        return True


class EveryCallback(BaseCallback):  # type: ignore[misc]
    """Does something between two iterations, at the start and every `every` decisions.

    What `saves` is also done before a run is stopped. Anything else is left to the resumed run then, and is done at the
    end of a run that is not stopped. `stopping` says whether the run is stopped before its end.
    """

    def __init__(
        self, every: int, act: Callable[[], object], stopping: Callable[[], bool], *, saves: bool = False
    ) -> None:
        super().__init__()
        self.every = Every(every)
        self._act, self._stopping, self._saves = act, stopping, saves

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps  # a callback's own counter lacks the samples of other processes
        if self._saves:
            due = self.every.is_due(steps) or self._stopping()
        else:
            due = not self.model.stopping and self.every.is_due(steps)
        if due:
            self._act()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if not self._saves and not self._stopping():
            self._act()
