"""The complete training state, as tensors and values, from which a run resumes exactly.

It is saved between two iterations. Besides the weights, an update or a rollout depends on the optimizer, the recurrent
states, the last observations, all random number generators, the environment, and the teacher if there is one. The
environment must have `state_arrays` and `restore_arrays` for all rows at once, as `BattleVecEnv` has.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from echelon_env.config.schema import measure
from echelon_env.networks.weights import CheckpointError
from echelon_train.ppo.algorithm import EchelonRecurrentPPO
from echelon_train.ppo.losses import recurrent_states
from echelon_train.ppo.optimizer_state import check_optimizer, optimizer_tensors, restore_optimizer
from echelon_train.tensor_files import part_of


@dataclass(frozen=True)
class ModelState:
    """The values of a model's training state."""

    num_timesteps: int
    updates: int
    episodes: int
    skipped_minibatches: int
    skipped_in_a_row: int
    last_episodes: tuple[dict[str, int | float], ...] = field(metadata={"low": -math.inf})
    """SB3's `ep_info_buffer`."""
    last_successes: tuple[bool | int | float, ...]
    """SB3's `ep_success_buffer`."""
    numpy_position: int = measure("", 0, 624)  # of the words of a Mersenne Twister: NumPy would read out of bounds
    numpy_has_gauss: int = measure("", 0, 1)
    numpy_gauss: float = measure("", -math.inf, math.inf)
    python_gauss: float | None = measure("", -math.inf, math.inf)


_COUNTERS = {
    "num_timesteps": "num_timesteps",
    "updates": "_n_updates",
    "episodes": "_episode_num",
    "skipped_minibatches": "skipped_minibatches",
    "skipped_in_a_row": "skipped_in_a_row",
}
"""Counters of a `ModelState` -> the model's attributes."""


def training_state(model: EchelonRecurrentPPO) -> tuple[dict[str, Tensor], ModelState]:
    """The model's training state except its weights: CPU tensors, and values.

    Raises CheckpointError, with the reason, if the environment or the teacher cannot save its state.
    """
    tensors = {f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(model.policy).items()}
    tensors |= _own_tensors(model)
    for prefix, (what, part) in _parts(model).items():
        try:
            arrays = part.state_arrays()
        except ValueError as error:
            raise CheckpointError(f"{what} cannot save its state: {error}") from error
        tensors |= {f"{prefix}{name}": torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    numpy_state: Any = np.random.get_state(legacy=True)  # noqa: NPY002
    state = ModelState(
        **{name: getattr(model, attribute) for name, attribute in _COUNTERS.items()},
        last_episodes=tuple(model.ep_info_buffer or ()),
        last_successes=tuple(model.ep_success_buffer or ()),
        numpy_position=int(numpy_state[2]),
        numpy_has_gauss=int(numpy_state[3]),
        numpy_gauss=float(numpy_state[4]),
        python_gauss=random.getstate()[2],
    )
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, state


def restore_training_state(model: EchelonRecurrentPPO, tensors: Mapping[str, Tensor], state: ModelState) -> None:
    """Restore a `training_state` into a model that was created with the same arguments.

    Raises CheckpointError if it does not fit the model. The model is then unusable.
    """
    parts = _parts(model)
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith(("optimizer.", *parts))}
    if model._last_obs is None:
        model._last_obs = model.env.reset()
        model._last_episode_starts = np.ones(model.n_envs, np.bool_)
    _check_tensors(own, _own_tensors(model))
    optimizer = part_of(tensors, "optimizer.")
    check_optimizer(model.policy, optimizer)
    for prefix, (what, part) in parts.items():
        try:
            part.restore_arrays({name: tensor.numpy() for name, tensor in part_of(tensors, prefix).items()})
        except ValueError as error:
            raise CheckpointError(f"{what} cannot restore its state: {error}") from error
    restore_optimizer(model.policy, optimizer)
    count = len(model.collector.state_tensors())
    model.collector.states = recurrent_states(
        tuple(own[f"lstm.{number}"].to(model.device, copy=True) for number in range(count))
    )
    last = {name: tensor.numpy().copy() for name, tensor in part_of(own, "last.").items()}
    model._last_obs = last if isinstance(model._last_obs, dict) else last["observation"]
    model._last_episode_starts = own["episode_starts"].numpy().astype(np.bool_)
    for name, attribute in _COUNTERS.items():
        setattr(model, attribute, getattr(state, name))
    model.ep_info_buffer = deque(state.last_episodes, maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state.last_successes, maxlen=model._stats_window_size)
    try:
        _restore_random(model.device, own, state)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"training state: random number generators: {error}") from error


