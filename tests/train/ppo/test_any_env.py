"""The algorithm with stable-baselines3's interface, on environments with any spaces."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from echelon_train.ppo import EchelonRecurrentPPO
from train.ppo.random_env import RandomVecEnv, make_model


class AnySpaces(gym.Env):
    """Random observations of any space; actions are checked against their space."""

    def __init__(self, observations, actions, length=7):
        self.observation_space, self.action_space = observations, actions
        self._length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        if isinstance(self.action_space, spaces.MultiBinary):  # a policy samples float32
            action = np.asarray(action).astype(self.action_space.dtype)
        assert self.action_space.contains(action), action
        self._steps += 1
        return self.observation_space.sample(), float(np.mean(action)), False, self._steps == self._length, {}


def vec_env(observations, actions, rows=2):
    return DummyVecEnv([lambda: AnySpaces(observations, actions)] * rows)


VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
ACTIONS = {
    "box": spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([0.5, 2.0], np.float32)),
    "discrete": spaces.Discrete(4),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "multi-binary": spaces.MultiBinary(3),
}


def check_saved_spaces(model, path):
    model.save(path)
    loaded = EchelonRecurrentPPO.load(path, device="cpu")
    assert (loaded.observation_space, loaded.action_space) == (model.observation_space, model.action_space)


def check_learning(model):
    before = {name: parameter.detach().clone() for name, parameter in model.policy.named_parameters()}
    model.learn(2 * model.n_steps * model.n_envs)
    assert model.num_timesteps == 2 * model.n_steps * model.n_envs
    assert model.skipped_minibatches == 0
    for name, parameter in model.policy.named_parameters():
        assert torch.isfinite(parameter).all(), name
        assert not torch.equal(parameter, before[name]), name


@pytest.mark.parametrize("name", ACTIONS)
def test_all_action_spaces(name, tmp_path):
    model = make_model(vec_env(VECTOR, ACTIONS[name]), batch_size=8, ent_coef=0.01)
    check_learning(model)
    # the policy changes little in one update
    assert abs(model.logger.name_to_value["train/approx_kl"]) < 0.1
    check_saved_spaces(model, tmp_path / "model")


def test_dict_observations(tmp_path):
    space = spaces.Dict(
        {
            "vector": VECTOR,
            "kind": spaces.Discrete(3),
            "switches": spaces.MultiBinary(2),
            "wide": spaces.Box(-1.0, 1.0, (2,), np.float64),
        }
    )
    model = make_model(vec_env(space, ACTIONS["discrete"]), policy="MultiInputLstmPolicy", batch_size=8)
    check_learning(model)
    check_saved_spaces(model, tmp_path / "model")


@pytest.mark.parametrize("shape", [(36, 36, 1), (1, 36, 36)])
def test_image_observations(shape):
    space = spaces.Box(0, 255, shape, np.uint8)
    model = make_model(vec_env(space, ACTIONS["box"]), policy="CnnLstmPolicy", batch_size=16, n_epochs=1)
    check_learning(model)
    assert model.rollout_buffer.observations.dtype == torch.uint8
    assert model.rollout_buffer.observations.shape[2:] == (1, 36, 36)


# Features of stable-baselines3


def test_predict_takes_and_returns_states():
    model = make_model(RandomVecEnv(4), batch_size=16)
    observations = model.env.reset()
    starts = np.ones(4, bool)
    one, state = model.predict(observations, deterministic=True, episode_start=starts)
    assert one.shape == (4, 3)
    assert state[0].shape == (1, 4, 8)
    two, later = model.predict(observations, state=state, episode_start=~starts, deterministic=True)
    assert not np.array_equal(one, two)
    again, _ = model.predict(observations, state=later, episode_start=starts, deterministic=True)
    np.testing.assert_allclose(again, one, rtol=1e-6)
    single, _ = model.predict(observations[0], deterministic=True)
    np.testing.assert_allclose(single, one[0], rtol=1e-5, atol=1e-6)
