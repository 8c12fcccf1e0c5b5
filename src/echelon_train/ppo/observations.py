"""Operations on observations, which are a tensor or a dict of tensors.

Rows in succession may have one global state, as the mechs of a team do. It is kept once for them: the entry ``state``
then has fewer rows, and the entry ``team`` (rows,) has the number of each row's state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from echelon_train.policy.sequences import STATE, TEAM, Observations


def tensors_of(space: spaces.Space, arrays: object) -> Observations:  # type: ignore[type-arg]
    """Convert an environment's observations to tensors with the dtypes of the rollout buffer."""
    if isinstance(space, spaces.Dict):
        assert isinstance(arrays, dict)
        return {name: torch.as_tensor(arrays[name]).to(_dtype(part)) for name, part in space.items()}
    return torch.as_tensor(arrays).to(_dtype(space))


def allocate(
    space: spaces.Space[Any], steps: int, rows: int, device: torch.device, state_rows: int = 1
) -> Observations:
    """Allocate zeros (steps, rows, ...) for observations of a space, one state for `state_rows` rows."""
    if isinstance(space, spaces.Dict):
        return {
            name: _zeros(part, (steps, rows // state_rows if name == STATE else rows), device)
            for name, part in space.items()
        }
    return _zeros(space, (steps, rows), device)


def share_states(observations: Observations, state_rows: int) -> Observations:
    """Keep the state of the first of `state_rows` rows in succession, which all of them have; without ``team``."""
    if state_rows == 1:
        return observations
    assert isinstance(observations, dict)
    return {**observations, STATE: observations[STATE][::state_rows]}


def with_teams(observations: Observations, teams: Tensor | None) -> Observations:
    """Add the numbers of the rows' states, (rows,) int64; None: every row has its own."""
    if teams is None:
        return observations
    assert isinstance(observations, dict)
    return {**observations, TEAM: teams}


def tree_map(function: Callable[[Tensor], Tensor], observations: Observations) -> Observations:
    """Apply a function to all tensors of observations."""
    if isinstance(observations, dict):
        return {name: function(part) for name, part in observations.items()}
    return function(observations)


def flat(observations: Observations) -> Observations:
    """Reshape observations (T, N, ...) to (T * N, ...), every entry with its own N."""
    return tree_map(lambda part: part.flatten(0, 1), observations)


class Staging:
    """Copies observations from the CPU to a device; to CUDA asynchronously, from page-locked memory or through such.

    Parameters
    ----------
    device
        The device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pinned: dict[str, Tensor] = {}
        self._copied: torch.cuda.Event | None = None

    def to_device(self, observations: Observations) -> Observations:
        """The observations on the device: on the CPU the same tensors, else new ones."""
        if self._device.type == "cpu":
            return observations
        if self._copied is not None:
            self._copied.synchronize()  # the last copy has read the pinned memory
        if isinstance(observations, dict):
            found: Observations = {name: self._copy(name, part) for name, part in observations.items()}
        else:
            found = self._copy("", observations)
        if self._device.type == "cuda":
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record(torch.cuda.current_stream(self._device))
        return found

    def _copy(self, name: str, part: Tensor) -> Tensor:
        if self._device.type == "cuda" and part.is_pinned():
            return part.to(self._device, non_blocking=True)
        pinned = self._pinned.get(name)
        if pinned is None or pinned.shape != part.shape or pinned.dtype != part.dtype:
            pinned = self._pinned[name] = torch.empty_like(part, pin_memory=self._device.type == "cuda")
        return pinned.copy_(part).to(self._device, non_blocking=True)


def page_locked(shape: tuple[int, int]) -> NDArray[np.float32]:
    """Zeros in page-locked memory, or in ordinary one if none can be locked: without CUDA, or if too much is."""
    try:
        return torch.zeros(shape, pin_memory=True).numpy()
    except RuntimeError:
        return np.zeros(shape, np.float32)


def put(buffer: Tensor, step: int | Tensor, value: Tensor) -> None:
    """Set an entry of a buffer (T, ...); a step that is a tensor (), on the device, may be recorded."""
    if isinstance(step, Tensor):
        buffer.index_copy_(0, step.view(1), value.unsqueeze(0))
    else:
        buffer[step] = value  # takes half of the time on the CPU


def store(buffer: Observations, step: int | Tensor, observations: Observations) -> None:
    """Store the observations of a step in a buffer (T, ...); further entries than the buffer's are left out."""
    if isinstance(buffer, Tensor):
        assert isinstance(observations, Tensor)
        put(buffer, step, observations)
        return
    assert isinstance(observations, dict)
    for name, part in buffer.items():
        put(part, step, observations[name])


def _zeros(space: spaces.Space, lengths: tuple[int, ...], device: torch.device) -> Tensor:  # type: ignore[type-arg]
    return torch.zeros(*lengths, *(space.shape or ()), dtype=_dtype(space), device=device)


def _dtype(space: spaces.Space) -> torch.dtype:  # type: ignore[type-arg]
    """The dtype in the rollout buffer: float32 for all floating dtypes, else the space's."""
    dtype = np.dtype(space.dtype)
    if np.issubdtype(dtype, np.floating):
        return torch.float32
    return torch.from_numpy(np.zeros(0, dtype)).dtype
