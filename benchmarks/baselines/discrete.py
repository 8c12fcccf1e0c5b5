"""Battles of whole teams with the interface that ``examples/cleanrl_ppo.py`` uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from benchmarks.baselines.budget import BudgetSpentError, Clock
from echelon_env.layout.observations import STREAMS, Self
from echelon_train import DiscreteActions

ALIVE = STREAMS["self"].start + Self.ALIVE
"""The column of observations that is 1 for mechs that live."""


class TeamVectorEnv:
    """`DiscreteActions` with the part of Gymnasium's vector interface that ``examples/cleanrl_ppo.py`` uses.

    Every mech of the learner's teams is a sub-environment. Counts decisions of living mechs, and ends with
    `BudgetSpentError`.
    """

    def __init__(self, env: DiscreteActions, clock: Clock) -> None:
        self._env, self._clock = env, clock
        self.single_observation_space: spaces.Space[Any] = env.observation_space
        self.single_action_space: spaces.Space[Any] = env.action_space
        self.decisions = 0

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start all battles; their seeds are the environment's own."""
        self._seen = self._env.reset()
        return self._seen, {}

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        """Take the choices (R, parts). Raises BudgetSpentError."""
        if self._clock.over:
            raise BudgetSpentError
        self.decisions += int((self._seen[:, ALIVE] > 0.5).sum())
        self._seen, rewards, dones, infos = self._env.step(actions)
        truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos], np.bool_)
        report: dict[str, Any] = {}
        if dones.any():
            outcome = np.array([info.get("outcome", 0) for info in infos])
            final: NDArray[Any] = np.empty(len(infos), object)
            for row in np.flatnonzero(dones):
                final[row] = infos[row]["terminal_observation"]
            report = {"final_info": {"outcome": outcome}, "final_obs": final}
        return self._seen, rewards, dones & ~truncated, truncated, report

    def action_masks(self) -> NDArray[np.bool_]:
        """(R, sum of choices) bool."""
        return self._env.action_masks()

    def close(self) -> None:
        """Stop the engine's threads."""
        self._env.close()
