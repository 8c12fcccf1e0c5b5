import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, distributions
from torch.nn import functional

from echelon_env.layout.actions import ACTION_DIM, BLOCKS, Action
from echelon_env.networks.possible import MASKS
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions
from train.policy.hybrid import (
    FIRST_LOGIT,
    KIND_SLICES,
    MAX_STD,
    MIN_STD,
    NUMBER_COLUMNS,
    NUMBERS,
    RAW_SLICES,
    distribution_of,
    log_std,
    random_batch,
    shifted,
)

LOGITS = MASKS - NUMBERS
"""Entries of a mask before those of numbers, which are as many as logits."""


def torch_log_probs(parameters: Tensor, masks: Tensor, raw: Tensor) -> dict[str, Tensor]:
    """Log-probabilities (R,) of each block by torch's own distributions."""
    logits = parameters[:, FIRST_LOGIT:].masked_fill(~masks[:, :LOGITS], -math.inf)
    result = {}
    for block in BLOCKS:
        columns, part = raw[:, RAW_SLICES[block.name]], KIND_SLICES[block.name]
        if block.kind == "numbers":
            gauss = distributions.Normal(parameters[:, part], log_std(parameters)[:, part].exp())
            tanh = distributions.TanhTransform(cache_size=1)
            densities = distributions.TransformedDistribution(gauss, [tanh]).log_prob(tanh(columns))
            result[block.name] = densities.where(masks[:, shifted(part, LOGITS)], 0.0).sum(1)
        elif block.kind == "switches":
            probabilities = torch.sigmoid(logits[:, part])
            result[block.name] = distributions.Bernoulli(probs=probabilities).log_prob(columns).sum(1)
        else:
            result[block.name] = distributions.Categorical(logits=logits[:, part]).log_prob(columns[:, 0])
    return result


def test_log_probabilities_equal_those_of_torch():
    parameters, masks, raw = random_batch(500)
    expected = torch.stack(list(torch_log_probs(parameters, masks, raw).values()), 1)
    distribution = distribution_of(parameters, masks)
    torch.testing.assert_close(distribution.block_log_probs(raw), expected, rtol=1e-9, atol=1e-7)
    torch.testing.assert_close(distribution.log_prob(raw), expected.sum(1), rtol=1e-9, atol=1e-7)


def test_samples_follow_the_distribution():
    samples = 60_000
    parameters, masks, _ = random_batch(1, seed=4)
    generator = torch.Generator().manual_seed(11)
    noise = torch.randn(samples, RAW_DIM, generator=generator)
    raw = distribution_of(parameters.float().expand(samples, -1), masks.expand(samples, -1)).sample(noise).numpy()
    logits = parameters[0, FIRST_LOGIT:].masked_fill(~masks[0, :LOGITS], -math.inf)
    assert len(masks[0, :LOGITS].unique()) == len(masks[0, LOGITS:].unique()) == 2  # otherwise masks were not tested
    for block in BLOCKS:
        columns, part = raw[:, RAW_SLICES[block.name]], KIND_SLICES[block.name]
        if block.kind == "numbers":
            for i, place in enumerate(range(part.start, part.stop)):
                if not masks[0, LOGITS + place]:
                    assert not columns[:, i].any()
                    continue
                spread = float(log_std(parameters)[0, place].exp())
                normal = (columns[:, i] - float(parameters[0, place])) / spread
                assert stats.kstest(normal, "norm").pvalue > 1e-4
        elif block.kind == "switches":
            assert set(np.unique(columns)) <= {0.0, 1.0}
            for i, probability in enumerate(torch.sigmoid(logits[part]).tolist()):
                assert stats.binomtest(int(columns[:, i].sum()), samples, probability).pvalue > 1e-4
        else:
            probabilities = torch.softmax(logits[part], 0).numpy()
            counts = np.bincount(columns[:, 0].astype(int), minlength=block.choices)
            possible = probabilities > 0
            assert not counts[~possible].any()
            if possible.sum() > 1:
                assert stats.chisquare(counts[possible], samples * probabilities[possible]).pvalue > 1e-4


