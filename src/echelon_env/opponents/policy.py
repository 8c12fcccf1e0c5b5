"""The policy protocol: objects that map rows of observations to rows of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.opponent import OpponentsLike
from echelon_env.config.schema import ConfigError
from echelon_env.layout.observations import OBSERVATION_DIM


@runtime_checkable
class Policy(Protocol):
    """A policy for any number of mechs, one row each. A row is one mech through all its battles."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the memory of the rows (R,) where the mask is true: a new battle starts there."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, A) float32 in [-1, 1] for observations (R, D) float32; the array is only read."""


@runtime_checkable
class Resumable(Policy, Protocol):
    """A policy whose state can be saved and restored in another object made with the same arguments."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """The complete state: copies of plain arrays, by name."""

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Continue from the arrays of a policy with this number of rows.

        Raises ValueError, with nothing changed, for arrays of another policy.
        """


PolicyFunction = Callable[[NDArray[np.float32]], ArrayLike]
"""A policy without memory: actions (R, A) for observations (R, D)."""

PolicyLike = OpponentsLike | Policy | PolicyFunction
"""Arguments that specify a policy: an opponent's name, weights of several opponents, a policy, or a function."""


class FunctionPolicy:
    """A function as a policy.

    Parameters
    ----------
    function
        Returns actions (R, A) in [-1, 1] for observations (R, D) float32, for any number of rows R. It is not notified
        of the start of a battle.
    """

    def __init__(self, function: PolicyFunction) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"FunctionPolicy({getattr(self.function, '__qualname__', self.function)})"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """A function has no memory of the rows (R,)."""

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """The function's actions (R, A) for observations (R, D) float32. Raises ValueError if they are not an array."""
        return np.asarray(self.function(observations))


def close_policy(policy: object) -> None:
    """Stop the threads of a policy that has any: call its `close`, which policies need not have."""
    close = getattr(policy, "close", None)
    if callable(close):
        close()


def check_resumable(role: str, policy: Policy) -> Resumable:
    """The policy, checked. Raises `ConfigError`, whose text starts with `role`, if its state cannot be saved."""
    if not isinstance(policy, Resumable):
        raise ConfigError(f"{role}: {policy!r} cannot be resumed: it has no state_arrays and restore_arrays")
    return policy


def check_observations(observations: Any, rows: int) -> None:
    """Raise ValueError if observations are not an array (R, D) of floats, or if R differs from the memory's rows.

    Parameters
    ----------
    observations
        The argument of `act`.
    rows
        Number of rows in the policy's memory; 0 before the first decision.
    """
    if not isinstance(observations, np.ndarray) or not np.issubdtype(observations.dtype, np.floating):
        got = observations.dtype if isinstance(observations, np.ndarray) else type(observations).__name__
        raise ValueError(f"observations: expected an array of floats, got {got}")
    if observations.ndim != 2 or observations.shape[1] != OBSERVATION_DIM:
        raise ValueError(f"observations: expected shape (rows, {OBSERVATION_DIM}), got {observations.shape}")
    if rows not in (0, len(observations)):
        raise ValueError(
            f"observations: expected {rows} rows as before, each one mech's through all its battles (zeros while it is "
            f"dead), got {len(observations)}; reset(np.ones({len(observations)}, bool)) restarts"
        )


def check_mask(mask: Any, rows: int) -> NDArray[np.bool_]:
    """The argument of `reset`, checked: (R,) bool.

    `rows` is as for `check_observations`. Raises ValueError for another shape or dtype, and for another length unless
    all entries are true.
    """
    array = np.asarray(mask)
    if array.ndim != 1 or array.dtype != np.bool_:
        raise ValueError(f"mask: expected booleans of shape (rows,), got {array.dtype} of shape {array.shape}")
    if rows not in (0, len(array)) and not array.all():
        raise ValueError(f"mask: expected {rows} booleans as there were rows before, or others all true, got {mask!r}")
    return array
