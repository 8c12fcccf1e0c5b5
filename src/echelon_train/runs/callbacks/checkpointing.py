"""Checkpoints during training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback

from echelon_train.runs.callbacks.every import Every


class CheckpointCallback(BaseCallback):  # type: ignore[misc]
    """Saves between two iterations: at the start, then every `every` samples, and before the run stops.

    Parameters
    ----------
    every
        Samples between two checkpoints; 0 saves at the start and the end only.
    save
        Saves the run, given the samples that it has trained on, and returns the folder.
    stopping
        Whether the run ends before the next rollout, although none of its budgets is used up.
    """

    def __init__(self, every: int, save: Callable[[int], Path], stopping: Callable[[], bool]) -> None:
        super().__init__()
        self._save = save
        self._stopping = stopping
        self.every = Every(every)
        self.saved = Path()
        """Folder of the last checkpoint."""

    def _on_rollout_start(self) -> None:
        steps = self.model.num_timesteps  # a callback's own counter lacks the samples of other processes
        if self.every.is_due(steps) or self._stopping():
            self.saved = self._save(steps)

    def _on_step(self) -> bool:
        return True
