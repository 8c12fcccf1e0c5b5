"""Observations and rewards scaled by running statistics of living agents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Space

from echelon_env.wrappers.base import ObservationWrapper, ParallelWrapper, ResetResult, StepResult, is_alive
from echelon_env.wrappers.moments import FilePath, RunningMoments, read_moments, write_moments

Tree = RunningMoments | dict[str, "Tree"] | None
"""The statistics of a space: of a Box, by key of a Dict, or None where nothing is normalized."""


class _Statistics:
    """Statistics that can be frozen, saved and loaded."""

    _frozen = False

    @property
    def frozen(self) -> bool:
        """Whether the statistics are not updated."""
        return self._frozen

    def freeze(self) -> None:
        """Stop updating the statistics, as for an evaluation."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Continue to update the statistics."""
        self._frozen = False

    def save(self, path: FilePath) -> None:
        """Write the statistics to a JSON file, whole or not at all. Raises OSError."""
        write_moments(path, type(self).__name__, self._named_moments())

    def load(self, path: FilePath) -> None:
        """Take the statistics of a file that `save` wrote for an environment of the same agents and spaces.

        Raises OSError, and ValueError for any other file; then nothing has changed.
        """
        read_moments(path, type(self).__name__, self._named_moments())

    @abstractmethod
    def _named_moments(self) -> dict[str, RunningMoments]:
        """All statistics, under names that the file gives them."""


