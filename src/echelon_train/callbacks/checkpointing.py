"""Checkpoints during training."""

from __future__ import annotations

from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback


class CheckpointCallback(BaseCallback):  # type: ignore[misc]
    """Saves between two updates, at the start and whenever enough samples have come since.

    Parameters
    ----------
    every
        Samples between two checkpoints; 0 saves at the start only.
    save
        Saves the policy as it is, given the samples that it has trained on.
    """

    def __init__(self, every: int, save: Callable[[int], object]) -> None:
        super().__init__()
        self._every = every
        self._save = save
        self._due = 0
        self.trained_steps = 0
        """Samples that the policy has trained on, once training has ended; a rollout that was broken off is none."""

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._due and (self._every or self.num_timesteps == 0):
            self._due = self.num_timesteps + self._every
            self._save(self.num_timesteps)

    def _on_rollout_end(self) -> None:
        self.trained_steps = self.num_timesteps  # the update follows at once

    def _on_step(self) -> bool:
        return True
