"""An environment whose reward needs a memory."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class Remember(gym.Env[NDArray[np.float32], np.int64]):
    """A sign is shown at the first step only; the reward is for naming it at the last one."""

    def __init__(self, delay: int = 8) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._delay = delay

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._sign = int(self.np_random.integers(2))
        self._step = 0
        return np.array([2.0 * self._sign - 1.0, 1.0], np.float32), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._step += 1
        over = self._step == self._delay
        reward = (1.0 if action == self._sign else -1.0) if over else 0.0
        return np.zeros(2, np.float32), reward, over, False, {}
