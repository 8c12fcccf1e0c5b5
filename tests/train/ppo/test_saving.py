"""stable-baselines3's `save` and `load` without pickles."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError
from echelon_train.config.schedules import Schedule
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.policy.sequences import MlpLstmPolicy
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.tensor_files import MODEL_FORMAT, weights_of
from support.remember import Remember
from train.ppo.random_env import RandomVecEnv

SMALL = {"net_arch": [8], "lstm_hidden_size": 8}
BATTLE_KWARGS = {"network": NetworkConfig(width=8, head=8, set_width=4, map_channels=2)}


def battles():
    return RandomVecEnv(4, 1, observation_space(), action_space().shape[0])


def signs():
    return make_vec_env(Remember, 4)


CASES = {
    "vectors": (lambda: RandomVecEnv(4, 1), "MlpLstmPolicy", SMALL),
    "choices": (signs, "MlpLstmPolicy", SMALL),
    "battles": (battles, BattlePolicy, BATTLE_KWARGS),
}


def make_model(case="vectors", **arguments):
    env, policy, kwargs = CASES[case]
    defaults = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "chunk": 8, "seed": 1, "device": "cpu"}
    return EchelonRecurrentPPO(policy, env(), **(defaults | {"policy_kwargs": kwargs} | arguments))


def same_weights(first, second):
    ours, theirs = weights_of(first.policy), weights_of(second.policy)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_predicts_and_trains_identically(tmp_path, case):
    model = make_model(case, learning_rate=Schedule.parse("linear:1e-3:1e-4", "x"), target_kl=0.5)
    model.learn(128)
    model.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    env = CASES[case][0]()
    alone, loaded = (EchelonRecurrentPPO.load(tmp_path / "model", each, device="cpu") for each in (None, env))
    assert same_weights(model, alone)
    observations = CASES[case][0]().reset()
    expected, states = model.predict(observations, deterministic=True)
    for each in (alone, loaded):
        actions, theirs = each.predict(observations, deterministic=True)
        np.testing.assert_array_equal(actions, expected)
        np.testing.assert_array_equal(theirs, states)
    assert (loaded.num_timesteps, loaded._n_updates) == (model.num_timesteps, model._n_updates)
    assert (loaded.learning_rate, loaded.ent_coef(1.0)) == (model.learning_rate, model.ent_coef(1.0))
    model.set_env(CASES[case][0]())
    model.set_teacher(None)  # resets the recurrent states
    for each in (model, loaded):
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002  (SB3 seeds it)
        each.env.seed(5)
        each.learn(64, reset_num_timesteps=False)
    assert same_weights(model, loaded)
    assert not same_weights(loaded, alone)


def test_without_an_environment_no_buffer_is_allocated(tmp_path):
    make_model().save(tmp_path / "model")
    alone, loaded = (EchelonRecurrentPPO.load(tmp_path / "model", each) for each in (None, RandomVecEnv(4, 1)))
    assert not hasattr(alone, "rollout_buffer")
    assert alone.predict(np.zeros((4, 5), np.float32))[0].shape == (4, 3)
    alone.set_env(RandomVecEnv(4, 1))
    for each in (alone, loaded):
        each.set_random_seed(3)
        each.learn(128)
    assert same_weights(alone, loaded)
    buffer = alone.rollout_buffer
    alone.set_env(RandomVecEnv(4, 2))
    assert alone.rollout_buffer is buffer


def test_the_callbacks_of_stable_baselines3_work(tmp_path):
    model = make_model("choices")
    checkpoints = CheckpointCallback(16, str(tmp_path / "kept"))
    evaluations = EvalCallback(signs(), eval_freq=16, n_eval_episodes=4, best_model_save_path=str(tmp_path), verbose=0)
    model.learn(128, callback=[checkpoints, evaluations])
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert names == ["rl_model_128_steps.safetensors", "rl_model_64_steps.safetensors"]
    for path in (tmp_path / "best_model", tmp_path / "best_model.zip", tmp_path / "kept" / "rl_model_128_steps.zip"):
        assert EchelonRecurrentPPO.load(path, signs(), device="cpu").num_timesteps in (64, 128)


def test_arguments_that_are_not_saved_must_be_passed_to_load(tmp_path):
    class CustomPolicy(MlpLstmPolicy):
        pass

    kwargs = {**SMALL, "activation_fn": torch.nn.ReLU}
    model = EchelonRecurrentPPO(
        CustomPolicy,
        RandomVecEnv(4),
        learning_rate=lambda left: 1e-3 * left,
        policy_kwargs=kwargs,
        n_steps=16,
        batch_size=32,
    )
    model.save(tmp_path / "model")
    with pytest.raises(CheckpointError, match="the file has no policy, learning_rate, policy_kwargs: pass policy="):
        EchelonRecurrentPPO.load(tmp_path / "model")
    given = {"policy": CustomPolicy, "learning_rate": 1e-3, "policy_kwargs": kwargs}
    loaded = EchelonRecurrentPPO.load(tmp_path / "model", **given)
    assert isinstance(loaded.policy, CustomPolicy)
    assert same_weights(model, loaded)


def test_load_can_replace_arguments(tmp_path):
    make_model().save(tmp_path / "model")
    loaded = EchelonRecurrentPPO.load(tmp_path / "model", RandomVecEnv(8), n_epochs=7, learning_rate=0.5)
    assert (loaded.n_epochs, loaded.n_envs, loaded.lr_schedule(1.0)) == (7, 8, 0.5)
    with pytest.raises(ValueError, match="spaces do not match"):
        EchelonRecurrentPPO.load(tmp_path / "model", battles())


def test_nothing_is_pickled(tmp_path, monkeypatch):
    def fail_on_pickle(*args, **kwargs):
        raise AssertionError("pickled")

    for name in ("pickle.loads", "pickle.load", "pickle.dumps", "pickle.dump", "torch.load", "torch.save"):
        monkeypatch.setattr(name, fail_on_pickle)
    model = make_model()
    model.save(tmp_path / "model")
    EchelonRecurrentPPO.load(tmp_path / "model")
    with pytest.raises(TypeError, match="expected only a path"):
        model.save(tmp_path / "model", exclude=["policy"])
    with pytest.raises(TypeError, match="expected a dict"):
        model.set_parameters(str(tmp_path / "model.zip"))


def rewrite(file, tensors=lambda tensors: None, description=lambda description: None):
    """Edit the tensors or the description of a model's file."""
    with safetensors.safe_open(file, "pt") as opened:
        document = json.loads(opened.metadata()[MODEL_FORMAT])
    present = safetensors.torch.load_file(file)
    tensors(present)
    description(document)
    safetensors.torch.save_file(present, file, {MODEL_FORMAT: json.dumps(document)})


