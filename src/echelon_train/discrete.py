"""Choices with masks as the actions of `BattleVecEnv`, for sb3-contrib's MaskablePPO."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnvWrapper

from echelon_env.config.schema import ConfigError
from echelon_env.spaces import ActionFormat, ObservedMasks, action_space, read_action
from echelon_train.vec_env import BattleVecEnv


class DiscreteActions(VecEnvWrapper):  # type: ignore[misc]
    """Battles with a format of choices as their actions, and masks of those that are possible.

    The masks are those of `echelon_env.spaces.ObservedMasks`, so that the trained policy can act with the same masks in
    evaluations. `VecNormalize` goes around this wrapper. The format is ``"multi_discrete"`` or ``"discrete"``.

    Raises `ConfigError` for battles with a central critic's global state, and for a format without choices.

    Examples
    --------
    >>> from echelon_env import make_config
    >>> env = DiscreteActions(BattleVecEnv(make_config("duel", dead_agents="persist"), 2))
    >>> _ = env.reset()
    >>> env.action_space.shape, env.action_masks().shape
    ((12,), (2, 50))
    """

    def __init__(self, env: BattleVecEnv, action_format: ActionFormat = "multi_discrete") -> None:
        self.masks = ObservedMasks(env.battles.config, action_format)
        if not isinstance(env.observation_space, Box):
            raise ConfigError("DiscreteActions: expected battles without a global state, BattleVecEnv(central=False)")
        super().__init__(env, action_space=action_space(action_format))
        self.action_format = action_format
        self._observations = np.zeros((env.num_envs, *env.observation_space.shape), np.float32)

    def reset(self) -> NDArray[np.float32]:
        """Start all battles. Returns observations (rows, D) float32."""
        self._observations = self.venv.reset()
        return self._observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Set the choices (rows, parts), or (rows,) of the discrete format. Raises ValueError for others."""
        self.venv.step_async(read_action(self.action_format, actions, batch=self.num_envs, what="actions"))

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Take the step, as `BattleVecEnv.step_wait`."""
        step = self.venv.step_wait()
        self._observations = step[0]
        return step  # type: ignore[no-any-return]

    def action_masks(self) -> NDArray[np.bool_]:
        """The present masks (rows, choices) bool."""
        return self.masks(self._observations)

    def has_attr(self, attr_name: str) -> bool:
        """Whether the environment has an attribute: MaskablePPO asks for ``action_masks``."""
        return attr_name == "action_masks" or bool(self.venv.has_attr(attr_name))

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call a method of the environment; ``action_masks`` returns a mask for each row."""
        if method_name == "action_masks":
            return list(self.action_masks()[list(self._get_indices(indices))])
        return self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs)  # type: ignore[no-any-return]
