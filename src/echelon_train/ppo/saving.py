"""stable-baselines3's `save` and `load` with safetensors files instead of pickles, so that loading runs no code."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import check_for_correct_spaces

from echelon_env.config.schema import build, to_plain
from echelon_env.networks.checkpoint import errors_in
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.reading import open_regular_file, parse_json
from echelon_train.config.schedules import Schedule
from echelon_train.ppo.optimizer_state import check_optimizer, optimizer_tensors, restore_optimizer
from echelon_train.ppo.settings import unwrap_schedule
from echelon_train.tensor_files import check_finite, check_shapes, model_bytes, parse_model, part_of, weights_of

SUFFIX = ".safetensors"

_COUNTERS = ("num_timesteps", "_n_updates", "n_envs")
_GENERAL = ("stats_window_size", "tensorboard_log", "policy_kwargs", "verbose", "seed", "deterministic")
_ATTRIBUTES = {"policy": "policy_class", "stats_window_size": "_stats_window_size"}  # attributes whose name differs


def save_model(model: Any, path: Any, exclude: Any = None, include: Any = None) -> None:
    """Write a model's file, see `EchelonRecurrentPPO.save`."""
    if not isinstance(path, (str, Path)) or exclude is not None or include is not None:
        raise TypeError(f"save: expected only a path, got {path!r}, {exclude!r}, {include!r}")
    tensors = {f"policy.{name}": tensor for name, tensor in weights_of(model.policy).items()}
    check_finite(tensors)
    tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(model.policy).items()}
    names = {policy: name for name, policy in model.policy_aliases.items()}
    arguments = {name: getattr(model, _ATTRIBUTES.get(name, name)) for name in _argument_names(type(model))}
    arguments["policy"] = names.get(model.policy_class, model.policy_class)
    description = {
        "arguments": {name: value for name, value in arguments.items() if _is_serialisable(value)},
        "spaces": [model.observation_space, model.action_space],
        "counters": {name: getattr(model, name) for name in _COUNTERS},
    }
    file = _file(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, model_bytes(tensors, json.dumps(description, default=_to_json)))


def load_model(cls: Any, path: str | Path, env: Any, device: torch.device | str, given: Mapping[str, Any]) -> Any:
    """Create a model of a class from its file, see `EchelonRecurrentPPO.load`; `given` are constructor arguments."""
    file = _file(path)
    try:
        with open_regular_file(file) as opened:
            data = opened.read()
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file}: cannot be read ({error})") from error
    tensors, text = parse_model(data, file)
    try:
        description = parse_json(text, object_hook=_from_json, allow_nan=True)  # bounds of spaces
        arguments, counters = description["arguments"] | given, description["counters"]
        if any(type(counters[name]) is not int or counters[name] < 0 for name in _COUNTERS):
            raise ValueError(f"counters: expected integers of at least 0, got {counters}")
        if missing := [name for name in _argument_names(cls) if name not in arguments]:
            raise KeyError(f"the file has no {', '.join(missing)}: pass {missing[0]}=... to load")
        model = cls(env=env, device=device, _init_setup_model=False, **arguments)
        observations, actions = description["spaces"]
        if not (isinstance(observations, spaces.Space) and isinstance(actions, spaces.Space)):
            raise TypeError(f"spaces: got {observations!r}, {actions!r}")
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{file}: the description cannot be used: {error!r}") from error
    if model.env is None:
        model.observation_space, model.action_space, model.n_envs = observations, actions, counters["n_envs"]
    else:
        check_for_correct_spaces(model.env, observations, actions)
    weights, optimizer = part_of(tensors, "policy."), part_of(tensors, "optimizer.")
    _check_spaces(file, model, weights)
    try:
        _check_widths(model, weights)
        model._setup_model()
    except (AssertionError, AttributeError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        raise CheckpointError(f"{file}: {error}") from error
    check_shapes(model.policy, weights, file)
    with errors_in(file):
        check_finite(weights)
        check_optimizer(model.policy, optimizer)
    for name, tensor in weights_of(model.policy).items():
        tensor.copy_(weights[name])
    restore_optimizer(model.policy, optimizer)
    model.num_timesteps, model._n_updates = counters["num_timesteps"], counters["_n_updates"]
    return model


MAX_NUMBERS = 2**22
"""Of an observation and an action, that a file without so many weights may declare."""


def _check_spaces(file: Path, model: Any, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise CheckpointError for spaces that would need much more memory than the file has."""
    inputs, outputs = spaces.flatdim(model.observation_space), spaces.flatdim(model.action_space)
    numbers = sum(tensor.numel() for tensor in weights.values())
    if inputs + outputs > max(numbers, MAX_NUMBERS):  # extractors that pool have fewer weights than inputs
        raise CheckpointError(f"{file}: spaces of {inputs} and {outputs} numbers do not fit {numbers} weights")


def _check_widths(model: Any, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError for layers that have more weights than the file, before they are made; TypeError for no widths.

    Counts what stable-baselines3's arguments tell: the weights from one layer to the next of `net_arch`, and the LSTM's
    from each decision to the next. The network of a `BattlePolicy` has limits of its own (`NetworkConfig`).
    """
    least = 4 * int(model.policy_kwargs.get("lstm_hidden_size", 0)) ** 2
    least *= int(model.policy_kwargs.get("n_lstm_layers", 1))
    arch = model.policy_kwargs.get("net_arch") or []
    for widths in arch.values() if isinstance(arch, dict) else [arch]:
        least += sum(abs(int(each) * int(following)) for each, following in itertools.pairwise(widths))
    if least > (present := sum(tensor.numel() for tensor in weights.values())):
        raise ValueError(f"policy_kwargs: expected layers of at most {present} weights, got {least}")


def _file(path: str | Path) -> Path:
    name = Path(path)
    if name.suffix == ".zip":  # the suffix that stable-baselines3's callbacks use
        name = name.with_suffix("")
    return name if name.suffix == SUFFIX else name.with_name(name.name + SUFFIX)


def _argument_names(cls: Any) -> tuple[str, ...]:
    """The constructor arguments that are saved: all except the environment and what belongs to the machine."""
    return ("policy", *(each.name for each in dataclasses.fields(cls.settings_class)), *_GENERAL)


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
"""Classes that descriptions can contain, with their conversions to JSON and back."""


def _to_json(value: Any) -> Any:
    """Convert a value that JSON has no type for. Raises TypeError for functions and unknown classes."""
    if (schedule := unwrap_schedule(value)) is not value:
        return schedule
    for key, (kind, plain, _) in _TYPES.items():
        if isinstance(value, kind):
            return {key: plain(value)}
    raise TypeError(f"not serialisable: {value!r}")


def _is_serialisable(value: Any) -> bool:
    with contextlib.suppress(TypeError):
        return bool(json.dumps(value, default=_to_json))
    return False


def _from_json(plain: dict[str, Any]) -> Any:
    """The inverse of `_to_json` for a JSON object. Raises KeyError, TypeError, ValueError or AssertionError."""
    key = next(iter(plain), "")
    return _TYPES[key][2](plain[key]) if key.startswith("type:") else plain
