"""The losses of proximal policy optimisation on a minibatch of chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor

from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import Batch
from echelon_train.ppo.normalize import ReturnNormalizer


class Coefficients(NamedTuple):
    """The settings of the losses in one update, named as in `PPOConfig`; schedules have their present values."""

    clip_range: float
    ent_coef: float
    vf_coef: float
    auxiliary_coef: float = 0.0
    clip_range_vf: float | None = None


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
    coefficients: Coefficients,
    num_actor: Tensor,
    num_loss: Tensor,
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
        The units of the critic's predictions; None: returns.
    coefficients
        Settings of the losses; those of values are in the normalizer's units, if there is one.
    num_actor, num_loss
        () float: the samples that enter the policy's and the critic's loss, in all parts of the whole minibatch.
    """
    active = batch.actor_mask.nonzero().flatten()
    states = recurrent_states(batch.states)
    evaluation = policy.evaluate(batch.observations, batch.actions, states, batch.sequences, active)
    values = evaluation.values.flatten()
    log_ratio = evaluation.log_probs - batch.old_log_probs[active]
    ratio = log_ratio.exp()
    advantages = batch.advantages[active]
    low, high = 1.0 - coefficients.clip_range, 1.0 + coefficients.clip_range
    policy_loss = -torch.minimum(advantages * ratio, advantages * ratio.clamp(low, high)).sum() / num_actor
    returns, old_values = batch.returns, batch.old_values
    if normalizer is not None:
        returns, old_values = normalizer.normalize(returns), normalizer.normalize(old_values)
    if coefficients.clip_range_vf is not None:
        limit = coefficients.clip_range_vf
        values = old_values + (values - old_values).clamp(-limit, limit)
    value_loss = torch.where(batch.loss_mask, (returns - values) ** 2, 0.0).sum() / num_loss
    # The entropy of a distribution without a formula is estimated from the actions; that has almost no gradient.
    entropy = (-evaluation.log_probs if evaluation.entropy is None else evaluation.entropy).sum() / num_actor
    auxiliary = values.new_zeros(())
    if coefficients.auxiliary_coef:
        errors = policy.auxiliary_errors(evaluation, batch.actions, batch.observations, batch.sequences)
        auxiliary = errors[active].sum() / num_actor
    total = policy_loss + coefficients.vf_coef * value_loss - coefficients.ent_coef * entropy
    total = total + coefficients.auxiliary_coef * auxiliary
    with torch.no_grad():
        approx_kl = ((ratio - 1.0) - log_ratio).sum() / num_actor
        clip_fraction = ((ratio - 1.0).abs() > coefficients.clip_range).sum() / num_actor
    return Losses(total, policy_loss, value_loss, entropy, auxiliary, approx_kl, clip_fraction)


def recurrent_states(states: tuple[Any, ...]) -> RNNStates:
    """sb3-contrib's type for a recurrent state: the actor's two tensors, and the critic's two if it has an LSTM."""
    actor, critic = states[:2], states[2:]
    return RNNStates(actor, critic or actor)


def state_tensors(states: RNNStates, critic_lstm: bool) -> tuple[Tensor, ...]:
    """The inverse of `recurrent_states`."""
    return (*states.pi, *states.vf) if critic_lstm else tuple(states.pi)
