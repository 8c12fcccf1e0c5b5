"""Battles of whole teams with discrete actions and masks, for methods of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnvWrapper

from benchmarks.baselines.budget import BudgetSpent, Clock
from benchmarks.baselines.masks import ChoiceMasks
from echelon_env.layout.observations import STREAMS, Self
from echelon_env.spaces.actions import action_space, read_action
from echelon_train.vec_env import BattleVecEnv

ALIVE = STREAMS["self"].start + Self.ALIVE
"""The column of observations that is 1 for mechs that live."""


class DiscreteBattles(VecEnvWrapper):  # type: ignore[misc]
    """`BattleVecEnv` with the multi-discrete format, and masks as sb3-contrib asks for them."""

    def __init__(self, env: BattleVecEnv) -> None:
        super().__init__(env, action_space=action_space("multi_discrete"))
        self._masks = ChoiceMasks(env.battles.config)
        self._observations = np.zeros((env.num_envs, *env.observation_space.shape), np.float32)

    def reset(self) -> NDArray[np.float32]:
        """Start all battles."""
        self._observations = self.venv.reset()
        return self._observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Set the choices (R, parts) of the next step."""
        self.venv.step_async(read_action("multi_discrete", actions, batch=self.num_envs))

    def step_wait(self) -> Any:
        """Take the step."""
        step = self.venv.step_wait()
        self._observations = step[0]
        return step

    def action_masks(self) -> NDArray[np.bool_]:
        """(R, sum of choices) bool."""
        return self._masks(self._observations)

    def has_attr(self, attr_name: str) -> bool:
        """Whether the environment has an attribute; it has masks."""
        return attr_name == "action_masks" or bool(self.venv.has_attr(attr_name))

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call a method; the masks are one row for each row."""
        if method_name == "action_masks":
            return list(self.action_masks())
        return list(self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs))


class TeamVectorEnv:
    """`DiscreteBattles` with the part of Gymnasium's vector interface that ``examples/cleanrl_ppo.py`` uses.

    Every mech of the learner's teams is a sub-environment. Ends with `BudgetSpent`, and counts decisions of the living.
    """

    def __init__(self, env: DiscreteBattles, clock: Clock) -> None:
        self._env, self._clock = env, clock
        self.single_observation_space: spaces.Space[Any] = env.observation_space
        self.single_action_space: spaces.Space[Any] = env.action_space
        self.decisions = 0

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start all battles; their seeds are the environment's own."""
        return self._env.reset(), {}

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        """Take the choices (R, parts). Raises BudgetSpent."""
        if self._clock.over:
            raise BudgetSpent
        self.decisions += int((self._env._observations[:, ALIVE] > 0.5).sum())
        observations, rewards, dones, infos = self._env.step(actions)
        truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos], np.bool_)
        report: dict[str, Any] = {}
        if dones.any():
            outcome = np.array([info.get("outcome", 0) for info in infos])
            final: NDArray[Any] = np.empty(len(infos), object)
            for row in np.flatnonzero(dones):
                final[row] = infos[row]["terminal_observation"]
            report = {"final_info": {"outcome": outcome}, "final_obs": final}
        return observations, rewards, dones & ~truncated, truncated, report

    def action_masks(self) -> NDArray[np.bool_]:
        """(R, sum of choices) bool."""
        return self._env.action_masks()

    def close(self) -> None:
        """Stop the engine's threads."""
        self._env.close()
