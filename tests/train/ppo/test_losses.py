import math

import pytest
import torch
from gymnasium import spaces

from echelon_train.ppo.losses import Coefficients, losses, recurrent_states
from echelon_train.ppo.normalize import ReturnNormalizer
from train.ppo.random_env import model_with_rollout

COEFFICIENTS = Coefficients(clip_range=0.1, ent_coef=0.03, vf_coef=0.7)
FIELDS = ("total", "policy", "value", "entropy", "auxiliary", "kickstart", "approx_kl", "clip_fraction")


@pytest.fixture
def model():
    """A model with a rollout in its buffer, and weights that have changed since."""
    model = model_with_rollout(rows=4, steps=16, chunk=4)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model


def batch_of(model, *, dead=(), burn_in=()):
    buffer = model.rollout_buffer
    loss_mask = buffer.loss_mask()
    for step, row in dead:
        buffer.actor_mask[step, row] = False
    for step, row in burn_in:
        loss_mask[step, row] = False
    return buffer.batch(torch.arange(buffer.num_chunks), buffer.advantages, loss_mask)


def losses_of(model, batch, coefficients=COEFFICIENTS, normalizer=None):
    num_actor, num_loss = batch.actor_mask.sum().float(), batch.loss_mask.sum().float()
    return losses(model.policy, batch, normalizer, coefficients, num_actor, num_loss)


@torch.no_grad()
def naive_losses(model, batch, coefficients, mean=0.0, std=1.0):
    """The losses by loops over samples, written as in the paper."""
    values, log_probs, entropies = model.policy.evaluate_actions(
        batch.observations, batch.actions, recurrent_states(batch.states), batch.sequences
    )
    gains, errors, bonus, kls, clipped = [], [], [], [], []
    for sample in range(len(batch.actions)):
        if batch.loss_mask[sample]:
            target = (float(batch.returns[sample]) - mean) / std
            value = float(values[sample])
            if coefficients.clip_range_vf is not None:
                old = (float(batch.old_values[sample]) - mean) / std
                value = old + max(-coefficients.clip_range_vf, min(coefficients.clip_range_vf, value - old))
            errors.append((target - value) ** 2)
        if batch.actor_mask[sample]:
            difference = float(log_probs[sample]) - float(batch.old_log_probs[sample])
            ratio = math.exp(difference)
            bounded = max(1 - coefficients.clip_range, min(1 + coefficients.clip_range, ratio))
            advantage = float(batch.advantages[sample])
            gains.append(min(advantage * ratio, advantage * bounded))
            bonus.append(float(entropies[sample]))
            kls.append(ratio - 1 - difference)
            clipped.append(abs(ratio - 1) > coefficients.clip_range)
    means = [sum(numbers) / len(numbers) for numbers in (gains, errors, bonus, kls, clipped)]
    policy, value, entropy = -means[0], means[1], means[2]
    total = policy + coefficients.vf_coef * value - coefficients.ent_coef * entropy
    return dict(zip(FIELDS, (total, policy, value, entropy, 0.0, 0.0, means[3], means[4]), strict=True))


@pytest.mark.parametrize("clip_range_vf", [None, 0.05])
@pytest.mark.parametrize("normalizer", [None, (2.0, 3.0)])
def test_losses_equal_a_naive_implementation(model, clip_range_vf, normalizer):
    batch = batch_of(model, dead=[(2, 1), (3, 1)], burn_in=[(0, 0), (1, 2)])
    coefficients = COEFFICIENTS._replace(clip_range_vf=clip_range_vf)
    moments, module = (0.0, 1.0), None
    if normalizer:
        moments, module = normalizer, ReturnNormalizer()
        module.mean.fill_(normalizer[0])
        module.mean_square.fill_(normalizer[0] ** 2 + normalizer[1] ** 2)
    expected = naive_losses(model, batch, coefficients, *moments)
    found = losses_of(model, batch, coefficients, module)
    assert 0.1 < expected["clip_fraction"] < 0.95
    for name, number in expected.items():
        assert getattr(found, name).item() == pytest.approx(number, rel=1e-4, abs=1e-6), name


def gradient(model, result):
    model.policy.zero_grad()
    result.total.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.policy.parameters()])


def test_non_finite_numbers_of_inactive_samples_are_ignored(model):
    batch = batch_of(model, dead=[(2, 1)])
    infinite = torch.where(batch.actor_mask[:, None], batch.old_log_probs, torch.tensor(float("-inf")))
    result = losses_of(
        model, batch._replace(old_log_probs=infinite, advantages=batch.advantages.masked_fill(~batch.actor_mask, 1e38))
    )
    assert torch.isfinite(torch.stack(result)).all()
    assert torch.isfinite(gradient(model, result)).all()


def test_gradients_flow_back_through_burn_in_steps(model):
    starts = model.rollout_buffer.episode_starts
    row = int((~starts[1]).nonzero()[0])
    batch = batch_of(model, burn_in=[(0, row)])
    seen = batch.observations.requires_grad_()
    losses_of(model, batch).total.backward()
    assert (~batch.loss_mask).sum() == 1
    assert bool((seen.grad[~batch.loss_mask] != 0.0).any()), "the gradient comes from later losses"


def test_without_a_closed_form_the_entropy_is_estimated(model, monkeypatch):
    batch = batch_of(model)
    original = model.policy.evaluate
    monkeypatch.setattr(
        type(model.policy), "evaluate", lambda self, *args: original(*args)._replace(entropy=None), raising=True
    )
    found = losses_of(model, batch).entropy.item()
    assert found == pytest.approx(-original(*batch_arguments(batch)).log_probs.mean().item(), rel=1e-5)


def batch_arguments(batch):
    return batch.observations, batch.actions, recurrent_states(batch.states), batch.sequences


def test_an_auxiliary_loss_needs_a_policy_that_predicts(model):
    with pytest.raises(NotImplementedError, match="auxiliary_coef must be 0"):
        losses_of(model, batch_of(model), COEFFICIENTS._replace(auxiliary_coef=0.1))


def test_losses_of_discrete_actions():
    model = model_with_rollout(rows=2, steps=8, chunk=4, actions=spaces.Discrete(3))
    batch = batch_of(model)
    assert batch.actions.dtype == torch.int64
    result = losses_of(model, batch)
    # the weights have not changed since the rollout
    assert result.approx_kl.item() == pytest.approx(0.0, abs=1e-6)
    assert result.entropy.item() == pytest.approx(math.log(3), rel=1e-2)
