"""Observers of an engine, such as the recorder of replays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class EngineObserver(Protocol):
    """What an engine calls after it has changed its battles, see `BattleEngine.observers`. It must only read them."""

    def on_reset(self, battles: Sequence[int]) -> None:
        """These battles have started."""

    def on_step(self, actions: NDArray[np.float32]) -> None:
        """All battles that were not over have taken a decision with these actions (B, M, A), the engine's own array."""

    def on_change(self) -> None:
        """Battles have been changed otherwise: restored, or given other rewards."""
