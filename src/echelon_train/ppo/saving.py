"""Models as files that run no code when they are read, behind stable-baselines3's `save` and `load`."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Iterable, Mapping
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
from echelon_train.policy import BattlePolicy
from echelon_train.ppo.training_state import check_optimizer, optimizer_tensors, restore_optimizer
from echelon_train.tensor_files import check_finite, check_shapes, parse_tensors, read_file, weights_of

FORMAT, VERSION = "echelon-model", 2
SUFFIX = ".safetensors"
MAX_BYTES = 1 << 32

_COUNTERS = ("num_timesteps", "_n_updates")
_GENERAL = ("stats_window_size", "tensorboard_log", "policy_kwargs", "verbose", "seed", "deterministic")
_ATTRIBUTES = {"policy": "policy_class", "stats_window_size": "_stats_window_size"}  # where they are kept
_SCHEDULE, _NETWORK = "schedule:", "network:"


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
        data = safetensors.torch.save(
            {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
            {FORMAT: json.dumps(_described(self))},
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
        data = read_file(file, MAX_BYTES)
        tensors = parse_tensors(data, file)
        weights, optimizer = (_part_of(tensors, name) for name in ("policy", "optimizer"))
        check_finite(weights)
        document = _read_document(data, file)
        missing = [name for name in _argument_names(cls) if name not in document["arguments"].keys() | kwargs.keys()]
        if missing:
            raise CheckpointError(f"{file}: cannot hold {', '.join(missing)}: give {missing[0]}=... to load")
        try:
            arguments = {name: _value(value) for name, value in document["arguments"].items()} | kwargs
            policy = arguments.pop("policy")
            model = cls(_policies(cls).get(policy, policy), env, device=device, _init_setup_model=False, **arguments)
            if model.env is None:
                model.n_envs = document["rows"]
            spaces_before = _space(document["observations"]), _space(document["actions"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{file}: the description cannot be used: {error!r}") from error
        if model.env is None:
            model.observation_space, model.action_space = spaces_before
        else:
            check_for_correct_spaces(model.env, *spaces_before)
        try:
            model._setup_model()
        except (TypeError, ValueError, RuntimeError, MemoryError) as error:
            raise CheckpointError(f"{file}: {error}") from error
        check_shapes(model.policy, weights, file)
        check_optimizer(model.policy, optimizer)
        for name, tensor in weights_of(model.policy).items():
            tensor.copy_(weights[name])
        restore_optimizer(model.policy, optimizer)
        for name in _COUNTERS:
            setattr(model, name, document["counters"][name])
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


def _part_of(tensors: Mapping[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    """The tensors whose names start with ``name.``, without that."""
    return {each.removeprefix(f"{name}."): tensor for each, tensor in tensors.items() if each.startswith(f"{name}.")}


def _policies(cls: type[PlainSaving]) -> dict[str, type[Any]]:
    """The policies that a file can name."""
    return {**cls.policy_aliases, "BattlePolicy": BattlePolicy}


def _argument_names(cls: type[PlainSaving]) -> tuple[str, ...]:
    """The constructor's arguments that a model is made from, besides environment and device."""
    return ("policy", *(each.name for each in dataclasses.fields(cls.settings_class)), *_GENERAL)


def _described(model: PlainSaving) -> dict[str, Any]:
    """The model without its tensors, as JSON; arguments that are no plain data are left out."""
    arguments = {}
    for name in _argument_names(type(model)):
        with contextlib.suppress(TypeError):
            arguments[name] = _plain(getattr(model, _ATTRIBUTES.get(name, name)), _policies(type(model)))
    return {
        "version": VERSION,
        "arguments": arguments,
        "observations": _plain_space(model.observation_space),
        "actions": _plain_space(model.action_space),
        "rows": model.n_envs,
        "counters": {name: getattr(model, name) for name in _COUNTERS},
    }


