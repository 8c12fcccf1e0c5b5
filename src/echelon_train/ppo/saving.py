"""Models as files that run no code when they are read, behind stable-baselines3's `save` and `load`."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import safetensors.torch
import torch
from gymnasium import spaces
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, check_for_correct_spaces
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.config.schema import build, to_plain
from echelon_env.storage.atomic import write_bytes
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import NetworkConfig
from echelon_train.errors import CheckpointError
from echelon_train.ppo.training_state import check_optimizer, optimizer_tensors, restore_optimizer
from echelon_train.tensor_files import check_finite, check_shapes, part_of, weights_of

FORMAT = "echelon-model-3"
SUFFIX = ".safetensors"

_COUNTERS = ("num_timesteps", "_n_updates", "n_envs")
_GENERAL = ("stats_window_size", "tensorboard_log", "policy_kwargs", "verbose", "seed", "deterministic")
_ATTRIBUTES = {"policy": "policy_class", "stats_window_size": "_stats_window_size"}  # where they are kept


class PlainSaving(RecurrentPPO):  # type: ignore[misc]
    """The part of `EchelonRecurrentPPO` that is saved and loaded: a safetensors file with a description in its header.

    stable-baselines3's own files hold pickles, which run any code when they are loaded.
    """

    settings_class: ClassVar[type[PPOConfig]]

    def save(
        self,
        path: str | Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """Write weights, optimizer, constructor arguments and counters into one file, atomically.

        Parameters
        ----------
        path
            The file; its name is made to end in ``.safetensors``.
        exclude, include
            As in stable-baselines3, whose callbacks pass them; here nothing is optional, so they must be None.

        Raises
        ------
        TypeError
            For a `path` of another type, and for anything to exclude or include.
        CheckpointError
            For weights that are not finite.
        OSError
            If the file cannot be written.
        """
        if not isinstance(path, (str, Path)) or exclude is not None or include is not None:
            raise TypeError(f"save: expected a path alone, got {path!r}, {exclude!r}, {include!r}")
        tensors = {f"policy.{name}": tensor for name, tensor in weights_of(self.policy).items()}
        check_finite(tensors)
        tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(self.policy).items()}
        names = {policy: name for name, policy in self.policy_aliases.items()}
        arguments = {name: getattr(self, _ATTRIBUTES.get(name, name)) for name in _argument_names(type(self))}
        arguments["policy"] = names.get(self.policy_class, self.policy_class)
        description = {
            "arguments": {name: value for name, value in arguments.items() if _is_plain(value)},
            "spaces": [self.observation_space, self.action_space],
            "counters": {name: getattr(self, name) for name in _COUNTERS},
        }
        data = safetensors.torch.save(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            {FORMAT: json.dumps(description, default=_plain)},
        )
        file = _file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, data)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: gymnasium.Env[Any, Any] | VecEnv | None = None,
        device: torch.device | str = "auto",
        **kwargs: Any,
    ) -> Self:
        """Make a model from a file that `save` wrote; training starts with a reset of the environment.

        Parameters
        ----------
        path
            The file, with or without its ending.
        env
            The environment; None if the model is only used to predict.
        device
            The device of the model.
        kwargs
            Arguments of the constructor that replace those of the file. Arguments that files cannot hold are required:
            schedules that are functions, policies that are not this package's, `policy_kwargs` with classes.

        Raises
        ------
        CheckpointError
            For a file that is missing, foreign or damaged, and for arguments that are missing, with their names.
        ValueError
            If the environment does not fit.
        """
        file = _file(path)
        try:
            with safetensors.safe_open(file, "pt") as opened:
                header = opened.metadata() or {}
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no mapping)
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{file}: no readable safetensors file ({error})") from error
        if FORMAT not in header:
            raise CheckpointError(f"{file}: not a model of this release of Echelon (no {FORMAT!r} in its header)")
        try:
            description = json.loads(header[FORMAT], object_hook=_value)
            arguments, counters = description["arguments"] | kwargs, description["counters"]
            if any(type(counters[name]) is not int or counters[name] < 0 for name in _COUNTERS):
                raise ValueError(f"counters: expected integers of at least 0, got {counters}")
            if missing := [name for name in _argument_names(cls) if name not in arguments]:
                raise KeyError(f"cannot hold {', '.join(missing)}: give {missing[0]}=... to load")
            model = cls(env=env, device=device, _init_setup_model=False, **arguments)
            observations, actions = description["spaces"]
            if not (isinstance(observations, spaces.Space) and isinstance(actions, spaces.Space)):
                raise TypeError(f"spaces: got {observations!r}, {actions!r}")
        except (AssertionError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{file}: the description cannot be used: {error!r}") from error
        if model.env is None:
            model.observation_space, model.action_space, model.n_envs = observations, actions, counters["n_envs"]
        else:
            check_for_correct_spaces(model.env, observations, actions)
        try:
            model._setup_model()
        except (TypeError, ValueError, RuntimeError, MemoryError) as error:
            raise CheckpointError(f"{file}: {error}") from error
        weights, optimizer = part_of(tensors, "policy."), part_of(tensors, "optimizer.")
        check_shapes(model.policy, weights, file)
        check_finite(weights)
        check_optimizer(model.policy, optimizer)
        for name, tensor in weights_of(model.policy).items():
            tensor.copy_(weights[name])
        restore_optimizer(model.policy, optimizer)
        model.num_timesteps, model._n_updates = counters["num_timesteps"], counters["_n_updates"]
        return model

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """As stable-baselines3's, from a dict only. Raises TypeError for a path: its files are pickles, see `load`."""
        if not isinstance(load_path_or_dict, dict):
            raise TypeError(f"set_parameters: expected a dict, as load reads files, got {load_path_or_dict!r}")
        super().set_parameters(load_path_or_dict, exact_match, device)


