import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Contact, Self
from echelon_env.networks.weights import TABLES
from echelon_env.networks.weights import VARIANCE_EPSILON as EPSILON
from echelon_train.policy.encoders import stream_view
from echelon_train.policy.observation_normalizer import ObservationNormalizer
from train.policy.battle_data import battle_data

FEATURES = sum(stream.row_width for stream in STREAMS.values())
ALIVE = STREAMS["self"].start + Self.ALIVE


def normalizer_of(*batches: tuple[Tensor, Tensor]) -> ObservationNormalizer:
    normalizer = ObservationNormalizer()
    for observations, living in batches:
        normalizer.update(observations, living)
    return normalizer


def entries(observations: Tensor, name: str, feature: int) -> np.ndarray:
    """All values of a feature: one for each filled row, or for each cell of a map."""
    values = observations[:, STREAMS[name].part].reshape(-1, STREAMS[name].row_width)[:, feature]
    if name in TABLES:
        values = values[observations[:, STREAMS[f"{name}_mask"].part].flatten() > 0.5]
    return values.double().numpy()


def test_the_moments_equal_those_of_numpy():
    observations, living, _ = battle_data()
    third = len(observations) // 3
    moments = normalizer_of((observations[:third], living[:third]), (observations[third:], living[third:])).moments()
    assert moments.shape == (3, FEATURES)
    column = 0
    for name, stream in STREAMS.items():
        for feature in range(stream.row_width):
            values = entries(observations[living], name, feature)
            count, mean, squares = moments[:, column].tolist()
            assert count == len(values)
            assert mean == pytest.approx(values.mean(), abs=1e-12)
            assert squares / count == pytest.approx(values.var(), abs=1e-12)
            column += 1


def test_an_entry_equals_a_computation_by_hand():
    observations, living, _ = battle_data()
    values = entries(observations[living], "contacts", Contact.RANGE)
    entry = STREAMS["contacts"].start + Contact.RANGE
    row = int((observations[:, STREAMS["contacts_mask"].start] > 0.5).nonzero()[0])
    expected = (observations[row, entry].item() - values.mean()) / math.sqrt(values.var() + EPSILON)
    assert normalizer_of((observations, living))(observations)[row, entry].item() == pytest.approx(expected, rel=1e-5)


def test_features_without_a_unit_stay_as_they_are():
    observations, living, _ = battle_data()
    normal = normalizer_of((observations, living))(observations)
    kept = [
        stream.start + row * stream.row_width + feature
        for stream in STREAMS.values()
        for row in range(stream.rows)
        for feature in stream.features
        if not feature.unit
    ]
    assert ALIVE in kept
    assert set(range(*STREAMS["comm_mask"].part.indices(OBSERVATION_DIM))) <= set(kept)
    assert torch.equal(normal[:, kept], observations[:, kept])


def test_padding_becomes_0_and_is_not_counted():
    observations, living, _ = battle_data()
    wild = observations.clone()
    for name in TABLES:
        stream_view(wild, STREAMS[name])[stream_view(wild, STREAMS[f"{name}_mask"]) <= 0.5] = 1e9
    assert torch.equal(normalizer_of((wild, living)).moments(), normalizer_of((observations, living)).moments())
    normalizer = normalizer_of((observations, living))
    assert torch.equal(normalizer(wild), normalizer(observations))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**31), cuts=st.lists(st.integers(0, 60), min_size=1, max_size=3), scale=st.floats(0.01, 100)
)
def test_merged_parts_equal_the_whole(seed: int, cuts: list[int], scale: float):
    generator = torch.Generator().manual_seed(seed)
    observations = scale * torch.randn(60, OBSERVATION_DIM, generator=generator) + scale
    for name in TABLES:
        stream_view(observations, STREAMS[f"{name}_mask"])[:] = (
            torch.rand(60, STREAMS[name].rows, generator=generator) > 0.6
        )
    living = torch.rand(60, generator=generator) > 0.3
    whole = normalizer_of((observations, living)).moments()
    bounds = [0, *sorted(cuts), 60]
    merged = ObservationNormalizer()
    for start, stop in itertools.pairwise(bounds):
        merged.merge(normalizer_of((observations[start:stop], living[start:stop])).moments())
    torch.testing.assert_close(merged.moments(), whole, rtol=1e-10, atol=1e-10 * scale**2)


def test_a_small_variance_far_from_zero_is_kept():
    """Sums of squares in float32 would lose it."""
    observations = torch.zeros(2000, OBSERVATION_DIM)
    entry = STREAMS["self"].start + Self.HEAT
    observations[:, entry] = 1000.0 + torch.arange(2000) % 2
    normalizer = ObservationNormalizer()
    for part in observations.split(100):
        normalizer.update(part, torch.ones(100, dtype=torch.bool))
    count, _, squares = normalizer.moments()[:, entry]
    assert (squares / count).item() == pytest.approx(0.25, rel=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_rejected_and_not_counted(value: float):
    observations, living, _ = battle_data()
    normalizer = normalizer_of((observations, living))
    before = normalizer.moments()
    broken = observations.clone()
    broken[2, STREAMS["self"].start + Self.HEAT] = value
    with pytest.raises(ValueError, match=rf"expected finite observations, got {value} for self.heat in row 2"):
        normalizer.update(broken, living)
    assert torch.equal(normalizer.moments(), before)


def test_wrong_shapes_are_rejected():
    normalizer = ObservationNormalizer()
    observations = torch.zeros(3, OBSERVATION_DIM)
    with pytest.raises(ValueError, match=r"expected observations \(R, 1034\), got \(3, 7\)"):
        normalizer(torch.zeros(3, 7))
    with pytest.raises(ValueError, match=r"expected observations \(R, 1034\), got \(1034,\)"):
        normalizer.update(torch.zeros(OBSERVATION_DIM), torch.ones(1, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"expected living as \(3,\) bool, got \(3,\) torch.float32"):
        normalizer.update(observations, torch.ones(3))
    with pytest.raises(ValueError, match=r"expected living as \(3,\) bool, got \(2,\) torch.bool"):
        normalizer.update(observations, torch.ones(2, dtype=torch.bool))
    with pytest.raises(ValueError, match=rf"expected moments of shape \(3, {FEATURES}\), got \(3, 2\)"):
        normalizer.merge(torch.zeros(3, 2))
    with pytest.raises(ValueError, match="expected finite moments"):
        normalizer.merge(torch.full((3, FEATURES), math.nan))
