"""Dense policies: all rows and samples, masked, with shapes that do not depend on the data."""

import itertools

import pytest
import torch

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy
from echelon_train.policy.choices import nearest_choices
from echelon_train.ppo.losses import Coefficients
from echelon_train.ppo.update import UpdateSettings
from train.ppo.random_env import RandomVecEnv, collect, make_model
from train.ppo.recorded_battles import SMALL, RecordedBattles, WithGlobalState, losses_of, set_heads, whole_batch

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
NETWORKS = {
    f"{encoder}-{critic}{'-forgetful' * (not memory)}": NetworkConfig(
        encoder=encoder, critic=critic, memory=memory, **SMALL
    )
    for encoder, critic, memory in itertools.product(
        ("sets", "flat"), ("shared", "ippo", "central", "mappo"), (True, False)
    )
}


def model_of(network, **settings):
    env = WithGlobalState(RecordedBattles()) if network.sees_state else RecordedBattles()
    model = make_model(env, policy=BattlePolicy, policy_kwargs={"network": network}, **settings)
    set_heads(model)
    return model


def copy_rollout(source, target):
    for name, tensor in vars(source.rollout_buffer).items():
        if isinstance(tensor, torch.Tensor):
            getattr(target.rollout_buffer, name).copy_(tensor)
    for kept, state in zip(target.rollout_buffer.states, source.rollout_buffer.states, strict=True):
        kept.copy_(state)
    observations = source.rollout_buffer.observations
    for name, part in observations.items() if isinstance(observations, dict) else ():
        target.rollout_buffer.observations[name].copy_(part)


def shifted(*models):
    """Change the weights since the rollout, so that probability ratios are not 1."""
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameters in zip(*(model.policy.parameters() for model in models), strict=True):
            change = 0.05 * torch.randn(parameters[0].shape, generator=generator)
            for parameter in parameters:
                parameter.add_(change)


@pytest.fixture(params=["sets-shared", "sets-ippo-forgetful", "sets-central", "flat-ippo"])
def pair(request):
    """A model, and a dense one with the same rollout."""
    models = [model_of(NETWORKS[request.param], dense=dense) for dense in (False, True)]
    for model in models:
        torch.manual_seed(0)
        collect(model)
    return models


def test_a_dense_policy_collects_the_same_rollout(pair):
    plain, dense = (model.rollout_buffer for model in pair)
    assert plain.actor_mask.any() and not plain.actor_mask.all()
    assert plain.episode_starts[1:].any()
    for name in ("actions", "values", "log_probs", "rewards", "bootstraps", "advantages", "returns"):
        torch.testing.assert_close(getattr(plain, name), getattr(dense, name), **CLOSE, msg=name)
    for one, other in zip(plain.states, dense.states, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


def test_its_losses_and_gradients_are_the_same(pair):
    generator = torch.Generator().manual_seed(5)
    copy_rollout(*pair)
    shifted(*pair)
    weights = Coefficients(0.2, 0.01, 0.5, kickstart_coef=0.3)
    labels = pair[0].rollout_buffer.actions[:, torch.randperm(pair[0].n_envs, generator=generator)]
    found = []
    for model in pair:
        buffer = model.rollout_buffer
        environment = model.policy.environment_actions(labels.flatten(0, 1))
        buffer.labels, buffer.has_labels = nearest_choices(environment).view_as(buffer.actions), True
        batch = whole_batch(model)
        assert (batch.sequences.place is None) == model.policy.dense
        result = losses_of(model, batch, weights)
        result.total.backward()
        found.append((result.packed(), [parameter.grad for parameter in model.policy.parameters()]))
    (numbers, gradients), (others, dense) = found
    assert 0.0 < float(numbers[6]) < 1.0, "some ratios are clipped"
    torch.testing.assert_close(others, numbers, **CLOSE)
    size = max(float(gradient.abs().max()) for gradient in gradients)
    for one, other in zip(gradients, dense, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5 * size)


def test_policies_that_cannot_be_dense_are_refused():
    with pytest.raises(ValueError, match="MlpLstmPolicy cannot compute all rows"):
        make_model(RandomVecEnv(2), dense=True)
    with pytest.raises(ValueError, match="'graphs' needs a dense policy, got MlpLstmPolicy"):
        make_model(RandomVecEnv(2), compile_mode="graphs")
    with pytest.raises(ValueError, match="compile_mode: expected one of auto, off, graphs, got 'default'"):
        make_model(RandomVecEnv(2), compile_mode="default")


@pytest.mark.parametrize(("fits", "parts"), [(24, 2)])
def test_a_minibatch_that_does_not_fit_the_memory_is_split(fits, parts, monkeypatch):
    """Its gradient is then the sum of those of its parts, and later minibatches are split at once."""
    model, other = (model_of(NETWORKS["sets-shared"], batch_size=192) for _ in range(2))
    for each in (model, other):
        torch.manual_seed(0)
        collect(each)
    tried = []
    batch = model.rollout_buffer.batch

    def limited(chunks, *arguments):
        tried.append(len(chunks))
        if len(chunks) > fits:
            raise torch.OutOfMemoryError("no memory")
        return batch(chunks, *arguments)

    monkeypatch.setattr(model.rollout_buffer, "batch", limited)
    for each in (model, other):
        each.policy.optimizer = torch.optim.SGD(each.policy.parameters(), lr=0.01)
        torch.manual_seed(1)
        each.train()
    assert max(tried[1:]) <= 24 and min(tried) <= fits
    assert model.logger.name_to_value["train/accumulate"] == model.update.parts == parts
    assert "train/accumulate" not in other.logger.name_to_value
    for one, two in zip(model.policy.parameters(), other.policy.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


def test_parts_of_a_minibatch_are_not_computed_with_cuda_graphs():
    """A graph writes its gradients into the same memory every time."""
    model = model_of(NETWORKS["sets-shared"], dense=True, compile_mode="graphs")
    collect(model)
    model.update.begin(
        model.rollout_buffer, Coefficients(0.2, 0.01, 0.5), UpdateSettings(epochs=1, chunks=4, max_grad_norm=0.5)
    )
    found = []
    for model.update.parts in (1, 3):
        found.append(model.update.gradient(torch.arange(12)))
        assert len(model.update._gradients._recordings) == 1
    torch.testing.assert_close(*found, **CLOSE)
