"""Greatest and mean values of sets of rows, with a gradient that costs a third of what autograd makes of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, owner: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        empty = rows.new_zeros(len(count), rows.shape[1])
        greatest = empty.scatter_reduce(0, owner[:, None].expand_as(rows), rows, "amax")
        ctx.save_for_backward(rows, owner, count, greatest)
        return greatest, empty.index_add_(0, owner, rows).div_(count)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_greatest: Tensor, of_mean: Tensor) -> tuple[Tensor, None, None]:
        rows, owner, count, greatest = ctx.saved_tensors
        # 1 where a row has the greatest value, in the rows' dtype: comparisons that give bools take four times as long
        top = greatest.index_select(0, owner).eq_(rows)
        ties = torch.zeros_like(greatest).index_add_(0, owner, top)
        share = (of_greatest / ties.clamp_min_(1.0)).index_select(0, owner)
        return (of_mean / count).index_select(0, owner).addcmul_(top, share), None, None


def max_and_mean(rows: Tensor, owner: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The greatest and the mean value of every entry of the rows of sets; of an empty set they are zero.

    Rows that tie for the greatest value share its gradient evenly. There are no gradients of gradients.

    Parameters
    ----------
    rows
        (n, width), of all sets, none of them negative.
    owner
        (n,) int64: the set that each is of.
    count
        (R, 1) in the rows' dtype: how many rows each set has, but 1 for those that are empty.

    Returns
    -------
    Greatest and mean values, (R, width) each.
    """
    greatest, mean = _Pool.apply(rows, owner, count)  # type: ignore[no-untyped-call]
    return greatest, mean
