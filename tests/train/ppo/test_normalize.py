import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from echelon_train.ppo.normalize import MIN_STD, RATE, ReturnNormalizer, normalize_advantages


def moments(numbers):
    numbers = torch.as_tensor(numbers, dtype=torch.float64)
    return numbers.mean(), (numbers**2).mean()


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-2, 1.0, 1e3]),
    offset=st.sampled_from([0.0, -5.0, 1e3]),
)
def test_predictions_are_preserved_when_the_moments_change(seed, scale, offset):
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(7, 1)
    inputs = torch.randn(50, 7, generator=generator)
    normalizer = ReturnNormalizer(2.0)
    for _ in range(5):
        before = normalizer.denormalize(layer(inputs))
        old = normalizer.mean.clone(), normalizer.std
        normalizer.update(*moments(torch.randn(100, generator=generator) * scale + offset), layer)
        assert old != (normalizer.mean, normalizer.std)
        after = normalizer.denormalize(layer(inputs))
        size = float(normalizer.std + normalizer.mean.abs())
        torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5 * size)


def test_moments_are_exponential_averages():
    normalizer = ReturnNormalizer(3.0)
    normalizer.update(torch.tensor(4.0), torch.tensor(20.0), nn.Linear(1, 1))
    assert float(normalizer.mean) == pytest.approx(RATE * 4)
    assert float(normalizer.std) == pytest.approx(np.sqrt(9 + RATE * (20 - 9) - (RATE * 4) ** 2))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_moments_that_are_not_finite_are_ignored(bad):
    normalizer, layer = ReturnNormalizer(), nn.Linear(2, 1)
    weight = layer.weight.clone()
    normalizer.update(torch.tensor(bad), torch.tensor(1.0), layer)
    normalizer.update(torch.tensor(1.0), torch.tensor(bad), layer)
    assert float(normalizer.mean) == 0.0
    assert float(normalizer.std) == 1.0
    assert torch.equal(layer.weight, weight)


def test_equal_returns_give_finite_weights():
    normalizer, layer = ReturnNormalizer(), nn.Linear(1, 1)
    for _ in range(2000):
        normalizer.update(*moments([5.0, 5.0]), layer)
    assert float(normalizer.std) == pytest.approx(MIN_STD)
    assert torch.isfinite(layer.weight).all()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.3, 1.0]),
    offset=st.sampled_from([0.0, 1e4]),
)
def test_advantages_have_mean_0_and_std_1(seed, share, offset):
    rng = np.random.default_rng(seed)
    advantages = (rng.normal(size=(20, 6)) * 3 + offset).astype(np.float32)
    mask = rng.random((20, 6)) < share
    result = normalize_advantages(torch.from_numpy(advantages), torch.from_numpy(mask)).numpy()
    exact = advantages[mask].astype(np.float64)
    expected = (exact - exact.mean()) / (exact.std(ddof=1) + 1e-8)
    np.testing.assert_allclose(result[mask], expected, rtol=1e-4, atol=1e-5)


def test_masked_and_non_finite_samples_are_not_counted():
    advantages = torch.tensor([[1.0, 1e6], [3.0, float("nan")], [5.0, float("inf")]])
    mask = torch.tensor([[True, False], [True, True], [True, True]])
    result = normalize_advantages(advantages, mask)
    torch.testing.assert_close(result[:, 0], torch.tensor([-1.0, 0.0, 1.0]))
    assert torch.isnan(result[1, 1])
