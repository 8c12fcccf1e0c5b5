"""A teacher that labels the learner's observations with its own actions, and may play some of the battles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.opponents import Policy
from echelon_env.opponents.policy import check_resumable
from echelon_env.storage.arrays import Arrays, check_arrays, named, part_of, without

Floats = NDArray[np.float32]

BY_TEACHER = "by_teacher"
"""Key of the infos at the end of an episode, in runs with a teacher: whether it has played the battle."""

_DRAWS = 1
"""Part of the seeds of the draws, which are independent of those of the opponents from the same seed."""


class Teacher:
    """A policy that acts on every observation of the learner, whoever plays.

    With a share of battles that the teacher plays this is DAgger (Ross, Gordon and Bagnell, AISTATS 2011): labels are
    collected in the states that the mixture of learner and teacher visits.

    Parameters
    ----------
    policy
        The teacher; it must be `Resumable` for a run that is resumed.
    rows
        Rows of the environment.
    group
        Successive rows that belong to one team in a battle.
    seed
        Seed of the draws of battles.
    """

    def __init__(self, policy: Policy, rows: int, group: int, seed: int) -> None:
        policy.reset(np.ones(rows, np.bool_))  # so that a state saved before the first decision has all rows
        self.policy = policy
        self._group = group
        self._seed = seed
        self._drawn = 0
        self._plays = np.zeros(rows // group, np.bool_)

    @property
    def plays(self) -> NDArray[np.bool_]:
        """(rows,) bool: the rows of battles that the teacher plays."""
        return np.repeat(self._plays, self._group)

    def begin(self, starts: NDArray[np.bool_], share: float) -> None:
        """Start new battles in the rows (rows,); the teacher plays each team of them with probability `share`."""
        if not starts.any():
            return
        self.policy.reset(starts)
        for battle in np.flatnonzero(starts[:: self._group]).tolist():
            self._plays[battle] = np.random.default_rng([self._seed, self._drawn, _DRAWS]).random() < share
            self._drawn += 1

    def act(self, observations: Floats) -> Floats:
        """The teacher's actions (rows, A) for the learner's observations (rows, D)."""
        return np.asarray(self.policy.act(observations), np.float32)

    def replace(self, actions: Floats, labels: Floats) -> Floats:
        """The actions to play (rows, A): the teacher's `labels` in its battles, else the learner's `actions`."""
        return np.where(self.plays[:, None], labels, actions)

    def state_arrays(self) -> Arrays:
        """The complete state. Raises `ConfigError` for a policy that is not `Resumable`."""
        own = {"plays": self._plays.copy(), "drawn": np.array([self._drawn], np.int64)}
        return own | named("policy", check_resumable("teacher", self.policy).state_arrays())

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore `state_arrays`. Raises ValueError for those of another teacher."""
        own = without(arrays, "policy")
        check_arrays("the teacher", own, {"plays": (self._plays.shape, np.bool_), "drawn": ((1,), np.int64)})
        if own["drawn"][0] < 0:
            raise ValueError(f"state of the teacher: expected a count from 0, got {own['drawn'][0]}")
        rows = len(self._plays) * self._group
        check_resumable("teacher", self.policy).restore_arrays(part_of(arrays, "policy"), rows)
        self._plays, self._drawn = own["plays"].copy(), int(own["drawn"][0])
