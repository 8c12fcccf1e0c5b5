"""Metrics of an update."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import ChunkBuffer
from echelon_train.ppo.losses import Losses, recurrent_states

DIAGNOSTIC_SAMPLES = 256
"""Samples on which the policy's diagnostics are computed; they cost an additional forward pass."""

_NAMES = (
    "loss", "policy_gradient_loss", "value_loss", "entropy", "kickstart_loss", "approx_kl", "clip_fraction",
)  # fmt: skip
"""stable-baselines3's names of the single numbers of `Losses`."""


class UpdateLog:
    """Losses and gradient norms of the minibatches of an update.

    Parameters
    ----------
    blocks
        Names of the blocks of an action.
    """

    def __init__(self, blocks: Sequence[str] = ()) -> None:
        self._blocks = blocks
        self._rows: list[Tensor] = []

    def add(self, result: Losses, gradient_norm: Tensor) -> None:
        """Record a minibatch, without synchronising with the device."""
        self._rows.append(torch.cat([result.packed(), gradient_norm.float().view(1)]))

    def means(self) -> dict[str, float]:
        """Means over the minibatches by name, and the number of minibatches; empty if there were none.

        ``kickstart_loss_<block>`` is there for the blocks with a label: a loss of exactly 0 is one without.
        """
        if not self._rows:
            return {}
        *numbers, norm = torch.stack(self._rows).mean(0).tolist()
        means = dict(zip(_NAMES, numbers, strict=False)) | {"grad_norm": norm}
        by_block = zip(self._blocks, numbers[len(_NAMES) :], strict=False)  # none without labels
        means |= {f"kickstart_loss_{block}": number for block, number in by_block if number}
        return {**means, "entropy_loss": -means["entropy"], "minibatches": float(len(self._rows))}


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """Share of the returns' variance explained by values of the same shape; NaN if the returns have no variance."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance else float("nan")


def rollout_metrics(buffer: ChunkBuffer, policy: SequencePolicy) -> dict[str, float]:
    """Standard deviations over a rollout's active samples, their share, and the policy's `diagnostics`."""
    numbers = {}
    for name, tensor in (("advantage", buffer.advantages), ("value", buffer.values), ("reward", buffer.rewards)):
        active = tensor[buffer.actor_mask]
        numbers[f"{name}_std"] = float(active.std(correction=0)) if len(active) else 0.0
    numbers["active_share"] = float(buffer.actor_mask.float().mean())
    return numbers | diagnostics(buffer, policy)


@torch.no_grad()
def diagnostics(buffer: ChunkBuffer, policy: SequencePolicy) -> dict[str, float]:
    """The policy's diagnostics on about `DIAGNOSTIC_SAMPLES` samples, evenly spaced in the rollout."""
    count = min(max(1, DIAGNOSTIC_SAMPLES // buffer.chunk), buffer.num_chunks)
    chunks = torch.linspace(0, buffer.num_chunks - 1, count).long()
    batch = buffer.batch(chunks, buffer.advantages)
    return policy.diagnostics(batch.observations, recurrent_states(batch.states), batch.sequences)
