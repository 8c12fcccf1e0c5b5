import math

import pytest
import torch

from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.possible import Limit
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.policy.choices import nearest_choices
from echelon_train.ppo.losses import Coefficients, losses, recurrent_states
from echelon_train.ppo.normalize import ReturnNormalizer
from train.ppo.random_env import RandomVecEnv, collect, make_model, model_with_rollout

COEFFICIENTS = Coefficients(clip_range=0.1, ent_coef=0.03, vf_coef=0.7)


@pytest.fixture
def model():
    """A model with a rollout in its buffer, and weights that have changed since."""
    return changed(model_with_rollout(rows=4, steps=16, chunk=4))


def changed(model, scale=0.2):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return model


def battle_model():
    """A model of `BattlePolicy` with a rollout in its buffer, in which mechs die, and random labels."""
    network = NetworkConfig(width=8, head=8, set_width=4, map_channels=2)
    env = RandomVecEnv(4, 0, observation_space(), action_space())
    model = make_model(env, policy=BattlePolicy, policy_kwargs={"network": network})
    model.policy.action_limits.fill_(1e9)  # random observations would rule out most motion
    model.policy.action_limits[:, Limit.LEGS] = -1e9
    collect(model)
    buffer = model.rollout_buffer
    others = model.policy.environment_actions(buffer.actions.flatten(0, 1).roll(1, 0))
    buffer.labels, buffer.has_labels = nearest_choices(others).view_as(buffer.actions), True
    return model


def batch_of(model, *, dead=()):
    buffer = model.rollout_buffer
    for step, row in dead:
        buffer.actor_mask[step, row] = False
    return buffer.batch(torch.arange(buffer.num_chunks), buffer.advantages)


def losses_of(model, batch, coefficients=COEFFICIENTS, normalizer=None):
    num_actor, num_all = batch.actor_mask.sum().float(), torch.tensor(float(len(batch.actions)))
    return losses(model.policy, batch, normalizer, coefficients, num_actor, num_all)


@torch.no_grad()
def naive_losses(model, batch, coefficients, mean=0.0, std=1.0):
    """The losses by loops over samples and blocks, written as in the papers."""
    values, log_probs, entropies, label_losses = model.policy.evaluate(*batch_arguments(batch), None, batch.labels)
    gains, errors, entropy, kls, clipped, missed = [], [], [], [], [], []
    for sample in range(len(batch.actions)):
        errors.append(((float(batch.returns[sample]) - mean) / std - float(values[sample])) ** 2)
        if batch.actor_mask[sample]:
            difference = sum((log_probs[sample] - batch.old_log_probs[sample]).tolist())
            ratio = math.exp(difference)
            bounded = max(1 - coefficients.clip_range, min(1 + coefficients.clip_range, ratio))
            advantage = float(batch.advantages[sample])
            gains.append(min(advantage * ratio, advantage * bounded))
            entropy.append(sum(entropies[sample].tolist()))
            kls.append(ratio - 1 - difference)
            clipped.append(abs(ratio - 1) > coefficients.clip_range)
            missed.append(0.0 if label_losses is None else sum(label_losses[sample].tolist()))
    found = {
        "policy": -sum(gains) / len(gains),
        "value": sum(errors) / len(errors),
        "entropy": sum(entropy) / len(entropy),
        "kickstart": sum(missed) / len(missed),
        "approx_kl": sum(kls) / len(kls),
        "clip_fraction": sum(clipped) / len(clipped),
    }
    found["total"] = (
        coefficients.policy_coef * found["policy"]
        + coefficients.vf_coef * found["value"]
        - coefficients.ent_coef * found["entropy"]
        + coefficients.kickstart_coef * found["kickstart"]
    )
    return found


@pytest.mark.parametrize("normalizer", [None, (2.0, 3.0)])
def test_losses_equal_a_naive_implementation(model, normalizer):
    batch = batch_of(model, dead=[(2, 1), (3, 1)])
    moments, module = (0.0, 1.0), None
    if normalizer:
        moments, module = normalizer, ReturnNormalizer()
        module.mean.fill_(normalizer[0])
        module.mean_square.fill_(normalizer[0] ** 2 + normalizer[1] ** 2)
    expected = naive_losses(model, batch, COEFFICIENTS, *moments)
    found = losses_of(model, batch, normalizer=module)
    assert 0.1 < expected["clip_fraction"] < 0.95
    for name, number in expected.items():
        assert getattr(found, name).item() == pytest.approx(number, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kickstart_coef": 0.5},
        {"policy_coef": 0.0, "kickstart_coef": 1.0},
    ],
    ids=str,
)
def test_losses_by_block_equal_a_naive_implementation(settings):
    model = changed(battle_model(), 0.05)
    batch = batch_of(model)
    assert 5 < int((~batch.actor_mask).sum()) < 50
    coefficients = COEFFICIENTS._replace(**settings)
    if not coefficients.kickstart_coef:
        batch = batch._replace(labels=None)
    expected = naive_losses(model, batch, coefficients)
    assert 0.02 < expected["clip_fraction"] < 0.95
    found = losses_of(model, batch, coefficients)
    for name, number in expected.items():
        assert getattr(found, name).item() == pytest.approx(number, rel=1e-4, abs=1e-5), name
    assert found.kickstart_blocks.sum().item() == pytest.approx(expected["kickstart"], rel=1e-4)
    assert found.entropy_blocks.sum().item() == pytest.approx(expected["entropy"], rel=1e-4)
    assert len(found.kickstart_blocks) == len(found.entropy_blocks) == len(model.policy.blocks)


def test_kickstarting_needs_a_policy_that_learns_from_a_teacher(model):
    batch = batch_of(model)
    with pytest.raises(NotImplementedError, match="does not learn from a teacher"):
        losses_of(model, batch._replace(labels=batch.actions), COEFFICIENTS._replace(kickstart_coef=0.1))


def gradient(model, result):
    model.policy.zero_grad()
    result.total.backward()
    return torch.cat([each.grad.flatten() for each in model.policy.parameters() if each.grad is not None])


def test_non_finite_numbers_of_inactive_samples_are_ignored(model):
    batch = batch_of(model, dead=[(2, 1)])
    infinite = torch.where(batch.actor_mask[:, None], batch.old_log_probs, torch.tensor(float("-inf")))
    result = losses_of(
        model, batch._replace(old_log_probs=infinite, advantages=batch.advantages.masked_fill(~batch.actor_mask, 1e38))
    )
    assert torch.isfinite(result.packed()).all()
    assert torch.isfinite(gradient(model, result)).all()


def batch_arguments(batch):
    return batch.observations, batch.actions, recurrent_states(batch.states), batch.sequences