class NormalizeObservations(_Statistics, ObservationWrapper):
    """Observations as (observation - mean) / sqrt(variance + epsilon), entry by entry, clipped.

    `gymnasium.wrappers.NormalizeObservation` for many agents that die. Agents with equal observation spaces share their
    statistics (`moments`). Boxes of floats are normalized, also those within a Dict, each key separately. Keys that
    end in ``_mask``, Boxes of other types and spaces that are neither Box nor Dict stay unchanged.

    An observation is counted in the statistics, before it is normalized, if its agent is still in `agents` and its info
    does not have ``alive`` = False. So final observations, for which no action follows, are not counted. For a dead
    agent that stays (``alive`` is False) zeros stay zeros, and other entries are normalized as for living agents.

    `freeze`, `unfreeze`, `save` and `load` act on this wrapper, also if called on an outer wrapper without such
    methods.

    Parameters
    ----------
    env
        A PettingZoo parallel environment.
    epsilon
        Added to variances, above 0.
    clip
        Largest absolute value of the result, or None for no limit.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For an observation space without anything to normalize, and for invalid arguments. In `reset` and `step`
        for an observation that is not finite.
    """

    def __init__(self, env: Any, *, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        self._epsilon, self._clip = _check_scaling(epsilon, clip)
        self.moments: dict[Any, Tree] = {}
        """The statistics, by agent: `RunningMoments`, or for a Dict a dict of them with None for unchanged parts."""
        self._groups: list[list[Any]] = []  # agents that share statistics
        super().__init__(env)

    def _change_space(self, agent: Any, space: Space[Any]) -> Space[Any]:
        for group in self._groups:
            if self.env.observation_space(group[0]) == space:
                group.append(agent)
                self.moments[agent] = self.moments[group[0]]
                return self.observation_spaces[group[0]]
        self._groups.append([agent])
        tree = _moments_of(space)
        if not list(_named(tree)):
            raise ValueError(
                f"observation space of {agent!r}: expected a Box of floats, or a Dict with some, got {space}"
            )
        self.moments[agent] = tree
        return _normalized_space(tree, space, np.inf if self._clip is None else self._clip)

    def _change(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, Any]:
        if not self._frozen:
            living = [agent for agent in self.env.agents if agent in observations and is_alive(infos, agent)]
            for group in self._groups:
                _update(self.moments[group[0]], [observations[agent] for agent in group if agent in living])
        return {
            agent: self._normalized(self.moments[agent], observation, is_alive(infos, agent))
            for agent, observation in observations.items()
        }

    def _normalized(self, tree: Tree, value: Any, alive: bool) -> Any:
        if isinstance(tree, dict):
            return {key: self._normalized(tree[key], part, alive) for key, part in value.items()}
        if tree is None:
            return value
        value = np.asarray(value)
        result = tree.standardize(value, self._epsilon, self._clip).astype(value.dtype)
        return result if alive else np.where(value == 0, value, result)

    def _named_moments(self) -> dict[str, RunningMoments]:
        return {
            name: moments for group in self._groups for name, moments in _named(self.moments[group[0]], str(group[0]))
        }


class NormalizeRewards(_Statistics, ParallelWrapper):
    """Rewards divided by the standard deviation of the agents' discounted returns so far, clipped.

    The mean is not subtracted, as in `gymnasium.wrappers.NormalizeReward`, here for many agents that die. Every agent
    has its own running return, return = gamma x return + reward, from its first step to its last. All returns are
    counted in one statistic (`moments`), so that the agents' rewards keep their proportions. A step's return is
    counted, before its reward is scaled, if the agent was alive when it acted. So the reward of dying counts; rewards
    of an agent that died earlier and stays (``alive`` was False in its info before the step) are scaled but not
    counted.

    `freeze`, `unfreeze`, `save` and `load` act on this wrapper, also if called on an outer wrapper without such
    methods. Infos, including their rewards, are not changed.

    Parameters
    ----------
    env
        A PettingZoo parallel environment.
    gamma
        Discount, from 0 to 1.
    epsilon
        Added to the variance, above 0.
    clip
        Largest absolute value of the result, or None for no limit.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For invalid arguments. In `step` for a reward that is not finite.
    """

    def __init__(self, env: Any, *, gamma: float = 0.99, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        super().__init__(env)
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma: expected a number from 0 to 1, got {gamma!r}")
        self._gamma = gamma
        self._epsilon, self._clip = _check_scaling(epsilon, clip)
        self.moments = RunningMoments()
        """The statistic of the discounted returns."""
        self._returns: dict[Any, float] = {}
        self._alive: dict[Any, bool] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; the arguments are passed to the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._returns = {}
        self._alive = {agent: is_alive(infos, agent) for agent in self.env.agents}
        return observations, infos

    def step(self, actions: Mapping[Any, Any]) -> StepResult:
        """Take a step with one action for every agent in `agents`."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        returns = {agent: self._gamma * self._returns.get(agent, 0.0) + float(rewards[agent]) for agent in rewards}
        if not self._frozen:
            self.moments.update([returns[agent] for agent in returns if self._alive.get(agent, True)])
        scale = float(np.sqrt(self.moments.var + self._epsilon))
        limit = np.inf if self._clip is None else self._clip
        rewards = {agent: float(np.clip(reward / scale, -limit, limit)) for agent, reward in rewards.items()}
        self._returns = returns
        self._alive = {agent: is_alive(infos, agent) for agent in self.env.agents}
        return observations, rewards, terminations, truncations, infos

    def _named_moments(self) -> dict[str, RunningMoments]:
        return {"returns": self.moments}


def _check_scaling(epsilon: float, clip: float | None) -> tuple[float, float | None]:
    if not 0 < epsilon < np.inf:
        raise ValueError(f"epsilon: expected a finite number above 0, got {epsilon!r}")
    if clip is not None and not 0 < clip < np.inf:
        raise ValueError(f"clip: expected a finite number above 0 or None, got {clip!r}")
    return epsilon, clip


def _moments_of(space: Space[Any], key: str = "") -> Tree:
    if isinstance(space, Dict):
        return {key: _moments_of(part, key) for key, part in space.spaces.items()}
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating) and not key.endswith("_mask"):
        return RunningMoments(space.shape)
    return None


def _normalized_space(tree: Tree, space: Space[Any], limit: float) -> Space[Any]:
    if isinstance(tree, dict) and isinstance(space, Dict):
        return Dict([(key, _normalized_space(tree[key], part, limit)) for key, part in space.spaces.items()])
    if isinstance(tree, RunningMoments) and isinstance(space, Box):
        return Box(-limit, limit, space.shape, space.dtype.type)
    return space


def _update(tree: Tree, values: Sequence[Any]) -> None:
    if isinstance(tree, dict):
        for key, part in tree.items():
            _update(part, [value[key] for value in values])
    elif tree is not None and values:
        tree.update(np.stack(values))


def _named(tree: Tree, name: str = "") -> Iterator[tuple[str, RunningMoments]]:
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from _named(part, f"{name}/{key}")
    elif tree is not None:
        yield name, tree
