"""The settings of the algorithm: where they come from, and which are refused."""

from dataclasses import dataclass, field

import pytest

from echelon_env.config.schema import ConfigError, build, quantity
from echelon_train.config.files import settings
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import TrainConfig
from echelon_train.ppo import EchelonRecurrentPPO
from echelon_train.ppo.saving import plain_schedule
from echelon_train.runs.building import build_model, make_env
from train.ppo.toys import Wander, model_of
from train.small import small_run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("use_sde", True),
        ("chunk", 2.5),
        ("chunk", 5),
        ("batch_size", 6),
        ("batch_size", 68),
        ("burn_in", 4),
        ("gamma", float("nan")),
        ("target_kl", -1.0),
        ("clip_range_vf", 0.0),
        ("normalize_advantage", "by_group"),
    ],
)
def test_impossible_settings_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"{name}'?: expected .*got {value!r}|use_sde: expected False"):
        model_of(Wander(4), **{"batch_size": 16, name: value})


@dataclass(frozen=True, kw_only=True)
class FurtherSettings(PPOConfig):
    dropout: float = quantity(0.25, "", 0, 1, help="probability that a feature is dropped")


@dataclass(frozen=True, kw_only=True)
class FurtherRun(TrainConfig):
    ppo: FurtherSettings = field(default_factory=FurtherSettings)


class FurtherPPO(EchelonRecurrentPPO):
    settings_class = FurtherSettings


def test_a_setting_is_one_field(tmp_path):
    """One field of the settings reaches the options, run files, the constructor, its checks and saved models."""
    option = next(each for each in settings(FurtherRun) if each.key == "ppo.dropout")
    assert (option.form, option.default, option.help) == ("X", "0.25", "probability that a feature is dropped")
    run = build(
        FurtherRun, {"battle": small_run().battle, "ppo": {"dropout": 0.5, "n_steps": 16, "batch_size": 64}}, ""
    )
    assert FurtherRun.from_dict(run.to_dict()).ppo.dropout == 0.5
    model = FurtherPPO("MlpLstmPolicy", Wander(4), device="cpu", **run.ppo.arguments())
    assert model.dropout == 0.5
    assert FurtherPPO("MlpLstmPolicy", Wander(4), device="cpu").dropout == 0.25
    with pytest.raises(ConfigError, match=r"'ppo.dropout': expected a number from 0 to 1"):
        FurtherPPO("MlpLstmPolicy", Wander(4), device="cpu", dropout=2.0)
    model.save(tmp_path / "model")
    assert FurtherPPO.load(tmp_path / "model").dropout == 0.5


def test_every_setting_of_a_run_reaches_the_algorithm():
    run = small_run(ppo=PPOConfig(n_steps=16, batch_size=16, target_kl=0.5, normalize_advantage="by_class"))
    model = build_model(run, make_env(run), "cpu")
    for name, value in run.ppo.arguments().items():
        assert plain_schedule(getattr(model, name)) == value, name
