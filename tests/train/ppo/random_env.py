"""A small environment for tests of the algorithm, and models trained in it."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_train.ppo import EchelonRecurrentPPO

ALIVE = STREAMS["self"].start + Self.ALIVE


class RandomVecEnv(VecEnv):
    """Random observations, in episodes of random lengths, about half of which are truncated.

    Rewards depend on observations and actions. `seed` determines all random numbers. With a mech's observation space
    rows can die; they stay dead until their episode ends. `actions` is the number of continuous actions, or a space.
    """

    def __init__(
        self, rows: int = 6, seed: int = 0, space: spaces.Box | None = None, actions: int | spaces.Space = 3
    ) -> None:
        self.render_mode = None
        observations = space or spaces.Box(-np.inf, np.inf, (5,), np.float32)
        actions = spaces.Box(-1.0, 1.0, (actions,), np.float32) if isinstance(actions, int) else actions
        super().__init__(rows, observations, actions)
        self._rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self._steps_left = self._rng.integers(3, 20, self.num_envs)
        self._position = self._observe(np.zeros(self.num_envs, np.bool_))
        return self._position.copy()

    def _observe(self, dead: np.ndarray) -> np.ndarray:
        """New observations, in which rows in `dead` (rows,) stay dead and others may die."""
        low = np.maximum(self.observation_space.low, -1.0)
        high = np.minimum(self.observation_space.high, 1.0)
        seen = self._rng.uniform(low, high, (self.num_envs, *self.observation_space.shape)).astype(np.float32)
        if self.observation_space.shape == (OBSERVATION_DIM,):  # a mech's: dead mechs observe only their objective
            dead = dead | (self._rng.random(self.num_envs) < 0.1)
            seen[:, ALIVE] = ~dead
            objective = np.zeros(OBSERVATION_DIM, np.bool_)
            objective[STREAMS["objective"].part] = True
            seen[dead] = np.where(objective, seen[dead], 0.0)
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        dead = self._dead()
        self._steps_left -= 1
        dones = self._steps_left == 0
        final = self._observe(dead)
        self._position = self._observe(dead & ~dones)
        rewards = (self._position[:, :3].sum(1) + self._actions.reshape(self.num_envs, -1)[:, 0]).astype(np.float32)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(dones):
            infos[row] = {
                "terminal_observation": final[row],
                "TimeLimit.truncated": bool(row % 2),
                "episode": {"r": 0.0, "l": 1, "t": 0.0},
            }
            self._steps_left[row] = self._rng.integers(3, 20)
        return self._position.copy(), rewards, dones, infos

    def _dead(self) -> np.ndarray:
        if self.observation_space.shape != (OBSERVATION_DIM,):
            return np.zeros(self.num_envs, np.bool_)
        return self._position[:, ALIVE] <= 0.5

    def seed(self, seed: int | None = None) -> list[int | None]:
        return [seed] * self.num_envs  # the generator keeps the seed of the constructor

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [True] * self.num_envs


def make_model(env: VecEnv, *, steps: int = 16, chunk: int = 4, policy: Any = "MlpLstmPolicy", **settings: Any) -> Any:
    """A small model on the CPU; by default a minibatch is the whole rollout."""
    small = {"net_arch": [8], "lstm_hidden_size": 8} if isinstance(policy, str) else {}
    settings = {"batch_size": steps * env.num_envs, "return_std": 1.0, "seed": 3, "device": "cpu", **settings}
    settings["policy_kwargs"] = {**small, **settings.get("policy_kwargs", {})}
    return EchelonRecurrentPPO(policy, env, n_steps=steps, chunk=chunk, **settings)


def collect(model: Any) -> None:
    """Let a model collect a rollout without training on it."""

    class NoTraining(BaseCallback):
        def _on_step(self) -> bool:
            return True

    _, callback = model._setup_learn(model.n_steps * model.n_envs, NoTraining())
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)


def model_with_rollout(rows: int = 4, *, actions: int | spaces.Space = 3, seed: int = 0, **settings: Any) -> Any:
    """A small model with a rollout in its buffer."""
    model = make_model(RandomVecEnv(rows, seed, actions=actions), **settings)
    collect(model)
    return model
