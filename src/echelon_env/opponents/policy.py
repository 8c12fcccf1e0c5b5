"""What a player is to the package: an object that maps rows of observations to rows of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class Policy(Protocol):
    """A player of any number of mechs, one row each. A row is one mech's through all its battles."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget what was remembered of the rows (R,) where the mask is true: their battles begin anew."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32; the array is only read."""


PolicyFunction = Callable[[NDArray[np.float32]], ArrayLike]
"""A player without a memory: actions (R, A) for observations (R, D)."""

PolicyLike = str | Mapping[str, float] | Policy | PolicyFunction
"""What names a player: a scripted level, weights of several of them, a policy, or a plain function."""


class FunctionPolicy:
    """A plain function as a policy.

    Parameters
    ----------
    function
        Gives actions (R, A) in [-1, 1] for observations (R, D) float32, for any number of rows R. What it remembers
        it must know to forget by itself: nobody tells it that a battle begins.
    """

    def __init__(self, function: PolicyFunction) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"FunctionPolicy({getattr(self.function, '__qualname__', self.function)})"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """A function has no memory of the rows (R,)."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """The function's actions (R, A) for observations (R, D) float32. Raises ValueError where they are no array."""
        return np.asarray(self.function(observations))
