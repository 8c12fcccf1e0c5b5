"""Environments and teachers in the training state; test_resume.py tests that a run resumes exactly."""

import json
import random

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from echelon_env.config.schema import build, to_plain
from echelon_env.networks.weights import CheckpointError
from echelon_train.ppo.training_state import ModelState, restore_training_state, training_state
from train.ppo.random_env import RandomVecEnv, collect, make_model


class CountingEnv(gym.Env):
    """An environment with a state, which counts actions."""

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


class StatefulVecEnv(DummyVecEnv):
    """A VecEnv that saves and restores the counts of all its environments."""

    def state_arrays(self):
        return {"counts": np.array([env.unwrapped.count for env in self.envs])}

    def restore_arrays(self, arrays):
        if arrays.keys() != {"counts"}:
            raise ValueError("expected counts")
        for env, count in zip(self.envs, arrays["counts"], strict=True):
            env.unwrapped.count = int(count)


def model_with_rollout_in(env):
    model = make_model(env, n_epochs=1, batch_size=16)
    collect(model)
    return model


def test_the_state_of_all_rows_is_restored():
    model = model_with_rollout_in(StatefulVecEnv([CountingEnv] * 3))
    counts = [env.unwrapped.count for env in model.env.envs]
    assert len(set(counts)) > 1
    model.train()
    tensors, values = training_state(model)
    assert {"optimizer.value_net.bias.exp_avg", "lstm.0", "lstm.3", "last.observation"} <= tensors.keys()
    assert tensors["lstm.0"].any() and tensors["optimizer.value_net.bias.exp_avg"].any()
    other = model_with_rollout_in(StatefulVecEnv([CountingEnv] * 3))
    restore_training_state(other, tensors, values)
    again, same = training_state(other)
    assert same == values and again.keys() == tensors.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    assert [env.unwrapped.count for env in other.env.envs] == counts
    bad = {name: tensor for name, tensor in tensors.items() if name != "env.counts"}
    with pytest.raises(CheckpointError, match="the environment cannot restore its state: expected counts"):
        restore_training_state(other, bad, values)


class FixedTeacher:
    """A teacher with a number for a state."""

    number = 3

    def state_arrays(self):
        return {"number": np.array([self.number])}

    def restore_arrays(self, arrays):
        if arrays.keys() != {"number"}:
            raise ValueError("expected a number")
        self.number = int(arrays["number"][0])


def test_the_state_of_a_teacher_is_restored():
    model, other, without = (model_with_rollout_in(StatefulVecEnv([CountingEnv] * 3)) for _ in range(3))
    model.teacher, other.teacher = FixedTeacher(), FixedTeacher()
    model.teacher.number = 8
    tensors, values = training_state(model)
    assert tensors["teacher.number"].tolist() == [8]
    restore_training_state(other, tensors, values)
    assert other.teacher.number == 8
    with pytest.raises(CheckpointError, match=r"missing or unknown tensors: teacher\.number"):
        restore_training_state(without, tensors, values)
    with pytest.raises(CheckpointError, match="the teacher cannot restore its state: expected a number"):
        restore_training_state(other, *training_state(without))


def random_numbers():
    """Numbers from all global generators; an odd number of normal ones, because some generators cache a second one."""
    return {
        "torch": [*torch.rand(3).tolist(), *torch.randn(3).tolist()],
        "numpy": [*np.random.random(3), *np.random.standard_normal(3)],  # noqa: NPY002
        "python": [*(random.random() for _ in range(3)), *(random.gauss() for _ in range(3))],
    }


def test_all_random_number_generators_are_restored():
    model = model_with_rollout_in(StatefulVecEnv([CountingEnv] * 3))
    random_numbers()
    tensors, values = training_state(model)
    expected, further = random_numbers(), random_numbers()
    assert all(further[name] != numbers for name, numbers in expected.items())
    restore_training_state(model, tensors, build(ModelState, json.loads(json.dumps(to_plain(values))), ""))
    assert random_numbers() == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: DummyVecEnv([CountingEnv] * 3),  # it would save the state of its first row only
        lambda: VecMonitor(StatefulVecEnv([CountingEnv] * 3)),  # it has a state besides that of the wrapped environment
        lambda: RandomVecEnv(3),
    ],
)
def test_environments_without_their_own_state_are_rejected(make):
    model = model_with_rollout_in(make())
    name = type(model.env).__name__
    with pytest.raises(
        CheckpointError, match=f"cannot save its state: {name} does not define state_arrays .* for all rows"
    ):
        training_state(model)
    stateful = model_with_rollout_in(StatefulVecEnv([CountingEnv] * 3))
    tensors, values = training_state(stateful)
    with pytest.raises(CheckpointError, match=f"cannot save its state: {name} does not define"):
        restore_training_state(model, tensors, values)
