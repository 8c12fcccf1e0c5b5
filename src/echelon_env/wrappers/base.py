"""The base class of the wrappers, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pettingzoo
from gymnasium.spaces import Box, Dict, Space
from pettingzoo.utils import BaseParallelWrapper

ResetResult = tuple[dict[Any, Any], dict[Any, dict[str, Any]]]
"""Observations and infos, by agent."""

StepResult = tuple[dict[Any, Any], dict[Any, float], dict[Any, bool], dict[Any, bool], dict[Any, dict[str, Any]]]
"""Observations, rewards, terminations, truncations and infos, by agent."""


class ParallelWrapper(BaseParallelWrapper):  # type: ignore[misc]  # PettingZoo is untyped
    """PettingZoo's wrapper with an argument check and a `state` that passes on all arguments.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        If `env` has no `possible_agents`.
    """

    def __init__(self, env: Any) -> None:
        if not isinstance(env, pettingzoo.ParallelEnv):
            raise TypeError(f"env: expected a pettingzoo.ParallelEnv, got {type(env).__name__}")
        if not getattr(env, "possible_agents", None):
            raise ValueError(f"env: expected at least one agent in possible_agents, {env} has none")
        super().__init__(env)

    def state(self, *args: Any, **kwargs: Any) -> Any:
        """The global state of the wrapped environment."""
        return self.env.state(*args, **kwargs)


def is_alive(info: Mapping[str, Any] | None) -> bool:
    """The value of ``alive`` in an agent's info; True if it is missing."""
    return bool((info or {}).get("alive", True))


def kind_of(space: Space[Any]) -> str:
    """What a space is, without its bounds; for Echelon's formats what to ask for instead."""
    if isinstance(space, Box):
        return f"Box of shape {space.shape} of {space.dtype}"
    keys = f" of {', '.join(map(str, space))}" if isinstance(space, Dict) else ""
    return f"{type(space).__name__}{keys} (an environment of Echelon has a Box with observation='flat')"