def _plain(value: Any, policies: Mapping[str, type[Any]]) -> Any:
    """A value as JSON has it. Raises TypeError for what is no plain data, such as functions and other classes."""
    value = plain_schedule(value)
    for name, policy in policies.items():
        if value is policy:
            return name
    if isinstance(value, Schedule):
        return {_SCHEDULE: str(value)}
    if isinstance(value, NetworkConfig):
        return {_NETWORK: to_plain(value)}
    if isinstance(value, dict):
        return {str(name): _plain(each, policies) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, policies) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"no plain data: {value!r}")


def plain_schedule(value: Any) -> Any:
    """What was given as a schedule, without what stable-baselines3 has wrapped it in."""
    while isinstance(value, FloatSchedule):
        value = value.value_schedule
    return float(value.val) if isinstance(value, ConstantSchedule) else value


def _value(plain: Any) -> Any:
    """The inverse of `_plain`. Raises ConfigError."""
    if isinstance(plain, dict):
        if plain.keys() == {_SCHEDULE}:
            return Schedule.parse(plain[_SCHEDULE], "schedule")
        if plain.keys() == {_NETWORK}:
            return build(NetworkConfig, plain[_NETWORK], "network.")
        return {name: _value(each) for name, each in plain.items()}
    return [_value(each) for each in plain] if isinstance(plain, list) else plain


def _plain_space(space: spaces.Space[Any]) -> dict[str, Any]:
    """A space of those that the algorithm takes, fit for JSON."""
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "parts": {name: _plain_space(part) for name, part in space.items()}}
    if isinstance(space, spaces.Box):
        bounds = {name: bound.ravel().tolist() for name, bound in (("low", space.low), ("high", space.high))}
        bounds = {name: bound[:1] if len(set(bound)) == 1 else bound for name, bound in bounds.items()}
        return {"kind": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist()}
    assert isinstance(space, spaces.MultiBinary)
    return {"kind": "MultiBinary", "n": list(space.shape)}


def _space(plain: Any) -> spaces.Space[Any]:
    """The inverse of `_plain_space`. Raises KeyError, TypeError or ValueError for what describes no space."""
    kind, rest = plain["kind"], {name: value for name, value in plain.items() if name != "kind"}
    if kind == "Dict":
        return spaces.Dict({name: _space(part) for name, part in rest["parts"].items()})
    if kind == "Box":
        shape, dtype = tuple(rest["shape"]), np.dtype(rest["dtype"])
        size = int(np.prod(shape, dtype=np.int64))
        if not all(len(rest[name]) in (1, size) for name in ("low", "high")) or not 0 < size <= MAX_BYTES // 4:
            raise ValueError(f"a Box of {shape} with {len(rest['low'])} and {len(rest['high'])} bounds")
        low, high = (np.resize(np.array(rest[name], dtype), shape) for name in ("low", "high"))
        return spaces.Box(low, high, dtype=dtype.type)
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(np.array(rest["nvec"], np.int64))
    return spaces.Discrete(**rest) if kind == "Discrete" else spaces.MultiBinary(rest["n"])


def _read_document(data: bytes, file: Path) -> dict[str, Any]:
    """What the header of a valid safetensors file says of a model. Raises CheckpointError."""
    size = int.from_bytes(data[:8], "little")
    try:
        document = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][FORMAT])
    except (KeyError, TypeError):
        raise CheckpointError(f"{file}: not a model of Echelon") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: no valid description ({error})") from error
    expected = {"version": int, "arguments": dict, "observations": dict, "actions": dict, "rows": int, "counters": dict}
    if not isinstance(document, dict) or {name: type(value) for name, value in document.items()} != expected:
        raise CheckpointError(f"{file}: expected the description of a model, with {', '.join(expected)}")
    if document["version"] != VERSION:
        raise CheckpointError(f"{file}: format version {document['version']}, this release reads {VERSION}")
    numbers = {"rows": document["rows"], **{name: document["counters"].get(name) for name in _COUNTERS}}
    for name, number in numbers.items():
        if type(number) is not int or number < 0:
            raise CheckpointError(f"{file}: {name}: expected an integer of at least 0, got {number!r}")
    return document
