"""The other teams of battles in which the learner plays both teams, and of battles against others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import Policy
from echelon_env.opponents.policy import check_resumable


class LearnerOrOpponent:
    """A policy with given actions in its first rows, and those of an opponent in the others.

    Parameters
    ----------
    opponent
        The policy of the other rows.
    rows
        Number of the first rows.
    """

    def __init__(self, opponent: Policy, rows: int) -> None:
        self._opponent = opponent
        self._rows = rows
        self.actions = np.zeros((rows, ACTION_DIM), np.float32)
        """The next actions of the first rows, (rows, A) float32."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """See `Policy`; the first rows have no memory."""
        if len(mask) > self._rows:
            self._opponent.reset(mask[self._rows :])

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """`actions`, and the opponent's actions for the observations of the other rows."""
        if len(observations) == self._rows:
            return self.actions
        return np.concatenate([self.actions, self._opponent.act(observations[self._rows :])])

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Those of the opponent. Raises `ConfigError` if it is not `Resumable`."""
        return check_resumable("opponent", self._opponent).state_arrays()

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`."""
        check_resumable("opponent", self._opponent).restore_arrays(arrays, rows - self._rows)
