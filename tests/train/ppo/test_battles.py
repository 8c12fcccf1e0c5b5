"""The algorithm with `BattlePolicy`, on observations recorded in battles."""

import itertools

import pytest
import torch

from echelon_env.networks.config import NetworkConfig
from train.ppo.random_env import collect
from train.ppo.recorded_battles import (
    ROWS,
    SMALL,
    STEPS,
    losses_of,
    model_with_rollout,
    set_heads,
    whole_batch,
)

VARIANTS = [
    NetworkConfig(encoder=encoder, critic=critic, **SMALL)
    for encoder, critic in itertools.product(("sets", "flat"), ("shared", "ippo", "central", "mappo"))
]
IDS = [f"{each.encoder}-{each.critic}" for each in VARIANTS]


@pytest.mark.parametrize("network", VARIANTS, ids=IDS)
def test_every_parameter_receives_a_gradient(network):
    model = model_with_rollout(network, batch_size=STEPS * ROWS // 4, n_epochs=2, ent_coef=0.01)
    touched = dict.fromkeys((name for name, _ in model.policy.named_parameters()), 0.0)
    outputs = torch.zeros(len(model.policy.action_net.bias))
    step = model.policy.optimizer.step

    def watch():
        for name, parameter in model.policy.named_parameters():
            assert parameter.grad is not None and bool(torch.isfinite(parameter.grad).all()), name
            touched[name] = max(touched[name], float(parameter.grad.abs().max()))
        torch.maximum(outputs, model.policy.action_net.weight.grad.abs().amax(1), out=outputs)
        step()

    model.policy.optimizer.step = watch
    model.train()
    assert min(touched.values()) > 0.0, [name for name, size in touched.items() if size == 0.0]
    assert outputs.min() > 0.0, outputs
    assert model.skipped_minibatches == 0


@pytest.mark.parametrize("critic", ["shared", "ippo", "central", "mappo"])
def test_the_first_rollouts_leave_a_trunk_that_the_critic_shares(critic):
    model = model_with_rollout(NetworkConfig(critic=critic, width=16, head=8), critic_warmup=1, ent_coef=0.01)
    own = {id(parameter) for parameter in model.policy.critic_parameters()}
    before = {name: parameter.detach().clone() for name, parameter in model.policy.named_parameters()}
    model.train()
    for name, parameter in model.policy.named_parameters():
        assert torch.equal(parameter, before[name]) != (id(parameter) in own), name


def test_a_rollout_without_living_mechs_trains_the_critic_only():
    model = model_with_rollout(NetworkConfig(critic="ippo", **SMALL), n_epochs=1)
    buffer, dead = model.rollout_buffer, torch.as_tensor(model.env._seen[~model.env.alive])
    buffer.observations.copy_(dead[torch.arange(STEPS * ROWS) % len(dead)].view(STEPS, ROWS, -1))
    buffer.actor_mask[:] = False
    before = {name: parameter.detach().clone() for name, parameter in model.policy.named_parameters()}
    model.train()
    moved = {name for name, each in model.policy.named_parameters() if not torch.equal(each, before[name])}
    critic = {id(parameter) for parameter in model.policy.critic_parameters()}
    assert model.skipped_minibatches == 0
    assert "value_net.weight" in moved
    assert all(id(parameter) in critic for name, parameter in model.policy.named_parameters() if name in moved)
    logged = model.logger.name_to_value
    assert logged["train/advantage_std"] == logged["train/active_share"] == logged["train/entropy"] == 0.0


# Memory


@pytest.mark.parametrize("network", VARIANTS, ids=IDS)
def test_bfloat16_encoding_gives_ratios_of_1_before_an_update(network):
    """Rollout and training round in the same way, and only in the encoders."""
    model = model_with_rollout(network)
    set_heads(model)
    model.policy.encoding_dtype = torch.bfloat16
    lstm_dtypes = []
    model.policy.lstm_actor.register_forward_hook(lambda module, given, result: lstm_dtypes.append(result[0].dtype))
    collect(model)
    assert abs(float(losses_of(model, whole_batch(model)).approx_kl)) < 1e-4
    assert set(lstm_dtypes) == {torch.float32}
    model.policy.encoding_dtype = None
    assert float(losses_of(model, whole_batch(model)).approx_kl) > 1e-6  # bfloat16 did round
