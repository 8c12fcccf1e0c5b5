"""Observations as tensors: a plain one, or a dict of plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from echelon_train.policy.sequences import Observations


def tensors_of(space: spaces.Space, arrays: object) -> Observations:  # type: ignore[type-arg]
    """Observations as an environment returns them, as tensors of the dtypes that a buffer keeps."""
    if isinstance(space, spaces.Dict):
        assert isinstance(arrays, dict)
        return {name: torch.as_tensor(arrays[name]).to(_dtype(part)) for name, part in space.items()}
    return torch.as_tensor(arrays).to(_dtype(space))


def allocate(space: spaces.Space[Any], lengths: tuple[int, ...], device: torch.device) -> Observations:
    """Zeros (*lengths, ...) for as many observations of a space."""
    if isinstance(space, spaces.Dict):
        return {name: _zeros(part, lengths, device) for name, part in space.items()}
    return _zeros(space, lengths, device)


def tree_map(function: Callable[[Tensor], Tensor], observations: Observations) -> Observations:
    """Apply a function to all tensors of observations."""
    if isinstance(observations, dict):
        return {name: function(part) for name, part in observations.items()}
    return function(observations)


def index(observations: Observations, key: Any) -> Observations:
    """The observations at an index of the first dimensions."""
    return tree_map(lambda part: part[key], observations)


def flat(observations: Observations) -> Observations:
    """Observations (T, N, ...) as (T * N, ...)."""
    return tree_map(lambda part: part.flatten(0, 1), observations)


def to_device(observations: Observations, device: torch.device) -> Observations:
    """Observations that are on the CPU on a device; what follows need not wait for the copy."""
    if device.type != "cuda":
        return observations
    return tree_map(lambda part: part.pin_memory().to(device, non_blocking=True), observations)


def store(kept: Observations, step: int, observations: Observations) -> None:
    """Store the observations (N, ...) of a step in (T, N, ...)."""
    parts = [kept] if isinstance(kept, Tensor) else kept.values()
    given = [observations] if isinstance(observations, Tensor) else observations.values()
    for part, new in zip(parts, given, strict=True):
        part[step] = new


def _zeros(space: spaces.Space, lengths: tuple[int, ...], device: torch.device) -> Tensor:  # type: ignore[type-arg]
    return torch.zeros(*lengths, *(space.shape or ()), dtype=_dtype(space), device=device)


def _dtype(space: spaces.Space) -> torch.dtype:  # type: ignore[type-arg]
    """What observations are kept as: float32 for any real numbers, else what the space says."""
    dtype = np.dtype(space.dtype)
    if np.issubdtype(dtype, np.floating):
        return torch.float32
    return torch.from_numpy(np.zeros(0, dtype)).dtype
