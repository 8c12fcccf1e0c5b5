import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, distributions
from torch.nn import functional

from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.parts import ALL_PARTS, BLOCK_PARTS, CHOICE_STARTS, CHOICES, NUM_PARTS, SIZES
from echelon_train.policy.choices import environment_actions
from echelon_train.policy.distributions import ActionDistribution
from train.policy.random_choices import random_batch

COLUMNS = [slice(start, start + size) for start, size in zip(CHOICE_STARTS.values(), SIZES, strict=True)]
NEUTRAL = [start + part.neutral for start, part in zip(CHOICE_STARTS.values(), ALL_PARTS, strict=True)]


def by_block(parts: list[Tensor]) -> Tensor:
    """Numbers (R,) of the parts as (R, blocks)."""
    left = iter(parts)
    return torch.stack([sum(next(left) for _ in BLOCK_PARTS[block.name]) for block in BLOCKS], 1)


def categorical(logits: Tensor, masks: Tensor) -> list[distributions.Categorical]:
    """Each part's distribution of torch."""
    logits = logits.masked_fill(~masks, -math.inf)
    return [distributions.Categorical(logits=logits[:, columns]) for columns in COLUMNS]


def test_log_probabilities_and_entropies_equal_those_of_torch():
    logits, masks, choices = random_batch(500)
    found, expected = ActionDistribution(logits, masks), categorical(logits, masks)
    log_probs = by_block([part.log_prob(column) for part, column in zip(expected, choices.T, strict=True)])
    torch.testing.assert_close(found.block_log_probs(choices), log_probs, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.block_entropies(), by_block([part.entropy() for part in expected]))


def test_samples_follow_the_distribution():
    samples = 60_000
    logits, masks, _ = random_batch(1, seed=4)
    noise = torch.rand(samples, NUM_PARTS, generator=torch.Generator().manual_seed(11))
    subject = ActionDistribution(logits.float().expand(samples, -1), masks.expand(samples, -1))
    choices = subject.sample(noise).numpy()
    for column, part in enumerate(categorical(logits, masks)):
        shares = part.probs[0].numpy()
        counts = np.bincount(choices[:, column], minlength=len(shares))
        possible = shares > 0
        assert not counts[~possible].any()
        if possible.sum() > 1:
            assert stats.chisquare(counts[possible], samples * shares[possible]).pvalue > 1e-4


extreme = st.sampled_from([-1e4, -50.0, -1.0, 0.0, 1.0, 50.0, 1e4])


@given(
    logits=st.lists(extreme, min_size=CHOICES, max_size=CHOICES),
    possible=st.lists(st.booleans(), min_size=CHOICES, max_size=CHOICES),
    noise=st.lists(st.sampled_from([0.0, 1e-30, 0.5, 1.0 - 2.0**-24]), min_size=NUM_PARTS, max_size=NUM_PARTS),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_extreme_inputs_give_finite_values_and_possible_choices(logits, possible, noise, dtype):
    logits = torch.tensor([logits], dtype=dtype, requires_grad=True)
    masks = torch.tensor([possible])
    masks[:, NEUTRAL] = True
    distribution = ActionDistribution(logits, masks)
    sampled = distribution.sample(torch.tensor([noise], dtype=dtype))
    assert not sampled.requires_grad
    for choices in (sampled, distribution.mode()):
        for part, index in zip(COLUMNS, choices[0].tolist(), strict=True):
            assert masks[0, part][index]
        assert environment_actions(choices).abs().max() <= 1.0
        values = distribution.block_log_probs(choices), distribution.block_entropies()
        assert all(torch.isfinite(each).all() for each in values)
        (gradient,) = torch.autograd.grad(sum(values).sum(), logits, retain_graph=True)
        assert torch.isfinite(gradient).all()
        assert not gradient[~masks].any()


def test_label_losses_equal_torchs_cross_entropies():
    logits, masks, _ = random_batch(500)
    generator = torch.Generator().manual_seed(1)
    labels = torch.stack([torch.randint(size, (500,), generator=generator) for size in SIZES], 1)
    expected = []
    for columns, label in zip(COLUMNS, labels.T, strict=True):
        possible = masks[:, columns]
        losses = functional.cross_entropy(logits[:, columns].masked_fill(~possible, -1e300), label, reduction="none")
        expected.append(losses.where(possible.gather(1, label[:, None])[:, 0], 0.0))
    found = ActionDistribution(logits, masks).label_losses(labels)
    torch.testing.assert_close(found, by_block(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_that_the_mask_rules_out_have_no_loss_and_no_gradient(dtype):
    logits, masks, _ = random_batch(20)
    masks = torch.zeros_like(masks)
    masks[:, NEUTRAL] = True
    labels = torch.tensor([[(part.neutral + 1) % len(part.values) for part in ALL_PARTS]] * 20)
    logits = logits.to(dtype).requires_grad_()
    losses = ActionDistribution(logits, masks).label_losses(labels)
    assert not losses.any()
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert not gradient.any()


@pytest.mark.cuda
def test_cuda_gives_the_same_results():
    logits, masks, choices = random_batch(500)
    noise = torch.rand(500, NUM_PARTS, dtype=torch.float64)
    results = []
    for device in ("cpu", "cuda"):
        distribution = ActionDistribution(logits.to(device), masks.to(device))
        sampled = distribution.sample(noise.to(device))
        outputs = (
            sampled, distribution.block_log_probs(choices.to(device)), distribution.block_entropies(),
            environment_actions(sampled),
        )  # fmt: skip
        results.append([each.cpu() for each in outputs])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)
