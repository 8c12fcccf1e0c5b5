"""Models as files that run no code when they are read, behind stable-baselines3's `save` and `load`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

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
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import NetworkConfig
from echelon_train.errors import CheckpointError
from echelon_train.policy import BattlePolicy
from echelon_train.ppo.training_state import check_optimizer, optimizer_tensors, restore_optimizer
from echelon_train.tensor_files import check_finite, check_shapes, parse_tensors, read_file, weights_of

FORMAT, VERSION = "echelon-model", 1
SUFFIX = ".safetensors"
MAX_BYTES = 1 << 32

_KEYS = {"format", "version", "policy", "arguments", "again", "observations", "actions", "rows", "counters"}
_COUNTERS = ("num_timesteps", "_n_updates")
_ARGUMENTS = (
    "learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range", "clip_range_vf",
    "normalize_advantage", "ent_coef", "vf_coef", "max_grad_norm", "target_kl", "stats_window_size", "tensorboard_log",
    "policy_kwargs", "verbose", "seed", "chunk", "burn_in", "accumulate", "return_std", "recompute_advantages",
    "auxiliary_coef", "critic_lr_scale", "deterministic",
)  # fmt: skip
_ATTRIBUTES = {"stats_window_size": "_stats_window_size"}  # where they are kept, if not under their name
_SCHEDULE, _NETWORK = "schedule:", "network:"


class PlainSaving(RecurrentPPO):  # type: ignore[misc]
    """The part of `EchelonRecurrentPPO` that is saved and loaded: a safetensors file with a description in its header.

    stable-baselines3's own files hold pickles, which run any code when they are loaded.
    """

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
            For a `path` that is none, and for anything to exclude or include.
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
        """Make the model anew that `save` wrote; training begins with a reset of the environment.

        Parameters
        ----------
        path
            The file, with or without its ending.
        env
            The environment; None if the model shall only predict.
        device
            Where it shall run.
        kwargs
            Arguments of the constructor that shall be others than before. Those that files cannot hold must be given:
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
        document = _read_document(data, file)
        missing = [name for name in document["again"] if name not in kwargs]
        if missing:
            raise CheckpointError(f"{file}: cannot hold {', '.join(missing)}: give {missing[0]}=... to load")
        try:
            observations, actions = _space(document["observations"]), _space(document["actions"])
            arguments = {name: _value(value) for name, value in document["arguments"].items()} | kwargs
            policy = arguments.pop("policy", None) or _known_policies(cls)[document["policy"]]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{file}: the description cannot be used: {error!r}") from error
        model = cls._like(file, policy, env, device, arguments, (observations, actions, document["rows"]), tensors)
        for name in _COUNTERS:
            setattr(model, name, document["counters"][name])
        return model

    @classmethod
    def _like(
        cls,
        file: Path,
        policy: Any,
        env: Any,
        device: torch.device | str,
        arguments: dict[str, Any],
        surroundings: tuple[spaces.Space[Any], spaces.Space[Any], int],
        tensors: Mapping[str, torch.Tensor],
    ) -> Self:
        """A model with a file's weights and its optimizer's state, checked."""
        observations, actions, rows = surroundings
        weights = {name[7:]: tensor for name, tensor in tensors.items() if name.startswith("policy.")}
        optimizer = {name[10:]: tensor for name, tensor in tensors.items() if name.startswith("optimizer.")}
        check_finite(weights)
        try:
            model = cls(policy, env, device=device, _init_setup_model=False, **arguments)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{file}: {error}") from error
        if model.env is None:
            model.observation_space, model.action_space, model.n_envs = observations, actions, rows
        else:
            check_for_correct_spaces(model.env, observations, actions)
        try:
            model._setup_model()
        except (TypeError, ValueError, RuntimeError, MemoryError) as error:
            raise CheckpointError(f"{file}: {error}") from error
        check_shapes(model.policy, weights, file)
        check_optimizer(model.policy, optimizer)
        for name, tensor in weights_of(model.policy).items():
            tensor.copy_(weights[name])
        restore_optimizer(model.policy, optimizer)
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


def _known_policies(cls: type[PlainSaving]) -> dict[str, type[Any]]:
    return {**cls.policy_aliases, "BattlePolicy": BattlePolicy}


def _described(model: PlainSaving) -> dict[str, Any]:
    """The model but for its tensors, fit for JSON."""
    arguments, again = {}, []
    for name in _ARGUMENTS:
        try:
            arguments[name] = _plain(getattr(model, _ATTRIBUTES.get(name, name)))
        except TypeError:
            again.append(name)
    known = {policy: name for name, policy in _known_policies(type(model)).items()}
    policy = known.get(model.policy_class)
    return {
        "format": FORMAT,
        "version": VERSION,
        "policy": policy,
        "arguments": arguments,
        "again": again if policy else ["policy", *again],
        "observations": _plain_space(model.observation_space),
        "actions": _plain_space(model.action_space),
        "rows": model.n_envs,
        "counters": {name: getattr(model, name) for name in _COUNTERS},
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it. Raises TypeError for what is no plain data, such as functions and classes."""
    while isinstance(value, FloatSchedule):
        value = value.value_schedule
    if isinstance(value, ConstantSchedule):
        return float(value.val)
    if isinstance(value, Schedule):
        return {_SCHEDULE: str(value)}
    if isinstance(value, NetworkConfig):
        return {_NETWORK: to_plain(value)}
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"no plain data: {value!r}")


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
    if not isinstance(document, dict) or document.keys() != _KEYS or document["version"] != VERSION:
        raise CheckpointError(f"{file}: expected the description of a model, version {VERSION}")
    arguments, again, counters = document["arguments"], document["again"], document["counters"]
    if not isinstance(arguments, dict) or not isinstance(again, list) or not isinstance(counters, dict):
        raise CheckpointError(f"{file}: expected arguments, a list of others, and counters")
    names = {*arguments, *map(str, again)} - {"policy"}
    if names != set(_ARGUMENTS):
        raise CheckpointError(f"{file}: arguments that are missing or unknown: {sorted(names ^ set(_ARGUMENTS))}")
    numbers = {"rows": document["rows"], **{name: counters.get(name) for name in _COUNTERS}}
    for name, number in numbers.items():
        if type(number) is not int or number < 0:
            raise CheckpointError(f"{file}: {name}: expected an integer of at least 0, got {number!r}")
    return document
