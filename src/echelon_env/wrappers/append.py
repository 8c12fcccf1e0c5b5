"""Wrappers that append entries to observations: the agent's identity, or the elapsed time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray

from echelon_env.config.schema import check_integer
from echelon_env.wrappers.base import ObservationWrapper, check_box, kind_of


class _AppendingWrapper(ObservationWrapper):
    """Appends entries in [0, 1] to observations (D,)."""

    def _change_space(self, agent: Any, space: Space[Any]) -> Box:
        box = check_box(agent, space)
        if box.dtype is None or len(box.shape) != 1 or not np.issubdtype(box.dtype, np.floating):
            expected = "a Box of shape (D,) of floats"
            raise ValueError(f"observation space of {agent!r}: expected {expected}, got {kind_of(space)}")
        extra = len(self._extra(agent))
        low = np.concatenate([box.low, np.zeros(extra, box.dtype)])
        return Box(low, np.concatenate([box.high, np.ones(extra, box.dtype)]), dtype=box.dtype.type)

    def _change(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, NDArray[Any]]:
        return {
            agent: np.concatenate([observation, self._extra(agent).astype(self.observation_spaces[agent].dtype)])
            for agent, observation in observations.items()
        }

    @abstractmethod
    def _extra(self, agent: Any) -> NDArray[np.float64]:
        """The appended entries (E,)."""


class AgentOneHot(_AppendingWrapper):
    """Appends a one-hot (N,) to an agent's observation (D,): its index among the N `possible_agents`.

    With it a shared policy can give agents different roles. Observations of dead agents get the entries, too.

    Parameters
    ----------
    env
        A PettingZoo parallel environment with observations (D,) of floats.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For any other observation space.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)

    def _extra(self, agent: Any) -> NDArray[np.float64]:
        return np.array([agent == possible for possible in self.env.possible_agents], np.float64)


class TimeAwareObservation(_AppendingWrapper):
    """Appends the elapsed share of `max_cycles` steps to an agent's observation (D,); 0 after a reset.

    For an external time limit that is not in the observation. The wrapper does not end the episode. After the limit the
    share stays 1.

    Parameters
    ----------
    env
        A PettingZoo parallel environment with observations (D,) of floats.
    max_cycles
        Number of steps after which the episode is truncated.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For any other observation space, and for a limit that is not a positive integer.
    """

    def __init__(self, env: Any, max_cycles: int) -> None:
        self._limit = check_integer("max_cycles", max_cycles)
        self._cycles = 0
        super().__init__(env)

    def _start_episode(self) -> None:
        self._cycles = -1

    def _change(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, NDArray[Any]]:
        self._cycles += 1
        return super()._change(observations, infos)

    def _extra(self, agent: Any) -> NDArray[np.float64]:
        return np.array([min(1.0, self._cycles / self._limit)])
