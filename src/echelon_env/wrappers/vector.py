"""Normalization of observations and rewards for Gymnasium's vector environments, in every autoreset mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from echelon_env.wrappers.statistics import Flags, ObservationStatistics, ReturnStatistics, moments_of

__all__ = ["NormalizeObservations", "NormalizeRewards"]

Step = tuple[Any, NDArray[Any], Flags, Flags, dict[str, Any]]


class NormalizeObservations(ObservationStatistics, VectorWrapper):
    """Normalizes observations elementwise: (observation - mean) / sqrt(variance + epsilon), clipped.

    `gymnasium.wrappers.vector.NormalizeObservation` for Dict spaces, every autoreset mode and partial resets, too, and
    with `save`, `load` and `freeze`. The parts of a space are treated as by
    `echelon_env.wrappers.NormalizeObservations`. All sub-environments share the statistics. They are updated by all
    rows that count before a row is normalized. An observation counts once, if the agent acts on it: its episode is not
    over, and its info does not have ``alive`` = False. So the statistics do not depend on the autoreset mode.
    ``infos["final_obs"]`` is normalized and does not count. Files are those of `wrappers.single.NormalizeObservations`,
    too.

    `epsilon` and `clip` are those of `echelon_env.wrappers.NormalizeObservations`, and so are the errors; TypeError if
    `env` is not a `gymnasium.vector.VectorEnv`. Without ``autoreset_mode`` in its metadata the mode is `NEXT_STEP`, as
    in Gymnasium.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], *, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        super().__init__(env, epsilon=epsilon, clip=clip)
        self.moments = moments_of(env.single_observation_space, "observation space")
        self.single_observation_space = self._normalized_space(env.single_observation_space, self.moments)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._resets_at_once = _mode_of(env) == AutoresetMode.SAME_STEP

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes; the arguments are passed to the environment."""
        started = _started(options, self.num_envs)
        observations, infos = self.env.reset(seed=seed, options=options)
        alive = _alive(infos, np.ones(self.num_envs, np.bool_))
        return self._normalized(self.moments, observations, started & alive, alive), infos

    def step(self, actions: Any) -> Step:
        """Take a step in every sub-environment."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        alive = _alive(infos, np.ones(self.num_envs, np.bool_))
        acts = self._resets_at_once | ~(terminations | truncations)
        observations = self._normalized(self.moments, observations, acts & alive, alive)
        if "final_obs" in infos:
            infos = infos | {"final_obs": self._finals(infos)}
        return observations, rewards, terminations, truncations, infos

    def _finals(self, infos: Mapping[str, Any]) -> NDArray[Any]:
        """The normalized final observations: an object array (B,), None where there is none."""
        finals = np.full(self.num_envs, None, object)
        alive = _alive(infos.get("final_info", {}), np.ones(self.num_envs, np.bool_))
        for index in np.flatnonzero(infos["_final_obs"]).tolist():
            rows = self._normalized_rows(self.moments, [infos["final_obs"][index]], [False], [alive[index]])
            finals[index] = next(rows)
        return finals


class NormalizeRewards(ReturnStatistics, VectorWrapper):
    """Divides rewards by the running standard deviation of the agents' discounted returns, and clips them.

    `gymnasium.wrappers.vector.NormalizeReward` with `save`, `load` and `freeze`. The mean is not subtracted. Every
    sub-environment has its own return, which starts with its episode; all returns update one statistic. A return counts
    if the agent was alive when it acted, see `echelon_env.wrappers.NormalizeRewards`. The step that only resets a
    sub-environment (`NEXT_STEP`) does not count. Files are those of `wrappers.single.NormalizeRewards`, too.

    `gamma`, `epsilon` and `clip` are those of `echelon_env.wrappers.NormalizeRewards`, and so are the errors; TypeError
    if `env` is not a `gymnasium.vector.VectorEnv`. Without ``autoreset_mode`` in its metadata the mode is `NEXT_STEP`,
    as in Gymnasium.
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], *, gamma: float = 0.99, epsilon: float = 1e-8, clip: float | None = 10.0
    ) -> None:
        super().__init__(env, gamma=gamma, epsilon=epsilon, clip=clip)
        self._resets_at_once = _mode_of(env) == AutoresetMode.SAME_STEP
        self._returns = np.zeros(self.num_envs)
        self._over = np.zeros(self.num_envs, np.bool_)  # the next step is none of an episode
        self._alive = np.ones(self.num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes; the arguments are passed to the environment."""
        started = _started(options, self.num_envs)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._returns[started], self._over[started] = 0, False
        self._alive = _alive(infos, self._alive | started)
        return observations, infos

    def step(self, actions: Any) -> Step:
        """Take a step in every sub-environment."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._returns = self._gamma * self._returns + rewards
        scaled = self._scaled(rewards, self._returns, self._alive & ~self._over)
        done = terminations | truncations
        self._returns[done] = 0
        self._over = done & (not self._resets_at_once)
        self._alive = _alive(infos, np.ones(self.num_envs, np.bool_))
        return observations, scaled, terminations, truncations, infos


def _mode_of(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def _started(options: Mapping[str, Any] | None, count: int) -> Flags:
    """The sub-environments (B,) that a reset starts. A copy: Gymnasium's environments take the mask out of options."""
    mask = (options or {}).get("reset_mask")
    return np.ones(count, np.bool_) if mask is None else np.array(mask, np.bool_)


def _alive(infos: Mapping[str, Any], otherwise: Flags) -> Flags:
    """Which agents (B,) are alive by their infos; `otherwise` (B,) for those without the key ``alive``."""
    if "alive" not in infos:
        return otherwise
    return np.where(infos.get("_alive", True), infos["alive"], otherwise).astype(np.bool_)
