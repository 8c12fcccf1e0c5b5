"""The training states of all processes of a run, gathered in the first process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from echelon_train.errors import CheckpointError
from echelon_train.ppo import distributed

_OTHERS = "ranks"
"""Names the values of the processes after the first one."""


def gather_state(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of this process, of tensors on the CPU, and in the first process those of the others.

    Their tensors are named ``rank<number>.<name>``. All processes call it at the same time.
    """
    # as arrays: torch pickles no tensors of unsigned integers of more than a byte
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    others = distributed.gather_objects((arrays, dict(values)))[1:]
    joint = dict(tensors)
    for number, (theirs, _) in enumerate(others, 1):
        joint |= {f"rank{number}.{name}": torch.from_numpy(array) for name, array in theirs.items()}
    return joint, {**values, _OTHERS: [their_values for _, their_values in others]}


def rank_state(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The part of this process in what `gather_state` returned.

    Raises CheckpointError for the state of another number of processes, and for anything else.
    """
    others, rank = values.get(_OTHERS), distributed.rank()
    if not isinstance(others, list) or not all(isinstance(each, dict) for each in others):
        raise CheckpointError(f"training state: {_OTHERS}: expected a list of objects, got {others!r}")
    if len(others) + 1 != distributed.world_size():
        raise CheckpointError(
            f"training state: the run had {len(others) + 1} processes and has {distributed.world_size()} now; "
            "it needs as many as before"
        )
    if rank == 0:
        own = {name: tensor for name, tensor in tensors.items() if not name.startswith("rank")}
        return own, {name: value for name, value in values.items() if name != _OTHERS}
    start = f"rank{rank}."
    return {name[len(start) :]: each for name, each in tensors.items() if name.startswith(start)}, others[rank - 1]
