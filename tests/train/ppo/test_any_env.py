"""The algorithm with stable-baselines3's interface, on environments with any spaces."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

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


@pytest.mark.parametrize(
    "kwargs",
    [
        {"n_lstm_layers": 2},
        {"optimizer_class": torch.optim.SGD},
        {"share_features_extractor": False},
        {"squash_output": False, "ortho_init": False},
    ],
)
def test_policy_kwargs(kwargs):
    check_learning(make_model(RandomVecEnv(4), batch_size=16, policy_kwargs=kwargs))


def test_vec_env_wrappers():
    env = VecNormalize(VecMonitor(vec_env(VECTOR, ACTIONS["box"])))
    model = make_model(env, batch_size=8)
    check_learning(model)
    assert env.obs_rms.count > 2 * model.n_steps
    assert len(model.ep_info_buffer) > 0
    assert {info["l"] for info in model.ep_info_buffer} == {7}
    assert model.logger.name_to_value["train/n_updates"] == 20


# Features of stable-baselines3


def test_a_callback_can_stop_training():
    model = make_model(RandomVecEnv(4), batch_size=16)
    model.learn(10_000, callback=StopTrainingOnMaxEpisodes(3))
    assert model.num_timesteps < 10_000
    assert model._n_updates < 50
    # training can continue
    model.learn(128, reset_num_timesteps=True)
    assert model.num_timesteps == 128


def test_callbacks_get_the_locals_of_a_step():
    seen = []

    class Record(BaseCallback):
        def _on_step(self):
            seen.append({name: self.locals[name] for name in ("rewards", "dones", "infos", "new_obs", "actions")})
            return True

    make_model(RandomVecEnv(4), batch_size=16).learn(64, callback=Record())
    assert len(seen) == 16
    assert {len(each["rewards"]) for each in seen} == {len(seen[0]["dones"])} == {4}
    assert len({each["new_obs"].tobytes() for each in seen}) == 16


def test_set_env():
    model = make_model(RandomVecEnv(4, 0), batch_size=16)
    model.learn(64)
    model.set_env(RandomVecEnv(4, 1))
    model.learn(64)
    with pytest.raises(AssertionError, match="number of environments"):
        model.set_env(RandomVecEnv(5))


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
