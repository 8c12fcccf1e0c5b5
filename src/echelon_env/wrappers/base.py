"""Base classes of the wrappers: argument checks, and changes of observations together with their spaces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import pettingzoo
from gymnasium.spaces import Box, Dict, Space
from pettingzoo.utils import BaseParallelWrapper

from echelon_env.spaces.agent import of_agent

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


class ObservationWrapper(ParallelWrapper):
    """A wrapper that changes the observations of all agents and their `observation_spaces`."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_spaces: dict[Any, Space[Any]] = {}
        for agent in env.possible_agents:
            self.observation_spaces[agent] = self._change_space(agent, env.observation_space(agent))

    def observation_space(self, agent: Any) -> Space[Any]:
        """The observation space of an agent, always the same object. Raises ValueError for an unknown agent."""
        return of_agent(self.observation_spaces, agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; the arguments are passed to the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._start_episode()
        return self._change(observations, infos), infos

    def step(self, actions: Mapping[Any, Any]) -> StepResult:
        """Take a step with one action for every agent in `agents`."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        return self._change(observations, infos), rewards, terminations, truncations, infos

    @abstractmethod
    def _change_space(self, agent: Any, space: Space[Any]) -> Space[Any]:
        """The space of an agent's changed observations. Raises ValueError for an unsupported space."""

    def _start_episode(self) -> None:
        """Reset the wrapper's state. Called at the start of an episode."""

    @abstractmethod
    def _change(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, Any]:
        """The changed observations of a reset or a step, as new arrays."""


def is_alive(info: Mapping[str, Any] | None) -> bool:
    """The value of ``alive`` in an agent's info; True if it is missing."""
    return bool((info or {}).get("alive", True))


def check_box(agent: Any, space: Space[Any]) -> Box:
    """Return the space if it is a Box. Raises ValueError with the agent's name otherwise."""
    if not isinstance(space, Box):
        raise ValueError(f"observation space of {agent!r}: expected a Box, got {kind_of(space)}")
    return space


def kind_of(space: Space[Any]) -> str:
    """What a space is, without its bounds; for Echelon's formats what to ask for instead."""
    if isinstance(space, Box):
        return f"Box of shape {space.shape} of {space.dtype}"
    keys = f" of {', '.join(map(str, space))}" if isinstance(space, Dict) else ""
    return f"{type(space).__name__}{keys} (an environment of Echelon has a Box with observation='flat')"
