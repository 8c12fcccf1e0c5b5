"""Infos that TorchRL's `PettingZooWrapper` can store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from echelon_env.spaces.agent import check_agents
from echelon_env.wrappers.base import ParallelWrapper, ResetResult, StepResult


class NumericInfos(ParallelWrapper):
    """A parallel environment whose infos TorchRL can store, and that ignores the actions of agents that have left.

    Infos keep their numbers and arrays. ``action_mask`` is one array (K,) int8, the concatenation of its parts. Texts
    and events are left out.

    Parameters
    ----------
    env
        A PettingZoo parallel environment.
    """

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; the arguments are passed to the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations, _numbers(infos)

    def step(self, actions: Mapping[Any, Any]) -> StepResult:
        """Take a step with one action for every agent in `agents`. Actions of other possible agents are ignored."""
        check_agents(actions, self.possible_agents)
        present = self.env.agents
        kept = {agent: action for agent, action in actions.items() if agent in present}
        observations, rewards, terminations, truncations, infos = self.env.step(kept)
        return observations, rewards, terminations, truncations, _numbers(infos)


def _numbers(infos: Mapping[Any, Mapping[str, Any]]) -> dict[Any, dict[str, Any]]:
    """The parts of infos that are numbers or arrays of numbers."""
    return {
        agent: {key: value for key, value in map(_number, info.items()) if value is not None}
        for agent, info in infos.items()
    }


def _number(item: tuple[str, Any]) -> tuple[str, Any]:
    """A key and its value as an array, or None if it holds no numbers."""
    key, value = item
    if key == "action_mask" and isinstance(value, tuple):
        return key, np.concatenate(value)
    array = np.asarray(value) if isinstance(value, (bool, int, float, np.generic, np.ndarray)) else None
    if array is None or array.dtype.kind not in "biuf":
        return key, None
    return key, array.astype(np.int64) if array.dtype == np.uint64 else array  # torch has no uint64
