"""Normalization of observations and rewards by running statistics of living agents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Space

from echelon_env.wrappers.base import (
    ObservationWrapper,
    ParallelWrapper,
    ResetResult,
    StepResult,
    is_alive,
    kind_of,
)
from echelon_env.wrappers.moments import FilePath, RunningMoments, read_moments, write_moments

Tree = RunningMoments | dict[str, "Tree"] | None
"""The statistics of a space: moments for a Box, a dict by key for a Dict, None for parts that are not normalized."""


class _Statistics:
    """Statistics that can be frozen, saved and loaded."""

    _frozen = False

    @property
    def frozen(self) -> bool:
        """Whether updates of the statistics are stopped."""
        return self._frozen

    def freeze(self) -> None:
        """Stop updating the statistics, for example in an evaluation."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Continue to update the statistics."""
        self._frozen = False

    def save(self, path: FilePath) -> None:
        """Write the statistics to a JSON file, atomically. Raises OSError."""
        write_moments(path, type(self).__name__, self._named_moments())

    def load(self, path: FilePath) -> None:
        """Replace the statistics by those of a file that `save` wrote for the same agents and spaces.

        Raises OSError. Raises ValueError for any other file. Nothing changes then.
        """
        read_moments(path, type(self).__name__, self._named_moments())

    @abstractmethod
    def _named_moments(self) -> dict[str, RunningMoments]:
        """All statistics by their names in the file."""


class NormalizeObservations(_Statistics, ObservationWrapper):
    """Normalizes observations elementwise: (observation - mean) / sqrt(variance + epsilon), clipped.

    The counterpart of `gymnasium.wrappers.NormalizeObservation` for many agents that can die. Agents with equal
    observation spaces share their statistics (`moments`). Float Boxes are normalized, also within a Dict, with separate
    statistics for each key. Keys that end in ``_mask``, Boxes of other dtypes and other spaces stay unchanged.

    Statistics are updated before an observation is normalized. An observation counts if its agent is still in `agents`
    and its info does not have ``alive`` = False. So final observations, after which the agent does not act, do not
    count. For a dead agent that stays (``alive`` is False) zeros stay zeros, and other entries are normalized as for
    living agents.

    `freeze`, `unfreeze`, `save` and `load` act on this wrapper, also if called on an outer wrapper without such
    methods.

    Parameters
    ----------
    env
        A PettingZoo parallel environment.
    epsilon
        Added to variances, above 0.
    clip
        Maximum absolute value of the result, or None for no limit.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For an observation space without a float Box, and for invalid arguments. In `reset` and `step` for a non-finite
        observation.
    """

    def __init__(self, env: Any, *, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        self._epsilon, self._clip = _check_scaling(epsilon, clip)
        self.moments: dict[Any, Tree] = {}
        """The statistics by agent: `RunningMoments`, or for a Dict a dict of them, with None for unchanged parts."""
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
            expected = "a Box of floats, or a Dict with such a Box"
            raise ValueError(f"observation space of {agent!r}: expected {expected}, got {kind_of(space)}")
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
    """Divides rewards by the running standard deviation of the agents' discounted returns, and clips them.

    The counterpart of `gymnasium.wrappers.NormalizeReward` for many agents that can die. The mean is not subtracted.
    Every agent has its own running return, return = gamma x return + reward, over its episode. All returns update one
    statistic (`moments`), so that the agents' rewards keep their proportions. The statistic is updated before the
    rewards are scaled. A return counts if the agent was alive when it acted. So the reward of dying counts. Rewards of
    an agent that died earlier and stays (``alive`` was False in its info before the step) are scaled but do not count.

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
        Maximum absolute value of the result, or None for no limit.

    Raises
    ------
    TypeError
        If `env` is not a `pettingzoo.ParallelEnv`.
    ValueError
        For invalid arguments. In `step` for a non-finite reward.
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
