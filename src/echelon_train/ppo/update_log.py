"""Metrics of an update, computed on the policy's device and read at its end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from echelon_train.ppo.buffer import ChunkBuffer
from echelon_train.ppo.losses import Coefficients

_NAMES = (
    "loss", "policy_gradient_loss", "value_loss", "entropy", "kickstart_loss", "approx_kl", "clip_fraction",
)  # fmt: skip
"""stable-baselines3's names of the single numbers of `Losses`."""


class UpdateLog:
    """The results of an update.

    Parameters
    ----------
    blocks
        Names of the blocks of an action.
    rollout
        The metrics of the rollout, as `rollout_metrics` gives them.
    coefficients
        The settings of the losses.
    """

    def __init__(self, blocks: Sequence[str], rollout: dict[str, Tensor], coefficients: Coefficients) -> None:
        self._blocks, self._rollout, self._coefficients = blocks, rollout, coefficients
        self.epochs = 0
        """Passes over the rollout that have begun."""
        self.minibatches: list[Tensor] = []
        """The chunks of each minibatch."""
        self._rows: list[Tensor] = []

    def add(self, chunks: Tensor, row: Tensor) -> None:
        """Record a minibatch and its losses and gradient norm (8 + 2 blocks,), without waiting for the device."""
        self.minibatches.append(chunks)
        self._rows.append(row)

    def finite(self) -> list[bool]:
        """Whether each minibatch's loss and gradient were finite. It waits for the device, once."""
        rows = torch.stack(self._rows).cpu()
        self._rows = [*rows.unbind()]
        return (rows[:, 0].isfinite() & rows[:, -1].isfinite()).tolist()

    def metrics(self) -> dict[str, float]:
        """The rollout's metrics, means over the finite minibatches by name, and the number of these.

        ``kickstart_loss_<block>`` is there for the blocks with a label: a loss of exactly 0 is one without.
        """
        metrics = dict(zip(self._rollout, torch.stack([*self._rollout.values()]).tolist(), strict=True))
        metrics |= {"clip_range": self._coefficients.clip_range, "ent_coef": self._coefficients.ent_coef}
        rows = [row for row, finite in zip(self._rows, self.finite(), strict=True) if finite]
        if not rows:
            return metrics
        *numbers, norm = torch.stack(rows).mean(0).tolist()
        blocks = len(self._blocks)
        by_block = zip(self._blocks, numbers[-2 * blocks : -blocks], numbers[-blocks:], strict=True)
        metrics |= dict(zip(_NAMES, numbers, strict=False)) | {"grad_norm": norm, "minibatches": float(len(rows))}
        for block, entropy, kickstart in by_block:
            metrics |= {f"entropy_{block}": entropy} if blocks > 1 else {}
            metrics |= {f"kickstart_loss_{block}": kickstart} if kickstart else {}
        return {**metrics, "entropy_loss": -metrics["entropy"]}


def explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """Share of the returns' variance explained by values of the same shape, (); NaN if the returns have no variance."""
    variance = returns.var()
    return torch.where(variance > 0, 1.0 - (returns - values).var() / variance, torch.nan)


def rollout_metrics(buffer: ChunkBuffer) -> dict[str, Tensor]:
    """The explained variance, the share of active samples and standard deviations over these, () each on the device."""
    mask = buffer.actor_mask
    count = mask.sum().clamp_min(1)
    metrics = {"explained_variance": explained_variance(buffer.values, buffer.returns).double()}
    for name, tensor in (("advantage", buffer.advantages), ("value", buffer.values), ("reward", buffer.rewards)):
        exact = tensor.double()
        mean = torch.where(mask, exact, 0.0).sum() / count
        metrics[f"{name}_std"] = (torch.where(mask, exact - mean, 0.0).square().sum() / count).sqrt()
    return metrics | {"active_share": mask.double().mean()}
