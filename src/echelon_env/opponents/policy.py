"""What a player is to the package: an object that maps rows of observations to rows of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.schema import ConfigError
from echelon_env.layout.observations import OBSERVATION_DIM


@runtime_checkable
class Policy(Protocol):
    """A player of any number of mechs, one row each. A row is one mech's through all its battles."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget what was remembered of the rows (R,) where the mask is true: their battles begin anew."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32; the array is only read."""


@runtime_checkable
class Resumable(Policy, Protocol):
    """A player whose state can be saved, so that a copy of it, made alike, goes on as it would have."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that has come about since it was made, as plain arrays by name."""

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Go on from the arrays of a player of so many rows.

        Raises ValueError, with nothing changed, where they are not of such a player.
        """


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


def check_resumable(role: str, policy: Policy) -> Resumable:
    """The policy. Raises `ConfigError`, which begins with its `role`, where its state cannot be saved."""
    if not isinstance(policy, Resumable):
        raise ConfigError(f"{role}: {policy!r} cannot be resumed: it has no state_arrays and restore_arrays")
    return policy


def check_observations(observations: Any, rows: int) -> None:
    """Raise ValueError where observations are no array (R, D) of floats, or not of the rows that are remembered.

    Parameters
    ----------
    observations
        What `act` was given.
    rows
        Of how many mechs the player has memories; 0 if it has none yet.
    """
    if not isinstance(observations, np.ndarray) or not np.issubdtype(observations.dtype, np.floating):
        got = observations.dtype if isinstance(observations, np.ndarray) else type(observations).__name__
        raise ValueError(f"observations: expected an array of floats, got {got}")
    if observations.ndim != 2 or observations.shape[1] != OBSERVATION_DIM:
        raise ValueError(f"observations: expected shape (rows, {OBSERVATION_DIM}), got {observations.shape}")
    if rows not in (0, len(observations)):
        raise ValueError(
            f"observations: expected {rows} rows as before, each one mech's through all its battles (zeros while it is "
            f"dead), got {len(observations)}; reset(np.ones({len(observations)}, bool)) begins anew"
        )


def check_mask(mask: Any, rows: int) -> NDArray[np.bool_]:
    """The mask that `reset` was given, (R,) bool.

    `rows` as for `check_observations`. Raises ValueError where it is none, and where it is of another length without
    being all true.
    """
    array = np.asarray(mask)
    if array.ndim != 1 or array.dtype != np.bool_:
        raise ValueError(f"mask: expected booleans of shape (rows,), got {array.dtype} of shape {array.shape}")
    if rows not in (0, len(array)) and not array.all():
        raise ValueError(f"mask: expected {rows} booleans as there were rows before, or others all true, got {mask!r}")
    return array
