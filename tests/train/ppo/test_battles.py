"""The algorithm with `BattlePolicy`, on observations recorded in battles."""

import itertools
import tracemalloc

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer

from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.observations import CONTACT_ROWS, STREAMS, Self
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.possible import Limit
from echelon_env.networks.weights import TABLES
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.ppo.losses import Losses, recurrent_states
from train.ppo.random_env import RandomVecEnv, collect, make_model
from train.ppo.recorded_battles import (
    ROWS,
    SMALL,
    STEPS,
    RecordedBattles,
    losses_of,
    model_with_rollout,
    set_heads,
    whole_batch,
)

VARIANTS = [
    NetworkConfig(encoder=encoder, critic=critic, **SMALL)
    for encoder, critic in itertools.product(("sets", "flat"), ("shared", "separate", "central"))
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


@pytest.mark.parametrize("critic", ["shared", "separate", "central"])
def test_the_first_rollouts_leave_a_trunk_that_the_critic_shares(critic):
    model = model_with_rollout(NetworkConfig(critic=critic, width=16, head=8), critic_warmup=1, ent_coef=0.01)
    own = {id(parameter) for parameter in model.policy.critic_parameters()}
    before = {name: parameter.detach().clone() for name, parameter in model.policy.named_parameters()}
    model.train()
    for name, parameter in model.policy.named_parameters():
        assert torch.equal(parameter, before[name]) != (id(parameter) in own), name


def test_normalised_observations_stay_while_the_critic_warms_up():
    """They would change the policy; the first rollout gives the moments that it starts with."""
    model = model_with_rollout(NetworkConfig(normalize_observations=True, **SMALL), critic_warmup=2, n_epochs=1)
    moments = []
    for _ in range(3):
        model.train()
        moments.append(model.policy.observation_normalizer.moments())
    assert moments[0].any()
    assert torch.equal(moments[1], moments[0])
    assert not torch.equal(moments[2], moments[1])


@pytest.mark.parametrize("network", VARIANTS[:3], ids=IDS[:3])
def test_padding_and_dead_mechs_get_no_gradient(network):
    model = model_with_rollout(network)
    set_heads(model)
    batch = whole_batch(model)
    observations = batch.observations["observation"] if isinstance(batch.observations, dict) else batch.observations
    observations.requires_grad_()
    losses_of(model, batch).total.backward()
    found = observations.grad.abs()
    padded = torch.zeros_like(observations, dtype=torch.bool)
    for name in TABLES:
        stream = STREAMS[name]
        empty = observations[:, STREAMS[f"{name}_mask"].part] <= 0.5
        padded[:, stream.part] = empty.repeat_interleave(stream.row_width, 1)
    assert 0 < int(padded.sum()) < padded.numel()
    assert bool(padded[~batch.actor_mask][:, [STREAMS[name].start for name in TABLES]].all())  # dead mechs see none
    assert not bool(batch.actor_mask.all())
    assert float(found[padded].max()) == 0.0
    # otherwise the assertion above would hold without any gradients
    assert float((found[~padded] > 0).float().mean()) > 0.1


@pytest.mark.parametrize("network", VARIANTS, ids=IDS)
def test_dead_mechs_enter_the_value_loss_only(network):
    model = model_with_rollout(network)
    set_heads(model)
    batch = whole_batch(model)
    dead = ~batch.actor_mask
    assert bool(batch.loss_mask.all())
    assert 0 < int(dead.sum()) < len(dead)

    def numbers(given):
        model.policy.zero_grad()
        result = losses_of(model, given)
        result.total.backward()
        gradient = torch.cat([parameter.grad.flatten() for parameter in model.policy.parameters()])
        return torch.stack([each.sum() for each in result]).detach(), gradient

    def other(field, value):
        changed = getattr(batch, field).clone()
        changed[dead] = value
        return batch._replace(**{field: changed})

    before, gradient = numbers(batch)
    for field, value in (("actions", 5.0), ("old_log_probs", -50.0), ("advantages", 1e6)):
        after, their_gradient = numbers(other(field, value))
        assert torch.equal(after, before), field
        assert torch.equal(their_gradient, gradient), field
    after, their_gradient = numbers(other("returns", 30.0))
    changed = {name for name, one, two in zip(Losses._fields, before, after, strict=True) if one != two}
    assert changed == {"total", "value"}
    assert not torch.allclose(their_gradient, gradient)


def test_advantages_are_normalised_within_classes():
    env = RandomVecEnv(3, 0, observation_space(), action_space())
    settings = {"normalize_advantage": "by_class", "policy_kwargs": {"network": NetworkConfig(**SMALL)}}
    model = make_model(env, steps=3, chunk=1, policy=BattlePolicy, **settings)
    buffer = model.rollout_buffer
    scout, heavy = (STREAMS["self"].start + each for each in (Self.IS_SCOUT, Self.IS_HEAVY))
    buffer.observations[..., scout] = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    buffer.observations[..., heavy] = 1.0 - buffer.observations[..., scout]
    buffer.actor_mask[:] = torch.tensor([[1, 1, 1], [0, 1, 1], [1, 1, 0]]).bool()
    buffer.advantages[:] = torch.tensor([[2.0, 6.0, -1.0], [900.0, 1.0, 1.0], [3.0, 7.0, -900.0]])
    # scouts 2, 6, 7: mean 5, std sqrt(14 / 2); heavies -1, 1, 1, 3: mean 1, std sqrt(8 / 3)
    scouts, heavies = 7.0**0.5, (8 / 3) ** 0.5
    expected = [
        [-3 / scouts, 1 / scouts, -2 / heavies],
        [895 / scouts, 0.0, 0.0],
        [2 / heavies, 2 / scouts, -901 / heavies],
    ]
    found = model.update.normalized_advantages(buffer, buffer.loss_mask(), "by_class")
    torch.testing.assert_close(found, torch.tensor(expected))


def test_a_rollout_without_living_mechs_trains_the_critic_only():
    model = model_with_rollout(NetworkConfig(critic="separate", **SMALL), n_epochs=1)
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


def permuted(observations, order):
    """Observations with their contact rows in another order."""
    result = observations.clone()
    for name in ("contacts", "contacts_mask"):
        stream = STREAMS[name]
        rows = observations[:, stream.part].view(len(observations), len(order), -1)
        result[:, stream.part] = rows[:, order].flatten(1)
    return result


def column(name):
    """The first column of a block in a raw action."""
    widths = [1 if block.kind == "choice" else len(block.entries) for block in BLOCKS]
    return sum(widths[: [block.name for block in BLOCKS].index(name)])


@pytest.mark.parametrize("critic", ["shared", "separate"])
def test_permuting_contacts_permutes_targets(critic):
    model = model_with_rollout(NetworkConfig(critic=critic, **SMALL))
    set_heads(model)
    batch = whole_batch(model)
    order = torch.tensor([3, 0, 4, 2, 1, *range(5, CONTACT_ROWS)])  # the first five can be targets
    target = column("target")
    chosen = batch.actions[:, target].long()
    assert len(chosen.unique()) > 3
    actions = batch.actions.clone()
    new_number = torch.cat([torch.zeros(1, dtype=torch.int64), order[:5].argsort() + 1])
    actions[:, target] = new_number[chosen].float()
    states = type(model.collector.states)(batch.states[:2], batch.states[2:] or batch.states[:2])
    before = model.policy.evaluate(batch.observations, batch.actions, states, batch.sequences)
    after = model.policy.evaluate(permuted(batch.observations, order), actions, states, batch.sequences)
    for name in ("values", "log_probs", "entropy"):
        torch.testing.assert_close(getattr(after, name), getattr(before, name), rtol=1e-5, atol=1e-5)
    wrong = model.policy.evaluate(permuted(batch.observations, order), batch.actions, states, batch.sequences)
    assert not torch.allclose(wrong.log_probs, before.log_probs, atol=1e-2)


@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_updates_are_finite_with_saturated_actions(end):
    model = model_with_rollout(NetworkConfig(**SMALL), n_epochs=1)
    buffer = model.rollout_buffer
    numbers = [
        column(block.name) + entry for block in BLOCKS if block.kind == "numbers" for entry in range(len(block.entries))
    ]
    buffer.actions[..., numbers] = 20.0 * end
    sent = model.policy.environment_actions(buffer.actions.flatten(0, 1))
    assert int((sent == end).all(0).sum()) >= len(numbers)
    batch = whole_batch(model)
    states = type(model.collector.states)(batch.states[:2], batch.states[:2])
    with torch.no_grad():
        before = model.policy.evaluate(batch.observations, batch.actions, states, batch.sequences)
    assert torch.isfinite(before.log_probs).all()
    assert torch.isfinite(before.entropy).all()
    for chunk in range(buffer.num_chunks):  # as if these actions had been sampled
        part = buffer.batch(torch.tensor([chunk]), buffer.advantages, buffer.loss_mask())
        first, row = chunk // ROWS * 4, chunk % ROWS
        order = buffer.actor_mask[first : first + 4, row].argsort(descending=True, stable=True)  # that of the batch
        own = type(states)(part.states[:2], part.states[:2])
        with torch.no_grad():
            log_probs = model.policy.evaluate(part.observations, part.actions, own, part.sequences).log_probs
        buffer.log_probs[first + order, row] = log_probs
    model.train()
    assert model.skipped_minibatches == 0
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.policy.parameters())


