"""The losses of proximal policy optimisation on a minibatch of chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor

from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import Batch
from echelon_train.ppo.normalize import ReturnNormalizer


@dataclass(frozen=True)
class Weights:
    """Of the losses, and where they are clipped, in one update."""

    clip_range: float
    entropy: float
    value: float
    auxiliary: float = 0.0
    value_clip_range: float | None = None


class Losses(NamedTuple):
    """Sums over a minibatch's samples divided by how many enter them, () each; parts of a minibatch add up."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    auxiliary: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def losses(
    policy: SequencePolicy,
    batch: Batch,
    normalizer: ReturnNormalizer | None,
    weights: Weights,
    acting: Tensor,
    counted: Tensor,
) -> Losses:
    """The losses of a minibatch, or of its share in a larger one.

    Schulman et al., "Proximal Policy Optimization Algorithms", 2017; the estimate of the KL divergence is
    (r - 1) - log r of http://joschu.net/blog/kl-approx.html.

    Parameters
    ----------
    policy
        Its actor, critic and distribution are differentiated.
    batch
        The samples.
    normalizer
        What the critic's predictions are in terms of, if not returns themselves.
    weights
        Of the losses; what they say of values is in the normalizer's terms, if there is one.
    acting, counted
        () float: the samples that enter the policy's and the critic's loss, in all parts of the whole minibatch.
    """
    chosen = batch.acting.nonzero().flatten()
    judged = policy.evaluate(batch.observations, batch.actions, recurrent_states(batch.states), batch.sequences, chosen)
    values = judged.values.flatten()
    log_ratio = judged.log_probs - batch.old_log_probs[chosen]
    ratio = log_ratio.exp()
    advantages = batch.advantages[chosen]
    low, high = 1.0 - weights.clip_range, 1.0 + weights.clip_range
    policy_loss = -torch.minimum(advantages * ratio, advantages * ratio.clamp(low, high)).sum() / acting
    returns, old_values = batch.returns, batch.old_values
    if normalizer is not None:
        returns, old_values = normalizer.normalize(returns), normalizer.normalize(old_values)
    if weights.value_clip_range is not None:
        values = old_values + (values - old_values).clamp(-weights.value_clip_range, weights.value_clip_range)
    value_loss = torch.where(batch.counted, (returns - values) ** 2, 0.0).sum() / counted
    # Without an entropy of its own, a distribution's is estimated from the actions; that has no gradient to speak of.
    entropy = (-judged.log_probs if judged.entropy is None else judged.entropy).sum() / acting
    auxiliary = values.new_zeros(())
    if weights.auxiliary:
        errors = policy.auxiliary_errors(judged, batch.actions, batch.observations, batch.sequences)
        auxiliary = errors[chosen].sum() / acting
    total = policy_loss + weights.value * value_loss - weights.entropy * entropy + weights.auxiliary * auxiliary
    with torch.no_grad():
        approx_kl = ((ratio - 1.0) - log_ratio).sum() / acting
        clip_fraction = ((ratio - 1.0).abs() > weights.clip_range).sum() / acting
    return Losses(total, policy_loss, value_loss, entropy, auxiliary, approx_kl, clip_fraction)


def recurrent_states(states: tuple[Any, ...]) -> RNNStates:
    """sb3-contrib's form of a recurrent state's tensors: the actor's two, and the critic's two if it has its own."""
    actor, critic = states[:2], states[2:]
    return RNNStates(actor, critic or actor)


def state_tensors(states: RNNStates, critic_lstm: bool) -> tuple[Tensor, ...]:
    """The inverse of `recurrent_states`."""
    return (*states.pi, *states.vf) if critic_lstm else tuple(states.pi)
