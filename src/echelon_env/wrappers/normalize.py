"""Normalization of observations and rewards by running statistics of living agents, for PettingZoo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import Space

from echelon_env.wrappers.base import ObservationWrapper, ParallelWrapper, ResetResult, StepResult, is_alive
from echelon_env.wrappers.moments import RunningMoments
from echelon_env.wrappers.statistics import (
    ObservationStatistics,
    ReturnStatistics,
    Tree,
    moments_of,
    named_moments,
)


class NormalizeObservations(ObservationStatistics, ObservationWrapper):
    """Normalizes observations elementwise: (observation - mean) / sqrt(variance + epsilon), clipped.

    The counterpart of `gymnasium.wrappers.NormalizeObservation` for many agents that can die. Agents with equal
    observation spaces share their statistics (`moments`). Float Boxes are normalized, also within a Dict, with separate
    statistics for each key. Keys that end in ``_mask``, Boxes of other dtypes and other spaces stay unchanged. If a
    Dict has a mask ``key_mask`` for the first axes of ``key``, these entries share their statistics; those with a zero
    in the mask do not count, and become zeros.

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
        self.moments: dict[Any, Tree] = {}
        """The statistics by agent: `RunningMoments`, or for a Dict a dict of them, with None for unchanged parts."""
        self._groups: list[list[Any]] = []  # agents that share statistics
        super().__init__(env, epsilon=epsilon, clip=clip)

    def _change_space(self, agent: Any, space: Space[Any]) -> Space[Any]:
        for group in self._groups:
            if self.env.observation_space(group[0]) == space:
                group.append(agent)
                self.moments[agent] = self.moments[group[0]]
                return self.observation_spaces[group[0]]
        self._groups.append([agent])
        self.moments[agent] = moments_of(space, f"observation space of {agent!r}")
        return self._normalized_space(space, self.moments[agent])

    def _change(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> dict[Any, Any]:
        changed = dict(observations)
        for group in self._groups:
            tree, agents = self.moments[group[0]], [agent for agent in group if agent in observations]
            if not agents:
                continue
            alive = [is_alive(infos.get(agent)) for agent in agents]
            counted = [agent in self.env.agents and living for agent, living in zip(agents, alive, strict=True)]
            rows = self._normalized_rows(tree, [observations[agent] for agent in agents], counted, alive)
            changed |= dict(zip(agents, rows, strict=True))
        return changed

    def _named_moments(self) -> dict[str, RunningMoments]:
        return {
            name: moments
            for group in self._groups
            for name, moments in named_moments(self.moments[group[0]], str(group[0]))
        }


class NormalizeRewards(ReturnStatistics, ParallelWrapper):
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

    _returns: dict[Any, float]
    _alive: dict[Any, bool]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; the arguments are passed to the environment."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self._returns = {}
        self._alive = {agent: is_alive(infos.get(agent)) for agent in self.env.agents}
        return observations, infos

    def step(self, actions: Mapping[Any, Any]) -> StepResult:
        """Take a step with one action for every agent in `agents`."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        returns = {agent: self._gamma * self._returns.get(agent, 0.0) + float(rewards[agent]) for agent in rewards}
        counted = [self._alive.get(agent, True) for agent in rewards]
        scaled = self._scaled(list(rewards.values()), list(returns.values()), counted)
        self._returns = returns
        self._alive = {agent: is_alive(infos.get(agent)) for agent in self.env.agents}
        return observations, dict(zip(rewards, scaled.tolist(), strict=True)), terminations, truncations, infos