# Observation normalisation


def test_each_observation_of_a_living_mech_is_counted_once():
    network = NetworkConfig(normalize_observations=True, **SMALL)
    model = model_with_rollout(network)
    model.train()
    normalizer = model.policy.observation_normalizer
    buffer = model.rollout_buffer
    count = normalizer.moments()[0]
    assert int(count.max()) >= int(count[0]) == int(buffer.actor_mask.sum()) < buffer.actor_mask.numel()


@pytest.mark.parametrize("critic", ["shared", "separate", "central"])
def test_all_outputs_use_normalised_observations(critic):
    model = model_with_rollout(NetworkConfig(critic=critic, normalize_observations=True, **SMALL))
    set_heads(model)
    policy, batch = model.policy, whole_batch(model)
    policy.action_limits.fill_(1e9)  # masks are those of raw observations; here they must not depend on scaled features
    policy.action_limits[:, Limit.LEGS] = -1e9
    policy.observe(batch.observations, batch.actor_mask)

    def outputs_of(observations):
        states = recurrent_states(batch.states)
        result = policy.evaluate(observations, batch.actions, states, batch.sequences)
        return result.values, result.log_probs, result.entropy

    normalizer, raw = policy.observation_normalizer, batch.observations
    normal = {**raw, "observation": normalizer(raw["observation"])} if critic == "central" else normalizer(raw)
    found = outputs_of(raw)
    policy.observation_normalizer = None
    for ours, by_hand, without in zip(found, outputs_of(normal), outputs_of(raw), strict=True):
        assert torch.equal(ours, by_hand)
        assert not torch.allclose(ours, without, atol=1e-2)


