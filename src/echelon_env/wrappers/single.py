"""Normalization of observations and rewards for Gymnasium's environments of one agent."""

from __future__ import annotations

from typing import Any

import gymnasium

from echelon_env.wrappers.base import is_alive
from echelon_env.wrappers.statistics import ObservationStatistics, ReturnStatistics, moments_of

__all__ = ["NormalizeObservations", "NormalizeRewards"]

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class NormalizeObservations(ObservationStatistics, gymnasium.Wrapper[Any, Any, Any, Any]):
    """Normalizes observations elementwise: (observation - mean) / sqrt(variance + epsilon), clipped.

    `gymnasium.wrappers.NormalizeObservation` for Dict spaces, too, and with `save`, `load` and `freeze`. The parts of a
    space are treated as by `echelon_env.wrappers.NormalizeObservations`. An observation counts if the agent acts on it:
    its episode is not over, and its info does not have ``alive`` = False. Files are those of
    `wrappers.vector.NormalizeObservations`, too.

    `epsilon` and `clip` are those of `echelon_env.wrappers.NormalizeObservations`, and so are the errors; TypeError if
    `env` is not a `gymnasium.Env`.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        super().__init__(env, epsilon=epsilon, clip=clip)
        self.moments = moments_of(env.observation_space, "observation space")
        self.observation_space = self._normalized_space(env.observation_space, self.moments)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the arguments are passed to the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._change(observation, info, True), info

    def step(self, action: Any) -> Step:
        """Take a step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        acts = not (terminated or truncated)
        return self._change(observation, info, acts), float(reward), terminated, truncated, info

    def _change(self, observation: Any, info: dict[str, Any], acts: bool) -> Any:
        alive = is_alive(info)
        return next(self._normalized_rows(self.moments, [observation], [acts and alive], [alive]))


class NormalizeRewards(ReturnStatistics, gymnasium.Wrapper[Any, Any, Any, Any]):
    """Divides rewards by the running standard deviation of the agent's discounted return, and clips them.

    `gymnasium.wrappers.NormalizeReward` with `save`, `load` and `freeze`. The mean is not subtracted. The return starts
    with the episode. It counts if the agent was alive when it acted, see `echelon_env.wrappers.NormalizeRewards`. Files
    are those of `wrappers.vector.NormalizeRewards`, too.

    `gamma`, `epsilon` and `clip` are those of `echelon_env.wrappers.NormalizeRewards`, and so are the errors; TypeError
    if `env` is not a `gymnasium.Env`.
    """

    _return = 0.0
    _alive = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the arguments are passed to the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._return, self._alive = 0.0, is_alive(info)
        return observation, info

    def step(self, action: Any) -> Step:
        """Take a step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return = self._gamma * self._return + float(reward)
        scaled = self._scaled([float(reward)], [self._return], [self._alive])
        self._alive = is_alive(info)
        return observation, float(scaled[0]), terminated, truncated, info
