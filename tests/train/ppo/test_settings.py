"""The settings of the algorithm: their declaration and their checks."""

from dataclasses import dataclass, field

import pytest

from echelon_env.config.schema import ConfigError, build, quantity
from echelon_train.config.files import settings
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import TrainConfig
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.ppo.settings import unwrap_schedule
from echelon_train.runs.building import build_model, make_env
from train.ppo.random_env import RandomVecEnv, make_model
from train.small import small_run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("use_sde", True),
        ("chunk", 2.5),
        ("chunk", 5),
        ("batch_size", 6),
        ("batch_size", 68),
        ("gae_lambda", float("nan")),
        ("target_kl", -1.0),
        ("clip_range_vf", 0.2),
        ("normalize_advantage", 2),
    ],
)
def test_invalid_settings_are_rejected_by_name(name, value):
    with pytest.raises(ValueError, match=rf"{name}'?: expected .*got {value!r}|use_sde: expected False"):
        make_model(RandomVecEnv(4), **{"batch_size": 16, name: value})


@dataclass(frozen=True, kw_only=True)
class ExtendedSettings(PPOConfig):
    dropout: float = quantity(0.25, "", 0, 1, help="probability that a feature is dropped")


@dataclass(frozen=True, kw_only=True)
class ExtendedRun(TrainConfig):
    ppo: ExtendedSettings = field(default_factory=ExtendedSettings)


class ExtendedPPO(EchelonRecurrentPPO):
    settings_class = ExtendedSettings


def test_a_setting_is_one_field(tmp_path):
    """One dataclass field is enough for options, run files, the constructor, its checks and saved models."""
    option = next(each for each in settings(ExtendedRun) if each.key == "ppo.dropout")
    assert (option.metavar, option.default, option.help) == ("X", "0.25", "probability that a feature is dropped")
    run = build(
        ExtendedRun, {"battle": small_run().battle, "ppo": {"dropout": 0.5, "n_steps": 16, "batch_size": 64}}, ""
    )
    assert ExtendedRun.from_dict(run.to_dict()).ppo.dropout == 0.5
    model = ExtendedPPO("MlpLstmPolicy", RandomVecEnv(4), device="cpu", **run.ppo.arguments())
    assert model.dropout == 0.5
    assert ExtendedPPO("MlpLstmPolicy", RandomVecEnv(4), device="cpu").dropout == 0.25
    with pytest.raises(ConfigError, match=r"'ppo.dropout': expected a number from 0 to 1"):
        ExtendedPPO("MlpLstmPolicy", RandomVecEnv(4), device="cpu", dropout=2.0)
    model.save(tmp_path / "model")
    assert ExtendedPPO.load(tmp_path / "model").dropout == 0.5


def test_every_setting_of_a_run_reaches_the_algorithm():
    run = small_run(ppo=PPOConfig(n_steps=16, batch_size=16, target_kl=0.5, normalize_advantage=False))
    model = build_model(run, make_env(run), "cpu")
    for name, value in run.ppo.arguments().items():
        assert unwrap_schedule(getattr(model, name)) == value, name