def test_moments_are_updated_at_the_end_of_an_update():
    model = model_with_rollout(NetworkConfig(normalize_observations=True, **SMALL), n_epochs=1)
    set_heads(model)
    for _ in range(2):
        collect(model)
        before = model.policy.observation_normalizer.moments()
        model.train()
        # of the only minibatch, before its update
        assert model.logger.name_to_value["train/approx_kl"] == pytest.approx(0.0, abs=1e-6)
        assert not torch.equal(model.policy.observation_normalizer.moments(), before)


# Memory


def bytes_of(*values):
    """Bytes of all tensors in nested tuples and dicts."""
    total = 0
    for value in values:
        if isinstance(value, torch.Tensor):
            total += value.nbytes
        elif isinstance(value, (tuple, dict)):
            total += bytes_of(*(value.values() if isinstance(value, dict) else value))
    return total


def with_peak(make):
    """The result of a function, and the peak of its NumPy memory in bytes."""
    tracemalloc.start()
    try:
        return make(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_buffer_takes_less_memory_than_sb3_contribs():
    steps, minibatch = 64, 256
    network = NetworkConfig()
    env = RecordedBattles()
    model = make_model(env, steps=steps, chunk=16, policy=BattlePolicy, policy_kwargs={"network": network})
    buffer = model.rollout_buffer
    ours = bytes_of(vars(buffer))
    batch = buffer.batch(torch.arange(minibatch // 16), buffer.advantages, buffer.loss_mask())
    our_peak = ours + bytes_of(tuple(batch), buffer.loss_mask())

    def stock():
        states = (steps, 1, ROWS, network.width)
        actions = spaces.Box(-1, 1, model.policy.raw_action()[0])
        made = RecurrentRolloutBuffer(steps, env.observation_space, actions, states, "cpu", n_envs=ROWS)
        made.full = True
        return made

    made, _ = with_peak(stock)
    theirs = sum(array.nbytes for array in vars(made).values() if isinstance(array, np.ndarray))
    _, copies = with_peak(lambda: next(made.get(minibatch)))  # the first minibatch flattens the arrays, by a copy
    assert ours <= 0.7 * theirs  # most of it are observations, which both buffers have
    assert our_peak <= 0.6 * (theirs + copies)
    print(f"steady {ours / theirs:.3f}, peak {our_peak / (theirs + copies):.3f}, {ours} {theirs} {our_peak} {copies}")


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
