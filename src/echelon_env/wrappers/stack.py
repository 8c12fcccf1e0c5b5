"""A wrapper that stacks observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray

from echelon_env.config.schema import check_integer
from echelon_env.wrappers.base import ObservationWrapper, check_box


class StackObservations(ObservationWrapper):
    """Stacks an agent's last `stack_size` observations (...) to (stack_size, ...), oldest first.

    The counterpart of `gymnasium.wrappers.FrameStackObservation`. An agent's stack starts with its first observation in
    the episode, repeated, also if it joins later. The stack of a dead agent that stays continues with its observations.

    Parameters
    ----------
    env
        A PettingZoo parallel environment with Box observations of any shape and dtype.
    stack_size
        Number of observations, at least 1.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For an observation space that is not a Box, and for invalid arguments.
    """

    def __init__(self, env: Any, stack_size: int) -> None:
        self._size = check_integer("stack_size", stack_size)
        self._stacks: dict[Any, NDArray[Any]] = {}
        super().__init__(env)

    def _change_space(self, agent: Any, space: Space[Any]) -> Box:
        box = check_box(agent, space)
        low, high = np.stack([box.low] * self._size), np.stack([box.high] * self._size)
        return Box(low, high, dtype=low.dtype.type)

    def _start_episode(self) -> None:
        self._stacks = {}

    def _change(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, NDArray[Any]]:
        self._stacks = {
            agent: self._pushed(agent, np.asarray(observation)) for agent, observation in observations.items()
        }
        return {agent: stack.copy() for agent, stack in self._stacks.items()}

    def _pushed(self, agent: Any, observation: NDArray[Any]) -> NDArray[Any]:
        if agent in self._stacks:
            return np.concatenate([self._stacks[agent][1:], observation[None]])
        return np.stack([observation] * self._size)
