import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_train.ppo.gae import advantages_and_returns

GAMMA, LAMBDA = 0.5, 0.5


def advantages_of_one_row(rewards, values, last_value, ends=(), bootstraps=None, gamma=GAMMA, gae_lambda=LAMBDA):
    """Advantages of a single row from lists; `bootstraps` maps steps to values."""
    column = torch.tensor([rewards], dtype=torch.float32).T
    over = torch.zeros_like(column, dtype=torch.bool)
    over[list(ends)] = True
    final = torch.zeros_like(column)
    for step, value in (bootstraps or {}).items():
        final[step] = value
    advantages, returns = advantages_and_returns(
        column,
        torch.tensor([values], dtype=torch.float32).T,
        torch.tensor([float(last_value)]),
        over,
        final,
        gamma,
        gae_lambda,
    )
    expected = advantages + torch.tensor([values], dtype=torch.float32).T
    torch.testing.assert_close(returns, expected, equal_nan=True)
    return advantages.flatten().tolist()


def test_nan_stays_within_its_episode():
    advantages = advantages_of_one_row([1.0, 2.0, float("nan"), 4.0], [1.0, 1.0, float("nan"), 1.0], 1.0, ends=[1])
    assert np.isnan(advantages).tolist() == [False, False, True, False]


def naive_advantages(rewards, values, last_values, ends, bootstraps, gamma, gae_lambda):
    """Each advantage as the discounted sum of TD errors over the rest of its episode, in float64."""
    steps, rows = rewards.shape
    result = np.zeros((steps, rows))
    for row in range(rows):
        for start in range(steps):
            weight = 1.0
            for step in range(start, steps):
                if ends[step, row]:
                    after = bootstraps[step, row]
                else:
                    after = values[step + 1, row] if step + 1 < steps else last_values[row]
                error = float(rewards[step, row]) + gamma * float(after) - float(values[step, row])
                result[start, row] += weight * error
                weight *= gamma * gae_lambda
                if ends[step, row]:
                    break
    return result


@settings(max_examples=60)
@given(
    steps=st.integers(1, 24),
    rows=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-3, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1e5]),
    gamma=st.sampled_from([0.0, 0.9, 0.995, 1.0]),
    gae_lambda=st.sampled_from([0.0, 0.95, 1.0]),
)
def test_equals_a_naive_implementation(steps, rows, seed, scale, offset, gamma, gae_lambda):
    rng = np.random.default_rng(seed)
    rewards, values, final = (
        (rng.normal(size=(steps, rows)) * scale + shift).astype(np.float32) for shift in (0.0, offset, offset)
    )
    last_values = (rng.normal(size=rows) * scale + offset).astype(np.float32)
    ends = rng.random((steps, rows)) < 0.25
    bootstraps = np.where(ends & (rng.random((steps, rows)) < 0.5), final, np.float32(0.0))
    advantages, returns = advantages_and_returns(
        *(torch.from_numpy(array) for array in (rewards, values, last_values, ends, bootstraps)), gamma, gae_lambda
    )
    expected = naive_advantages(rewards, values, last_values, ends, bootstraps, gamma, gae_lambda)
    # only the rounding of the result: float32 sums of values of 1e5 would have far larger errors
    np.testing.assert_allclose(advantages.numpy(), expected, rtol=3e-7, atol=1e-6 * scale + 1e-9 * offset)
    np.testing.assert_allclose(returns.numpy(), expected + values, rtol=3e-7, atol=1e-6 * scale + 1e-9 * offset)
    assert advantages.dtype == returns.dtype == torch.float32


@pytest.mark.parametrize("length", [64, 2048])
def test_long_sums_are_accurate(length):
    # a reward of 0.001 beside values of 10,000: differences of float32 values would lose it
    advantages = advantages_of_one_row([1e-3] * length, [1e4] * length, 1e4, gamma=1.0, gae_lambda=1.0)
    np.testing.assert_allclose(advantages, 1e-3 * np.arange(length, 0, -1), rtol=1e-6)
