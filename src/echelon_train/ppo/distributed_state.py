"""Gathering the training states of all processes of a run, and taking them apart again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from echelon_env.networks.weights import CheckpointError
from echelon_train.ppo import distributed

_OTHERS = "ranks"
"""Key of the values of all processes except the first."""


def gather_state(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of this process, of CPU tensors; in the first process joined with the states of all others.

    Tensors of the others are named ``rank<number>.<name>``; of their values only those are kept that differ from the
    first one's. All processes must call it.
    """
    # as arrays: torch cannot pickle tensors of uint16, uint32 and uint64
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    others = distributed.gather_objects((arrays, dict(values)))[1:]
    joint = dict(tensors)
    for number, (theirs, _) in enumerate(others, 1):
        joint |= {f"rank{number}.{name}": torch.from_numpy(array) for name, array in theirs.items()}
    different = [
        {name: value for name, value in theirs.items() if name not in values or value != values[name]}
        for _, theirs in others
    ]
    return joint, {**values, _OTHERS: different}


def rank_state(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of this process, taken from the result of `gather_state`.

    Raises CheckpointError if the result is malformed or of another number of processes.
    """
    others, rank = values.get(_OTHERS), distributed.rank()
    if not isinstance(others, list) or not all(isinstance(each, dict) for each in others):
        raise CheckpointError(f"training state: {_OTHERS}: expected a list of objects, got {others!r}")
    if len(others) + 1 != distributed.world_size():
        raise CheckpointError(
            f"training state: the run had {len(others) + 1} processes and has {distributed.world_size()} now; "
            "it needs as many as before"
        )
    first = {name: value for name, value in values.items() if name != _OTHERS}
    if rank == 0:
        return {name: tensor for name, tensor in tensors.items() if not name.startswith("rank")}, first
    start = f"rank{rank}."
    own = {name[len(start) :]: each for name, each in tensors.items() if name.startswith(start)}
    return own, {**first, **others[rank - 1]}
