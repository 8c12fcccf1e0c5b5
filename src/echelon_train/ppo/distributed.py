"""Exchange between the processes of a distributed run; one process alone has nothing to exchange.

All processes call these functions in the same order.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

import numpy as np
import torch
import torch.distributed
from torch import Tensor

Value = TypeVar("Value")

_PATIENCE = timedelta(hours=2)


class RunningStats(Protocol):
    """Running moments that processes can merge, as `ObservationNormalizer` has."""

    running: Tensor

    def moments(self) -> Tensor:
        """The moments so far."""

    def merge(self, moments: Tensor) -> None:
        """Add the moments of another process."""


@contextlib.contextmanager
def process_group() -> Iterator[None]:
    """Let the processes that torchrun has started train together in the block; without torchrun it does nothing.

    Tensors on the CPU are exchanged by Gloo, those on CUDA by NCCL. The processes wait for each other for as long as
    `_PATIENCE`, because the first one evaluates, makes maps and writes alone.
    """
    if not torch.distributed.is_torchelastic_launched():
        yield
        return
    cuda = torch.cuda.is_available() and torch.distributed.is_nccl_available()
    if cuda and local_rank() < torch.cuda.device_count():
        torch.cuda.set_device(local_rank())
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=_PATIENCE)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def local_rank() -> int:
    """The number of this process among those on its machine."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def rank() -> int:
    """The number of this process."""
    return torch.distributed.get_rank() if _is_distributed() else 0


def world_size() -> int:
    """How many processes train together."""
    return torch.distributed.get_world_size() if _is_distributed() else 1


def all_reduce_sum(tensor: Tensor) -> Tensor:
    """The sum of a tensor over all processes, which all call this with the same shape; it may be the tensor itself."""
    if _is_distributed():
        tensor = tensor.clone()
        torch.distributed.all_reduce(tensor)
    return tensor


def all_reduce_gradients(parameters: Iterable[Tensor], further: Sequence[Tensor]) -> Tensor:
    """Replace gradients by their sums over all processes, in one exchange.

    Parameters
    ----------
    parameters
        Whose gradients; those without one take no part, and must be the same everywhere.
    further
        Numbers () that are summed in the same exchange.

    Returns
    -------
    (len(further),) float32: their sums.
    """
    numbers = torch.stack([number.detach().float() for number in further])
    if not _is_distributed():
        return numbers
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([numbers, *(gradient.flatten() for gradient in gradients)])
    torch.distributed.all_reduce(flat)
    sums = torch.split(flat[len(further) :], [gradient.numel() for gradient in gradients])
    for gradient, total in zip(gradients, sums, strict=True):
        gradient.copy_(total.view_as(gradient))
    return flat[: len(further)]


def broadcast_tensors(tensors: Iterable[Tensor]) -> None:
    """Give all processes the first one's values of tensors, in place."""
    if _is_distributed():
        for tensor in tensors:
            torch.distributed.broadcast(tensor.detach(), src=0)


def any_true(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    return bool(all_reduce_sum(torch.tensor(int(flag))) > 0)


def broadcast_object(make: Callable[[], Value]) -> Value:
    """What a function returns in the first process, which alone calls it; something that can be pickled."""
    if not _is_distributed():
        return make()
    values = [make() if rank() == 0 else None]
    torch.distributed.broadcast_object_list(values, src=0)
    return values[0]  # type: ignore[return-value]


def gather_objects(value: Value) -> list[Value]:
    """The values of all processes, which can be pickled, in the first one; nothing in the others."""
    if not _is_distributed():
        return [value]
    values: list[Value] = [value] * world_size() if rank() == 0 else []
    torch.distributed.gather_object(value, values or None, dst=0)
    return values


def rank_seed(seed: int) -> int:
    """A seed of this process's own that follows from the run's; in the first process it is the run's."""
    if rank() == 0:
        return seed
    return int(np.random.SeedSequence((seed, rank())).generate_state(1)[0])


@contextlib.contextmanager
def sync_running_stats(stats: Sequence[RunningStats]) -> Iterator[None]:
    """Merge the updates that each process makes to running statistics in the block into those of all processes."""
    if not _is_distributed():
        yield
        return
    before = [each.moments() for each in stats]
    for each in stats:
        each.running.zero_()
    yield
    for each, kept in zip(stats, before, strict=True):
        own = each.moments()
        parts = [torch.empty_like(own) for _ in range(world_size())]
        torch.distributed.all_gather(parts, own)
        each.running.copy_(kept)
        for part in parts:
            each.merge(part)


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
