"""What a player is to the package: an object that maps rows of observations to rows of actions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Policy(Protocol):
    """A player of any number of mechs, one row each. A row is one mech's through all its battles."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget what was remembered of the rows (R,) where the mask is true: their battles begin anew."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32; the array is only read."""
