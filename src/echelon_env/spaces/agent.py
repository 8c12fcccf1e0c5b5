"""The observation and action formats of an environment's agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from gymnasium.spaces import Dict, Space
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError, nearest_name
from echelon_env.engine.boundary import as_array, read_actions
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.spaces.actions import (
    CHOICE_PARTS,
    ActionFormat,
    action_space,
    check_action_format,
    choice_sizes,
    read_action,
)
from echelon_env.spaces.masks import mask_space
from echelon_env.spaces.observations import (
    ObservationFormat,
    check_observation_format,
    observation_space,
    split_streams,
)

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class AgentSpaces:
    """The formats of observations and actions, and the number of mechs per agent.

    Raises
    ------
    ConfigError
        For an unknown format, or `mask_in_observation` with actions that have no masks.
    """

    observation: ObservationFormat = "flat"
    action: ActionFormat = "continuous"
    mask_in_observation: bool = False
    mechs: int | None = None
    """None for agents of one mech each, n for a team of n mechs as one agent."""

    def __post_init__(self) -> None:
        check_observation_format(self.observation)
        check_action_format(self.action)
        if self.mask_in_observation and not self.masked:
            raise ConfigError(
                f"mask_in_observation needs action {' or '.join(map(repr, CHOICE_PARTS))}: "
                f"there are no masks for {self.action!r}",
                "mask_in_observation",
            )

    @property
    def masked(self) -> bool:
        """Whether actions have masks."""
        return self.action in CHOICE_PARTS

    @property
    def observation_space(self) -> Space[Any]:
        """A new space of one agent's observations."""
        mask = mask_space(self.action, self.mechs) if self.mask_in_observation else None
        return observation_space(self.observation, self.mechs, mask)

    @property
    def action_space(self) -> Space[Any]:
        """A new space of one agent's actions."""
        return action_space(self.action, self.mechs)

    def observe(self, vectors: NDArray[np.float32], masks: Any) -> Any:
        """Observations of agents (...) from vectors (..., D), or (..., n, D) of teams, and masks by `split_mask`.

        Returns views of the vectors and copies of the masks.
        """
        observations: Any
        if self.observation == "dict":
            observations = split_streams(vectors)
        else:
            observations = vectors if self.mechs is None else vectors.reshape(*vectors.shape[:-2], -1)
        if not self.mask_in_observation:
            return observations
        return {"observation": observations, "action_mask": deepcopy(masks)}  # infos hold the same mask

    def read(self, action: Any, batch: int | None = None, what: str = "action") -> NDArray[np.float32]:
        """Vectors ([B,] [n,] A) of an agent's action, or of the actions of B agents. Raises ValueError."""
        if self.action != "continuous":
            return read_action(self.action, action, self.mechs, batch, what)
        agents = () if batch is None else (batch,)
        numbers = read_actions(action, (*agents, (self.mechs or 1) * ACTION_DIM), what)
        return numbers if self.mechs is None else numbers.reshape(*agents, self.mechs, ACTION_DIM)

    @property
    def zeros(self) -> Any:
        """A new action of zeros, which is in the space of every format."""
        return _zeros(self.action_space)

    def read_all(self, actions: Sequence[Any], agents: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (agents, A) of the actions of several agents of one mech each.

        Raises ValueError, naming the agent, for one that is not in the space; numbers may be out of bounds.
        """
        try:
            if self.action == "continuous":
                return read_actions(np.array(actions), (len(actions), ACTION_DIM))
            return self.read(_stack(actions), len(actions))
        except (ValueError, AttributeError):  # an action is wrong: read one by one to name the agent
            named = zip(agents, actions, strict=True)
            return np.stack([self.read(action, what=f"action of {agent!r}") for agent, action in named])

    def read_rows(self, actions: Any, batch: int, mechs: int) -> NDArray[np.float32]:
        """Vectors (B, M, A) of actions with two leading axes, (B, M, ...). Raises ValueError."""
        if self.action == "continuous":
            return read_actions(actions, (batch, mechs, ACTION_DIM), "actions")
        if self.action != "dict":
            width = len(choice_sizes(self.action))
            shape = (batch, mechs) if self.action == "discrete" else (batch, mechs, width)
            actions = as_array(actions, "actions")
            if actions.shape != shape:
                raise ValueError(f"actions: expected shape {shape}, got {actions.shape}")
            actions = actions.reshape(batch, -1)
        return read_action(self.action, actions, mechs, batch, "actions")


def of_agent(entries: Mapping[Any, Entry], agent: Any) -> Entry:
    """An agent's entry. Raises ValueError, with the known names, for an unknown agent."""
    try:
        return entries[agent]
    except (KeyError, TypeError):  # of a name that cannot be a key, such as a list
        raise ValueError(f"unknown agent {agent!r}{nearest_name(str(agent), map(str, entries))}") from None


def check_agents(actions: Any, agents: Sequence[Any]) -> None:
    """Raise ValueError unless the actions are a dict of some of the agents."""
    if not isinstance(actions, Mapping):
        raise ValueError(f"actions: expected a dict of agents' actions, got {type(actions).__name__}")
    if unknown := [agent for agent in actions if agent not in agents]:
        raise ValueError(f"actions: expected agents among {list(agents)}, got {unknown}")


def _zeros(space: Space[Any]) -> Any:
    if isinstance(space, Dict):
        return {name: _zeros(part) for name, part in space.items()}
    return np.zeros(space.shape or (), space.dtype)


def _stack(actions: Sequence[Any]) -> Any:
    """Actions as one array or one dict of arrays. Raises ValueError or AttributeError if their shapes differ."""
    if not isinstance(actions[0], Mapping):
        return np.array(actions)
    names = actions[0].keys()
    if any(action.keys() != names for action in actions):
        raise ValueError("actions differ in their keys")
    return {name: np.array([action[name] for action in actions]) for name in names}


def pick(tree: Any, index: Any) -> Any:
    """The part ``array[index]`` of every array in nested dicts and tuples."""
    if isinstance(tree, dict):
        return {name: pick(part, index) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(pick(part, index) for part in tree)
    return tree[index]
