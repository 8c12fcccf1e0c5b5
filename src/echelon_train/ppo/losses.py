"""The losses of PPO on a minibatch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor

from echelon_train.policy.encoders import select_rows
from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import Batch
from echelon_train.ppo.normalize import ReturnNormalizer

Scalar = Any
"""A float, or a tensor ()."""


class Coefficients(NamedTuple):
    """Settings of the losses in one update, named as in `PPOConfig`; schedules are evaluated.

    Those that schedules change may be tensors: a function would be recorded again for another float.
    """

    clip_range: Scalar
    ent_coef: Scalar
    vf_coef: float
    policy_coef: float = 1.0
    kickstart_coef: Scalar = 0.0


class Losses(NamedTuple):
    """Means over the samples of a minibatch, () each but the last two. Results of parts of a minibatch add up."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    kickstart: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor
    entropy_blocks: Tensor
    """The entropy by block of the action, (blocks,)."""
    kickstart_blocks: Tensor
    """The loss of labels by block of the action, not scaled, (blocks,); zeros without labels."""

    def packed(self) -> Tensor:
        """All numbers in one detached float32 tensor, (7 + 2 blocks,)."""
        return torch.cat([each.detach().float().reshape(-1) for each in self])

    @classmethod
    def unpacked(cls, numbers: Tensor) -> Losses:
        """The inverse of `packed`."""
        single = len(cls._fields) - 2
        return cls._make((*numbers[:single].unbind(), *numbers[single:].view(2, -1)))


def losses(
    policy: SequencePolicy,
    batch: Batch,
    normalizer: ReturnNormalizer | None,
    coefficients: Coefficients,
    num_actor: Tensor,
    num_all: Tensor,
) -> Losses:
    """The losses of a minibatch, or of a part of it in gradient accumulation and distributed training.

    Schulman et al., "Proximal Policy Optimization Algorithms", 2017. The KL divergence is estimated by (r - 1) - log r,
    see http://joschu.net/blog/kl-approx.html.

    Parameters
    ----------
    policy
        The policy to differentiate.
    batch
        The samples.
    normalizer
        The critic predicts returns normalised by it; None: unnormalised returns.
    coefficients
        Settings of the losses. `vf_coef` is in the normaliser's units, if there is one.
    num_actor, num_all
        () float: numbers of active samples and of all, in all parts of the minibatch.
    """
    # all samples of a dense policy, with those of inactive rows set to 0
    active = None if policy.dense else batch.actor_mask.nonzero().flatten()

    def own(samples: Tensor) -> Tensor:
        return torch.where(batch.actor_mask.unsqueeze(1), samples, 0.0) if active is None else samples

    states = recurrent_states(batch.states)
    kicked = isinstance(coefficients.kickstart_coef, Tensor) or coefficients.kickstart_coef != 0.0
    labels = batch.labels if kicked else None
    evaluation = policy.evaluate(batch.observations, batch.actions, states, batch.sequences, active, labels)
    log_ratio = own(evaluation.log_probs - select_rows(batch.old_log_probs, active)).sum(1, keepdim=True)
    ratio = log_ratio.exp()
    advantages = own(select_rows(batch.advantages, active).unsqueeze(1))
    low, high = 1.0 - coefficients.clip_range, 1.0 + coefficients.clip_range
    policy_loss = -torch.minimum(advantages * ratio, advantages * ratio.clamp(low, high)).sum() / num_actor
    returns = batch.returns if normalizer is None else normalizer.normalize(batch.returns)
    value_loss = ((returns - evaluation.values.flatten()) ** 2).sum() / num_all
    # without a closed form the entropy is estimated by -log_prob, as in SB3; this has almost no gradient
    entropies = own(-evaluation.log_probs if evaluation.entropy is None else evaluation.entropy)
    entropy = entropies.sum() / num_actor
    with torch.no_grad():
        entropy_blocks = entropies.sum(0) / num_actor
    kickstart, kickstart_blocks = entropy.new_zeros(()), torch.zeros_like(entropy_blocks)
    if evaluation.label_losses is not None:
        label_losses = own(evaluation.label_losses)
        kickstart_blocks = label_losses.sum(0) / num_actor
        kickstart = label_losses.sum() / num_actor
    total = coefficients.policy_coef * policy_loss + coefficients.vf_coef * value_loss - coefficients.ent_coef * entropy
    total = total + coefficients.kickstart_coef * kickstart
    with torch.no_grad():
        approx_kl = ((ratio - 1.0) - log_ratio).sum() / num_actor
        clip_fraction = ((ratio - 1.0).abs() > coefficients.clip_range).float().sum() / num_actor
    blocks = entropy_blocks, kickstart_blocks
    return Losses(total, policy_loss, value_loss, entropy, kickstart, approx_kl, clip_fraction, *blocks)


def add_gradients(policy: SequencePolicy, *arguments: Any) -> Tensor:
    """Add the gradient of the `losses` of these arguments to the policy's; returns the losses, packed."""
    result = losses(policy, *arguments)
    result.total.backward()  # type: ignore[no-untyped-call]
    return result.packed()


def recurrent_states(states: tuple[Any, ...]) -> RNNStates:
    """Convert tensors to sb3-contrib's type: the actor's two, and the critic's two if it has an LSTM."""
    actor, critic = states[:2], states[2:]
    return RNNStates(actor, critic or actor)


def state_tensors(states: RNNStates, critic_lstm: bool) -> tuple[Tensor, ...]:
    """The inverse of `recurrent_states`."""
    return (*states.pi, *states.vf) if critic_lstm else tuple(states.pi)