def arguments(**changed):
    return lambda file: rewrite(file, description=lambda each: each["arguments"].update(changed))


def counters(**changed):
    return lambda file: rewrite(file, description=lambda each: each["counters"].update(changed))


def observations(space):
    return lambda file: rewrite(file, description=lambda each: each["spaces"].__setitem__(0, space))


def tensor(name, change):
    return lambda file: rewrite(file, lambda each: each.update({name: change(each[name])}))


def without(name):
    return lambda file: rewrite(file, lambda each: each.pop(name))


def nan(tensor):
    return tensor * torch.nan


BAD_FILES = {
    "pickle": (lambda f: f.write_bytes(b"PK\x03\x04 and so on"), "not a valid safetensors file"),
    "truncated": (lambda f: f.write_bytes(f.read_bytes()[:-9]), "not a valid safetensors file"),
    "absent": (lambda f: f.unlink(), "cannot be read"),
    "foreign": (lambda f: safetensors.torch.save_file({"x": torch.zeros(1)}, f), "not a model of this release"),
    "no object": (lambda f: safetensors.torch.save_file({}, f, {MODEL_FORMAT: "[]"}), "cannot be used: TypeError"),
    "no JSON": (lambda f: safetensors.torch.save_file({}, f, {MODEL_FORMAT: "{"}), "cannot be used: JSONDecodeError"),
    "unknown argument": (arguments(x=1), "unexpected keyword argument 'x'"),
    "unknown policy": (arguments(policy="os.system"), "os.system"),
    "unknown type": (arguments(gae_lambda={"type:os.system": "true"}), "KeyError"),
    "no number": (arguments(gae_lambda="x"), "expected float, got 'x'"),
    "wide LSTM": (arguments(policy_kwargs={**SMALL, "lstm_hidden_size": 10**5}), r"at most \d+ weights, got 4\d{10}$"),
    "deep LSTM": (arguments(policy_kwargs={**SMALL, "n_lstm_layers": 10**9}), r"weights, got 256000000000$"),
    "wide layers": (arguments(policy_kwargs={**SMALL, "net_arch": [10**6, 10**6]}), r"weights, got 1\d{12}$"),
    "one wide layer": (arguments(policy_kwargs={**SMALL, "net_arch": {"pi": [10**12], "vf": [8]}}), "memory"),
    "no width": (arguments(policy_kwargs={**SMALL, "net_arch": {"pi": 8}}), "not iterable"),
    "contradiction": (arguments(policy_kwargs={**SMALL, "shared_lstm": True, "enable_critic_lstm": True}), "critic"),
    "another network": (arguments(policy_kwargs={**SMALL, "lstm_hidden_size": 9}), r"expected \(\d+, \d+\)"),
    "no counter": (counters(num_timesteps=-1), "num_timesteps"),
    "no space": (observations(5), "spaces: got 5"),
    "bad space": (observations({"type:Discrete": [0, 0]}), "the description cannot be used"),
    "weight missing": (without("policy.value_net.bias"), "value_net.bias"),
    "not a number": (tensor("policy.value_net.bias", nan), "not finite"),
    "moments": (tensor("optimizer.value_net.bias.exp_avg", nan), "'value_net.bias.exp_avg': expected finite"),
    "no moment": (without("optimizer.value_net.bias.exp_avg"), "missing or unknown: value_net.bias.exp_avg"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a trained model; only copy it."""
    model, file = make_model(), tmp_path_factory.mktemp("saved") / "model.safetensors"
    model.learn(64)
    model.save(file)
    return file


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_rejected_with_the_reason(tmp_path, case, saved):
    damage, message = BAD_FILES[case]
    damage(Path(shutil.copy(saved, tmp_path)))
    with pytest.raises(CheckpointError, match=rf"model\.safetensors: .*{message}"):
        EchelonRecurrentPPO.load(tmp_path / "model", CASES["vectors"][0]())


def test_a_space_without_an_environment_must_fit_the_weights(tmp_path):
    make_model().save(tmp_path / "model")
    observations({"type:MultiBinary": 10**9})(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"spaces of 1000000000 and \d+ numbers do not fit \d+ weights"):
        EchelonRecurrentPPO.load(tmp_path / "model")


class Mean(BaseFeaturesExtractor):
    """Extractors that pool have few weights."""

    def __init__(self, observation_space):
        super().__init__(observation_space, 1)

    def forward(self, observations):
        return observations.mean(dim=1, keepdim=True)


def test_a_model_with_fewer_weights_than_inputs_is_loaded(tmp_path, monkeypatch):
    wide = RandomVecEnv(4, 1, Box(-1, 1, (30_000,), np.float32))
    kwargs = SMALL | {"features_extractor_class": Mean}
    monkeypatch.setitem(CASES, "wide", (lambda: wide, "MlpLstmPolicy", kwargs))
    make_model("wide").save(tmp_path / "model")
    for env in (None, wide):
        assert EchelonRecurrentPPO.load(tmp_path / "model", env, policy_kwargs=kwargs).n_envs == 4
