"""The picture of a run's learning curves during training."""

from __future__ import annotations

import time
from collections.abc import Callable

from stable_baselines3.common.callbacks import BaseCallback

_SECONDS = 120.0  # between two pictures; one takes about a second


class CurvesCallback(BaseCallback):  # type: ignore[misc]
    """Draws the curves between two iterations, every two minutes.

    Parameters
    ----------
    draw
        Draws the picture.
    """

    def __init__(self, draw: Callable[[], None]) -> None:
        super().__init__()
        self._draw = draw
        self._drawn = 0.0  # s

    def _on_training_start(self) -> None:
        self._drawn = time.monotonic()

    def _on_rollout_start(self) -> None:
        if time.monotonic() - self._drawn >= _SECONDS:
            self._draw()
            self._drawn = time.monotonic()

    def _on_step(self) -> bool:
        return True
