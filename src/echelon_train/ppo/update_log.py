"""Metrics of an update."""

from __future__ import annotations

import torch
from torch import Tensor

from echelon_train.ppo.losses import Losses

_NAMES = (
    "loss", "policy_gradient_loss", "value_loss", "entropy", "auxiliary_loss", "kickstart_loss", "approx_kl",
    "clip_fraction",
)  # fmt: skip
"""stable-baselines3's names of the fields of `Losses`."""


class UpdateLog:
    """Losses and gradient norms of the minibatches of an update."""

    def __init__(self) -> None:
        self._rows: list[Tensor] = []

    def add(self, result: Losses, gradient_norm: Tensor) -> None:
        """Record a minibatch, without synchronising with the device."""
        self._rows.append(torch.stack([*result, gradient_norm.float()]))

    def means(self) -> dict[str, float]:
        """Means over the minibatches by name, and the number of minibatches; empty if there were none."""
        if not self._rows:
            return {}
        means = dict(zip((*_NAMES, "grad_norm"), torch.stack(self._rows).mean(0).tolist(), strict=True))
        return {**means, "entropy_loss": -means["entropy"], "minibatches": float(len(self._rows))}


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """Share of the returns' variance explained by values of the same shape; NaN if the returns have no variance."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance else float("nan")
