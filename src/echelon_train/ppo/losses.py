"""The losses of PPO on a minibatch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from torch import Tensor

from echelon_train.policy.sequences import SequencePolicy
from echelon_train.ppo.buffer import Batch
from echelon_train.ppo.normalize import ReturnNormalizer


class Coefficients(NamedTuple):
    """Settings of the losses in one update, named as in `PPOConfig`; schedules are evaluated."""

    clip_range: float
    ent_coef: float
    vf_coef: float
    auxiliary_coef: float = 0.0
    clip_range_vf: float | None = None


class Losses(NamedTuple):
    """Means over the samples of a minibatch, () each. Results of parts of a minibatch add up to the whole's."""

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
        Settings of the losses. `clip_range_vf` and `vf_coef` are in the normaliser's units, if there is one.
    num_actor, num_loss
        () float: numbers of samples in the policy's and the critic's loss, over all parts of the minibatch.
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
    # without a closed form the entropy is estimated by -log_prob, as in SB3; this has almost no gradient
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
    """Convert tensors to sb3-contrib's type: the actor's two, and the critic's two if it has an LSTM."""
    actor, critic = states[:2], states[2:]
    return RNNStates(actor, critic or actor)


def state_tensors(states: RNNStates, critic_lstm: bool) -> tuple[Tensor, ...]:
    """The inverse of `recurrent_states`."""
    return (*states.pi, *states.vf) if critic_lstm else tuple(states.pi)
