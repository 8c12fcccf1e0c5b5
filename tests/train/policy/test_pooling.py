import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_train.policy.pooling import max_and_mean


@st.composite
def sets_of_rows(draw):
    """Rows with many ties, the set of each row, and the sizes of the sets."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    owner = torch.tensor([each for each, size in enumerate(sizes) for _ in range(size)], dtype=torch.int64)
    width = draw(st.integers(1, 3))
    values = draw(st.lists(st.integers(0, 3), min_size=len(owner) * width, max_size=len(owner) * width))
    return torch.tensor(values, dtype=torch.float64).view(-1, width), owner, torch.tensor(sizes)


@settings(max_examples=200)
@given(sets_of_rows(), st.integers(0, 2**32 - 1))
def test_values_and_gradients_equal_those_of_torch(sets, seed):
    values, owner, sizes = sets
    rows = values.clone().requires_grad_()
    maximum, mean = max_and_mean(rows, owner, sizes.clamp_min(1).double().unsqueeze(1))
    weights = torch.randn(2, *maximum.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    (weights[0] * maximum + weights[1] * mean).sum().backward()
    plain = values.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for each, size in enumerate(sizes):
        if not size:
            assert not maximum[each].any()
            assert not mean[each].any()
            continue
        own = plain[owner == each]
        torch.testing.assert_close(maximum[each], own.amax(0))
        torch.testing.assert_close(mean[each], own.mean(0))
        total = total + (weights[0, each] * own.amax(0) + weights[1, each] * own.mean(0)).sum()
    if total.requires_grad:
        total.backward()
        torch.testing.assert_close(rows.grad, plain.grad)