def expected_log_slope(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E[log(1 - tanh(u)^2)], u ~ N(mean, std^2), by the trapezoidal rule on a fine grid."""
    z = np.linspace(-9, 9, 3001)
    u = mean[..., None] + std[..., None] * z
    values = 2 * (np.log(2) - np.logaddexp(u, -u))
    return np.trapezoid(values * stats.norm.pdf(z), z)


def entropy_of_numbers(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    return np.log(std) + 0.5 * np.log(2 * np.pi * np.e) + expected_log_slope(mean, std)


def number_parameters(mean: Tensor, std: Tensor) -> Tensor:
    """Parameters of rows whose numbers all have the same mean and standard deviation, (R,) each."""
    share = torch.log(std / MIN_STD) / math.log(MAX_STD / MIN_STD)
    rest = torch.zeros(len(mean), LOGITS, dtype=mean.dtype)
    columns = [mean[:, None].expand(-1, NUMBERS), torch.logit(share)[:, None].expand(-1, NUMBERS), rest]
    return torch.cat(columns, 1)


def test_entropies_are_exact_but_for_1e_4_of_a_squashed_number():
    """Of numbers over a grid of means and standard deviations, and of random batches with masks."""
    grid = np.meshgrid(np.linspace(-3, 3, 13), np.geomspace(0.0501, 1.999, 13))
    even = number_parameters(*(torch.from_numpy(each.ravel()) for each in grid))
    everything = torch.ones(len(even), MASKS, dtype=torch.bool)
    for parameters, masks in ((even, everything), random_batch(50, seed=5)[:2]):
        distribution = distribution_of(parameters, masks)
        entropies = distribution.block_entropies()
        torch.testing.assert_close(entropies.sum(1), distribution.entropy())
        logits = parameters[:, FIRST_LOGIT:].masked_fill(~masks[:, :LOGITS], -math.inf)
        for found, block in zip(entropies.T, BLOCKS, strict=True):
            part, tolerance = KIND_SLICES[block.name], 1e-9
            if block.kind == "numbers":
                exact = entropy_of_numbers(parameters[:, part].numpy(), log_std(parameters)[:, part].exp().numpy())
                expected = torch.from_numpy(exact).where(masks[:, shifted(part, LOGITS)], 0.0).sum(1)
                tolerance = 1e-4 * len(block.entries)
            elif block.kind == "switches":
                expected = distributions.Bernoulli(probs=torch.sigmoid(logits[:, part])).entropy().sum(1)
            else:
                expected = distributions.Categorical(logits=logits[:, part]).entropy()
            assert (found - expected).abs().max() < tolerance, block.name


def test_the_log_probability_of_a_saturated_number_is_exact():
    """At u = 12 tanh is 1 in float32; the density of the action there is exp(22.39), for mean 12 and std 0.5."""
    mean, std = torch.tensor([12.0]), torch.tensor([0.5])
    masks = torch.zeros(1, MASKS, dtype=torch.bool)
    first_options = [KIND_SLICES[block.name].start for block in BLOCKS if block.kind == "choice"]
    masks[:, first_options] = True  # everything but the numbers is certain
    masks[:, LOGITS:] = True
    raw = torch.zeros(1, RAW_DIM)
    raw[:, NUMBER_COLUMNS] = 12.0
    assert environment_actions(raw)[0, Action.THROTTLE] == 1.0
    log_prob = float(distribution_of(number_parameters(mean, std), masks).log_prob(raw)) / NUMBERS
    assert log_prob == pytest.approx(2 * math.log(math.cosh(12)) - math.log(0.5 * math.sqrt(2 * math.pi)), abs=1e-4)
    assert log_prob == pytest.approx(22.39, abs=0.01)


extreme = st.sampled_from([-1e4, -50.0, -1.0, 0.0, 1.0, 50.0, 1e4])


@given(
    mean=st.sampled_from([-50.0, 0.0, 12.0, 50.0]),
    offset=extreme,
    logits=st.lists(extreme, min_size=LOGITS, max_size=LOGITS),
    possible=st.lists(st.booleans(), min_size=MASKS, max_size=MASKS),
    noise=st.lists(st.sampled_from([-40.0, -6.0, 0.0, 0.7, 6.0, 40.0]), min_size=RAW_DIM, max_size=RAW_DIM),
    numbers=st.lists(st.floats(-50, 50, width=32), min_size=NUMBERS, max_size=NUMBERS),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_extreme_inputs_give_finite_values_and_allowed_actions(mean, offset, logits, possible, noise, numbers, dtype):
    rows = [[mean] * NUMBERS + [offset] * NUMBERS + logits]
    parameters = torch.tensor(rows, dtype=dtype, requires_grad=True)
    masks = torch.tensor([possible])
    for block in BLOCKS:
        if block.kind == "choice":
            masks[:, KIND_SLICES[block.name].start] = True
    distribution = distribution_of(parameters, masks)
    sampled = distribution.sample(torch.tensor([noise], dtype=dtype))
    assert not sampled.requires_grad
    with_any_numbers = sampled.clone()
    with_any_numbers[:, NUMBER_COLUMNS] = torch.tensor([numbers], dtype=dtype)
    for raw in (sampled, with_any_numbers, distribution.mode()):
        action = environment_actions(raw)
        assert action.shape == (1, ACTION_DIM)
        assert action.dtype == torch.float32
        assert action.abs().max() <= 1.0
        for block in BLOCKS:
            columns, part = raw[0, RAW_SLICES[block.name]], masks[0, KIND_SLICES[block.name]]
            if block.kind == "switches":
                assert not (columns.bool() & ~part).any()
            elif block.kind == "choice":
                assert part[int(columns[0])]
        values = distribution.log_prob(raw), distribution.entropy()
        assert all(torch.isfinite(each).all() for each in values)
        (gradient,) = torch.autograd.grad(sum(values).sum(), parameters, retain_graph=True)
        assert torch.isfinite(gradient).all()
        assert not gradient[0, FIRST_LOGIT:][~masks[0, :LOGITS]].any()
        assert not gradient[0, :NUMBERS][~masks[0, LOGITS:]].any()


# Label losses


def huber(deviation: Tensor) -> Tensor:
    """Half the square up to 3, and its tangent beyond."""
    return torch.where(deviation.abs() <= 3.0, 0.5 * deviation**2, 3.0 * deviation.abs() - 4.5)


def naive_label_losses(parameters: Tensor, masks: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropies (R, blocks) by torch's own functions; what the mask rules out counts 0."""
    logits = parameters[:, FIRST_LOGIT:]
    result = []
    for block in BLOCKS:
        columns, part = labels[:, RAW_SLICES[block.name]], KIND_SLICES[block.name]
        if block.kind == "numbers":
            deviation = (columns - parameters[:, part]) / log_std(parameters)[:, part].exp()
            losses = huber(deviation) + log_std(parameters)[:, part]
            result.append(losses.where(masks[:, shifted(part, LOGITS)], 0.0).sum(1))
        elif block.kind == "switches":
            losses = functional.binary_cross_entropy_with_logits(logits[:, part], columns, reduction="none")
            result.append(losses.where(masks[:, part], 0.0).sum(1))
        else:
            possible, index = masks[:, part], columns[:, 0].long()
            losses = functional.cross_entropy(logits[:, part].masked_fill(~possible, -1e300), index, reduction="none")
            result.append(losses.where(possible.gather(1, index[:, None])[:, 0], 0.0))
    return torch.stack(result, 1)


def random_labels(rows: int, seed: int) -> Tensor:
    """Raw actions (R, RAW_DIM) whatever the masks are; many numbers are outliers."""
    generator = torch.Generator().manual_seed(seed)
    labels = 2.0 * torch.randn(rows, RAW_DIM, generator=generator, dtype=torch.float64)
    for block in BLOCKS:
        part = RAW_SLICES[block.name]
        if block.kind != "numbers":
            options = block.choices if block.kind == "choice" else 2
            size = (rows, part.stop - part.start)
            labels[:, part] = torch.randint(options, size, generator=generator).double()
    return labels


def test_label_losses_equal_torchs_cross_entropies():
    parameters, masks, _ = random_batch(500)
    labels = random_labels(500, 1)
    deviation = (labels[:, NUMBER_COLUMNS] - parameters[:, :NUMBERS]) / log_std(parameters).exp()
    assert 0.2 < float((deviation.abs() > 3.0).double().mean()) < 0.8  # both branches of Huber's loss
    found = distribution_of(parameters, masks).label_losses(labels)
    torch.testing.assert_close(found, naive_label_losses(parameters, masks, labels), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_that_the_mask_rules_out_have_no_loss_and_no_gradient(dtype):
    """The first options of choices are possible; all labels are others, and all switches are on."""
    parameters, masks, _ = random_batch(20)
    masks = torch.zeros_like(masks)
    labels = torch.ones(20, RAW_DIM, dtype=dtype)
    for block in BLOCKS:
        if block.kind == "choice":
            masks[:, KIND_SLICES[block.name].start] = True
    parameters = parameters.to(dtype).requires_grad_()
    losses = distribution_of(parameters, masks).label_losses(labels)
    assert not losses.any()
    (gradient,) = torch.autograd.grad(losses.sum(), parameters)
    assert not gradient.any()


@pytest.mark.cuda
def test_cuda_gives_the_same_results():
    parameters, masks, raw = random_batch(500)
    noise = torch.randn(500, RAW_DIM, dtype=torch.float64)
    results = []
    for device in ("cpu", "cuda"):
        distribution = distribution_of(parameters.to(device), masks.to(device))
        sampled = distribution.sample(noise.to(device))
        outputs = (sampled, distribution.log_prob(raw.to(device)), distribution.entropy(), environment_actions(sampled))
        results.append([each.cpu() for each in outputs])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)
