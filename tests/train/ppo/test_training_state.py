"""The environments that a model's state needs; test_resume.py has the proof that training continues exactly."""

import json
import random

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from echelon_train.errors import CheckpointError
from echelon_train.ppo.training_state import restore_training_state, training_state
from train.ppo.toys import Wander, collect, model_of


class Counting(gym.Env):
    """An environment of one row that has a state."""

    observation_space, action_space = spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(2)
    count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += int(action)
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def state_arrays(self):
        return {"count": np.array([self.count])}

    def restore_arrays(self, arrays):
        self.count = int(arrays["count"][0])


class Whole(DummyVecEnv):
    """Such environments, with the state of all of them."""

    def state_arrays(self):
        return {"counts": np.array([env.unwrapped.count for env in self.envs])}

    def restore_arrays(self, arrays):
        if arrays.keys() != {"counts"}:
            raise ValueError("expected counts")
        for env, count in zip(self.envs, arrays["counts"], strict=True):
            env.unwrapped.count = int(count)


def played(env):
    model = model_of(env, n_epochs=1, batch_size=16)
    collect(model)
    return model


def test_the_state_of_all_rows_is_kept():
    model = played(Whole([Counting] * 3))
    counts = [env.unwrapped.count for env in model.env.envs]
    assert len(set(counts)) > 1
    tensors, values = training_state(model)
    other = played(Whole([Counting] * 3))
    restore_training_state(other, tensors, values)
    assert [env.unwrapped.count for env in other.env.envs] == counts
    bad = {name: tensor for name, tensor in tensors.items() if name != "env.counts"}
    with pytest.raises(CheckpointError, match="the environment does not take its state: expected counts"):
        restore_training_state(other, bad, values)


def drawn():
    """Numbers from all global streams; of normal ones, which some draw in pairs, an odd number."""
    return {
        "torch": [*torch.rand(3).tolist(), *torch.randn(3).tolist()],
        "numpy": [*np.random.random(3), *np.random.standard_normal(3)],  # noqa: NPY002
        "python": [*(random.random() for _ in range(3)), *(random.gauss() for _ in range(3))],
    }


def test_all_streams_of_random_numbers_continue():
    model = played(Whole([Counting] * 3))
    drawn()
    tensors, values = training_state(model)
    expected, further = drawn(), drawn()
    assert all(further[name] != numbers for name, numbers in expected.items())
    restore_training_state(model, tensors, json.loads(json.dumps(values)))
    assert drawn() == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: DummyVecEnv([Counting] * 3),  # the state of its first row is not that of all
        lambda: VecMonitor(Whole([Counting] * 3)),  # it has a state besides that of what it wraps
        lambda: Wander(3),
    ],
)
def test_environments_without_a_state_of_their_own_are_refused(make):
    model = played(make())
    name = type(model.env).__name__
    with pytest.raises(CheckpointError, match=f"does not give its state: {name} has no state_arrays .* for all rows"):
        training_state(model)
    whole = played(Whole([Counting] * 3))
    tensors, values = training_state(whole)
    with pytest.raises(CheckpointError, match=f"does not give its state: {name} has no"):
        restore_training_state(model, tensors, values)