def _parts(model: EchelonRecurrentPPO) -> dict[str, tuple[str, Any]]:
    """The parts of a model that have state arrays, with what messages call them, by the prefix of the arrays' names."""
    parts: dict[str, tuple[str, Any]] = {"env.": ("the environment", _stateful(model.env))}
    if model.teacher is not None:
        parts["teacher."] = ("the teacher", model.teacher)
    return parts


def _stateful(env: Any) -> Any:
    """The environment, if its class defines `state_arrays` and `restore_arrays`. Raises CheckpointError otherwise.

    Methods that are forwarded to a wrapped environment or to single rows would leave out the wrapper's own state.
    """
    if not all(hasattr(type(env), name) for name in ("state_arrays", "restore_arrays")):
        raise CheckpointError(
            f"the environment cannot save its state: {type(env).__name__} does not define state_arrays and "
            "restore_arrays for all rows"
        )
    return env


def _restore_random(device: torch.device, tensors: Mapping[str, Tensor], state: ModelState) -> None:
    words = tensors["random.numpy"].numpy().view(np.uint32)
    numpy_state = "MT19937", words, state.numpy_position, state.numpy_has_gauss, state.numpy_gauss
    np.random.set_state(numpy_state)  # noqa: NPY002
    random.setstate((3, tuple(tensors["random.python"].tolist()), state.python_gauss))
    torch.set_rng_state(tensors["random.torch"])
    if device.type == "cuda" and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"], device)


def _random_tensors(device: torch.device) -> dict[str, Tensor]:
    numpy_state: Any = np.random.get_state(legacy=True)  # noqa: NPY002
    streams = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(numpy_state[1], np.uint32).view(np.int32).copy()),
        "python": torch.tensor(random.getstate()[1], dtype=torch.int64),
    }
    if device.type == "cuda":
        streams["cuda"] = torch.cuda.get_rng_state(device)
    return streams


def _own_tensors(model: EchelonRecurrentPPO) -> dict[str, Tensor]:
    """The tensors of the state, except the optimizer's and those of its parts."""
    tensors = {f"lstm.{number}": state for number, state in enumerate(model.collector.state_tensors())}
    last = model._last_obs if isinstance(model._last_obs, dict) else {"observation": model._last_obs}
    tensors |= {f"last.{name}": torch.tensor(array) for name, array in last.items()}
    tensors["episode_starts"] = torch.as_tensor(np.asarray(model._last_episode_starts, np.uint8))
    return tensors | {f"random.{name}": stream for name, stream in _random_tensors(model.device).items()}


def _check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise CheckpointError unless the tensors have the names, shapes and dtypes of others, and finite numbers.

    A GPU's random numbers may be there, or not.
    """
    if names := {name for name in found.keys() ^ expected.keys() if name != "random.cuda"}:
        raise CheckpointError(f"training state: missing or unknown tensors: {', '.join(sorted(names)[:4])}")
    for name, tensor in found.items():
        like = expected.get(name, tensor)
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            raise CheckpointError(
                f"training state: {name!r}: expected {tuple(like.shape)} {like.dtype}, "
                f"got {tuple(tensor.shape)} {tensor.dtype}"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"training state: {name!r} holds values that are not finite")
