"""The settings of the algorithm: their checks, and those of torch that follow from them."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import torch
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_wrapper

from echelon_env.config.schema import ConfigError, build
from echelon_train.config.schedules import Schedule
from echelon_train.policy import BattlePolicy


def check_settings(model: Any, num_rows: int) -> None:
    """Raise ConfigError for a setting that is out of range or does not fit the others or the number of rows."""
    if model.use_sde:
        raise ValueError("use_sde: expected False: state-dependent exploration is not supported")
    if model.clip_range_vf is not None:
        raise ValueError(f"clip_range_vf: expected None: values are not clipped, got {model.clip_range_vf!r}")
    settings = {each.name: getattr(model, each.name) for each in dataclasses.fields(model.settings_class)}
    for name in model.settings_class.schedules():
        settings[name] = unwrap_schedule(settings[name])
        if callable(settings[name]) and not isinstance(settings[name], Schedule):
            del settings[name]  # the range of an arbitrary function is unknown
    build(model.settings_class, {**settings, "target_kl": model.target_kl or 0.0}, "ppo.")
    samples = model.n_steps * num_rows
    if model.batch_size > samples:
        raise ConfigError(
            f"ppo.batch_size: expected at most the {samples} samples of a rollout, got {model.batch_size}",
            "ppo.batch_size",
        )


def check_env(policy: Any, env: Any) -> None:
    """Raise ConfigError for the policy of a battle in an environment that changes the observations of its mechs.

    It would take living mechs for dead ones, and a rollout without decisions would never end.
    """
    wrapper = unwrap_vec_wrapper(env, VecNormalize) if isinstance(env, VecEnv) else None
    if not isinstance(policy, BattlePolicy) or wrapper is None or not wrapper.norm_obs:
        return
    if "observation" in (wrapper.norm_obs_keys or ["observation"]):
        raise ConfigError(
            "env: expected the observations of the battles, which have fixed scales, got those of VecNormalize: "
            "pass norm_obs=False"
        )


def unwrap_schedule(value: Any) -> Any:
    """The number or function that stable-baselines3 has wrapped as a schedule."""
    while isinstance(value, FloatSchedule):
        value = value.value_schedule
    return float(value.val) if isinstance(value, ConstantSchedule) else value


def set_up_cuda(deterministic: bool) -> None:
    """Let CUDA use TF32 and search for the fastest kernels, or compute in float32 with deterministic ones."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not deterministic
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cudnn.deterministic = deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS needs it to be deterministic in LSTMs
        torch.use_deterministic_algorithms(True, warn_only=True)
