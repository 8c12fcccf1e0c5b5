"""Generalised advantage estimation."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def advantages_and_returns(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    dones: Tensor,
    bootstraps: Tensor,
    gamma: float,
    gae_lambda: float,
) -> tuple[Tensor, Tensor]:
    """Advantages by GAE and the returns that a critic is trained on, accumulated in float64.

    Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016. A death does
    not end the episode: the row continues, and later rewards of its team reach the mech's last action.

    Parameters
    ----------
    rewards
        (T, N), of the steps' actions.
    values
        (T, N), of the observations that the actions followed from.
    last_values
        (N,), of the observations after the last step.
    dones
        (T, N) bool, steps that ended an episode.
    bootstraps
        (T, N), values of the final observations of episodes that were truncated; 0 everywhere else.
    gamma
        Discount.
    gae_lambda
        Weight of longer estimates.

    Returns
    -------
    (T, N) advantages and (T, N) returns, their sums with the values, in the values' dtype.
    """
    exact = values.double()
    # selected, not multiplied by 0: a value that is not finite stays in its episode
    next_values = torch.where(dones, bootstraps.double(), torch.cat([exact[1:], last_values.double()[None]]))
    deltas = rewards.double() + gamma * next_values - exact
    result = torch.empty_like(deltas)
    last_gae = torch.zeros_like(deltas[0])
    for step in range(len(deltas) - 1, -1, -1):
        last_gae = deltas[step] + gamma * gae_lambda * last_gae.masked_fill(dones[step], 0.0)
        result[step] = last_gae
    return result.to(values.dtype), (result + exact).to(values.dtype)