def _file(path: str | Path) -> Path:
    name = Path(path)
    if name.suffix == ".zip":  # what stable-baselines3's callbacks call it
        name = name.with_suffix("")
    return name if name.suffix == SUFFIX else name.with_name(name.name + SUFFIX)


def _argument_names(cls: type[PlainSaving]) -> tuple[str, ...]:
    """The constructor's arguments that a model is made from, besides environment and device."""
    return ("policy", *(each.name for each in dataclasses.fields(cls.settings_class)), *_GENERAL)


def plain_schedule(value: Any) -> Any:
    """What was given as a schedule, without what stable-baselines3 has wrapped it in."""
    while isinstance(value, FloatSchedule):
        value = value.value_schedule
    return float(value.val) if isinstance(value, ConstantSchedule) else value


_TYPES: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "type:Schedule": (Schedule, str, lambda text: Schedule.parse(text, "schedule")),
    "type:NetworkConfig": (NetworkConfig, to_plain, lambda plain: build(NetworkConfig, plain, "network.")),
    "type:Dict": (spaces.Dict, dict, spaces.Dict),
    "type:Box": (
        spaces.Box,
        lambda space: [space.low.tolist(), space.high.tolist(), str(space.dtype)],
        lambda box: spaces.Box(np.array(box[0], box[2]), np.array(box[1], box[2]), dtype=np.dtype(box[2]).type),
    ),
    "type:Discrete": (
        spaces.Discrete,
        lambda space: [int(space.n), int(space.start)],
        lambda pair: spaces.Discrete(pair[0], start=pair[1]),
    ),
    "type:MultiDiscrete": (spaces.MultiDiscrete, lambda space: space.nvec.tolist(), spaces.MultiDiscrete),
    "type:MultiBinary": (spaces.MultiBinary, lambda space: np.array(space.n).tolist(), spaces.MultiBinary),
}
"""Classes in descriptions, with the conversion to JSON and back."""


def _plain(value: Any) -> Any:
    """What JSON has no type for, in simpler types. Raises TypeError for functions and other classes."""
    if (schedule := plain_schedule(value)) is not value:
        return schedule
    for key, (kind, plain, _) in _TYPES.items():
        if isinstance(value, kind):
            return {key: plain(value)}
    raise TypeError(f"no plain data: {value!r}")


def _is_plain(value: Any) -> bool:
    with contextlib.suppress(TypeError):
        return bool(json.dumps(value, default=_plain))
    return False


def _value(plain: dict[str, Any]) -> Any:
    """The inverse of `_plain` for a JSON object. Raises KeyError, TypeError, ValueError or AssertionError."""
    key = next(iter(plain), "")
    return _TYPES[key][2](plain[key]) if key.startswith("type:") else plain
