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
    gamma: float | Tensor,
    gae_lambda: float | Tensor,
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation: advantages and the critic's targets, accumulated in float64.

    Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016. A mech's death
    does not end its episode, so later rewards of its team reach its last action.

    Parameters
    ----------
    rewards
        (T, N): rewards of the steps.
    values
        (T, N): values of the observations before the steps.
    last_values
        (N,): values of the observations after the last step.
    dones
        (T, N) bool: steps that ended an episode.
    bootstraps
        (T, N): values of the final observations of truncated episodes; 0 elsewhere.
    gamma
        Discount factor.
    gae_lambda
        Bias-variance trade-off: 0 is the one-step TD error, 1 the Monte Carlo return minus the value.

    Returns
    -------
    Advantages (T, N) and returns (T, N), which are advantages plus values, in the dtype of `values`.
    """
    exact = values.double()
    # torch.where, not a product: a value that is not finite must not reach another episode
    next_values = torch.where(dones, bootstraps.double(), torch.cat([exact[1:], last_values.double()[None]]))
    deltas = rewards.double() + gamma * next_values - exact
    result = torch.empty_like(deltas)
    last_gae = torch.zeros_like(deltas[0])
    for step in range(len(deltas) - 1, -1, -1):
        last_gae = deltas[step] + gamma * gae_lambda * last_gae.masked_fill(dones[step], 0.0)
        result[step] = last_gae
    return result.to(values.dtype), (result + exact).to(values.dtype)
