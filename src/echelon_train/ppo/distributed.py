"""Communication between the processes of a distributed run; in a single process these functions do nothing.

All processes must call them in the same order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
import torch.distributed
from torch import Tensor

Value = TypeVar("Value")

_TIMEOUT = timedelta(hours=2)


@contextlib.contextmanager
def local_group(rank: int, size: int, store: Path) -> Iterator[None]:
    """Connect `size` processes on this machine within the block.

    The timeout is long because the other processes wait while the first one evaluates, generates maps and writes files.

    Parameters
    ----------
    rank
        The rank of this process.
    size
        Number of processes.
    store
        The file that they connect through; it does not exist yet.
    """
    address = store.absolute().as_uri()
    torch.distributed.init_process_group(
        backend(size), timeout=_TIMEOUT, rank=rank, world_size=size, init_method=address
    )
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def backend(size: int) -> str:
    """The backends that exchange the tensors of `size` processes.

    NCCL exchanges CUDA tensors if each process has its own GPU: it refuses processes that share one. Gloo exchanges all
    other tensors. Of the operations used here, Gloo has broadcast and all-reduce for CUDA tensors, but no all-gather.
    """
    nccl = torch.cuda.is_available() and torch.distributed.is_nccl_available() and size <= torch.cuda.device_count()
    return "cpu:gloo,cuda:nccl" if nccl else "gloo"


def rank() -> int:
    """The rank of this process, 0 in a single process."""
    return torch.distributed.get_rank() if _is_distributed() else 0


def world_size() -> int:
    """The number of processes."""
    return torch.distributed.get_world_size() if _is_distributed() else 1


def all_reduce_sum(tensor: Tensor) -> Tensor:
    """The sum of a tensor of equal shape over all processes; in a single process the tensor itself."""
    if _is_distributed():
        tensor = tensor.clone()
        torch.distributed.all_reduce(tensor)
    return tensor


def all_reduce_gradients(parameters: Iterable[Tensor], numbers: Tensor) -> Tensor:
    """Replace gradients by their sums over all processes, in one all-reduce.

    Parameters
    ----------
    parameters
        The parameters; the same ones must have a gradient in all processes.
    numbers
        (n,) float32, summed in the same all-reduce.

    Returns
    -------
    (n,) float32: the sums of the numbers; in a single process the numbers themselves.
    """
    if not _is_distributed():
        return numbers
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([numbers, *(gradient.flatten() for gradient in gradients)])
    torch.distributed.all_reduce(flat)
    sums = torch.split(flat[len(numbers) :], [gradient.numel() for gradient in gradients])
    for gradient, total in zip(gradients, sums, strict=True):
        gradient.copy_(total.view_as(gradient))
    return flat[: len(numbers)]


def broadcast_tensors(tensors: Iterable[Tensor]) -> None:
    """Copy tensors of the first process into those of all others."""
    if _is_distributed():
        for tensor in tensors:
            torch.distributed.broadcast(tensor.detach(), src=0)


def any_true(flag: bool) -> bool:
    """Whether the flag is True in any process."""
    return bool(all_reduce_sum(torch.tensor(int(flag))) > 0)


def all_reduce_max(number: int) -> int:
    """The largest of the processes' numbers."""
    if not _is_distributed():
        return number
    found = torch.tensor(number)
    torch.distributed.all_reduce(found, torch.distributed.ReduceOp.MAX)
    return int(found)


def broadcast_object(make: Callable[[], Value]) -> Value:
    """Call `make` in the first process only, and return its result, which must be picklable, in all processes."""
    if not _is_distributed():
        return make()
    values = [make() if rank() == 0 else None]
    torch.distributed.broadcast_object_list(values, src=0)
    return values[0]  # type: ignore[return-value]


def gather_objects(value: Value) -> list[Value]:
    """The picklable values of all processes in the first process; an empty list in the others."""
    if not _is_distributed():
        return [value]
    values: list[Value] = [value] * world_size() if rank() == 0 else []
    torch.distributed.gather_object(value, values or None, dst=0)
    return values


def rank_seed(seed: int) -> int:
    """A seed for this process, derived from the run's seed; in the first process the run's seed itself."""
    if rank() == 0:
        return seed
    return int(np.random.SeedSequence((seed, rank())).generate_state(1)[0])


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
