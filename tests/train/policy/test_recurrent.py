"""The policy for battles: recurrent states, optional inputs and outputs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sb3_contrib.common.recurrent.type_aliases import RNNStates

from echelon_env.layout.actions import BLOCKS
from echelon_env.layout.parts import NUM_PARTS
from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import build_policy
from echelon_train.policy.choices import neutral_choices
from echelon_train.policy.sequences import Sequences
from train.policy.battle_data import battle_data

STEPS, ROWS, WIDTH = 6, 5, 8
LIFETIMES = [6, 3, 0, 1, 6]  # steps that each row lives
NETWORKS = [
    NetworkConfig(width=WIDTH, head=8, set_width=4, map_channels=2, encoder=encoder, critic=critic)
    for encoder, critic in (
        ("sets", "shared"),
        ("sets", "ippo"),
        ("flat", "shared"),
        ("sets", "mappo"),
        ("sets", "central"),
    )
]
each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: f"{network.encoder}-{network.critic}")


def policy_of(network):
    """A policy with random heads; by default they start near zero and hardly depend on their inputs."""
    policy = build_policy(network, 1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if name.startswith(("action_net.weight", "value_net", "target_query")):
                parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return policy


def random_observations(network, living, seed=0):
    """Observations for the mask `living` (rows,) bool; for a central critic with random global states."""
    generator = torch.Generator().manual_seed(seed)
    seen, alive, states = battle_data()
    rows = torch.zeros(len(living), seen.shape[1])
    for lives in (False, True):
        pool, count = seen[alive == lives], int((living == lives).sum())
        rows[living == lives] = pool[torch.randint(len(pool), (count,), generator=generator)]
    if not network.sees_state:
        return rows
    return {"observation": rows, "state": states[torch.randint(len(states), (len(living),), generator=generator)]}


def random_states(network, seed, rows=ROWS):
    """Random recurrent states."""
    generator = torch.Generator().manual_seed(seed)
    own = 4 if network.critic != "shared" else 2
    parts = [torch.randn(1, rows, WIDTH, generator=generator) for _ in range(own)]
    return RNNStates(tuple(parts[:2]), tuple(parts[2:]) or tuple(parts[:2]))


def remembers(network):
    """Whether the critic has a memory."""
    return network.critic != "mappo"


def zero_states(states):
    return RNNStates(*(tuple(torch.zeros_like(part) for part in pair) for pair in states))


def living_mask():
    """(STEPS * ROWS,) bool: living mechs, step by step."""
    return (torch.arange(STEPS)[:, None] < torch.tensor(LIFETIMES)).flatten()


SEQUENCES = Sequences(STEPS, ROWS, torch.zeros(ROWS), None)


@each_network
def test_dead_mechs_have_no_memory_step_by_step(network):
    policy, living = policy_of(network), torch.tensor([True, False, True, False, True])
    seen, starts = random_observations(network, living), torch.zeros(ROWS)
    one, other = random_states(network, 1), random_states(network, 2)
    values = [policy.predict_values(seen, states.vf, starts) for states in (one, other)]
    latent, latent_of_other = (policy._trunk(seen, states.pi, starts)[0] for states in (one, other))
    assert torch.equal((values[0] != values[1])[:, 0], living & remembers(network))
    assert torch.equal((latent != latent_of_other).any(1), living)
    features, _, _ = policy._trunk(seen, zero_states(one).pi, torch.ones(ROWS))
    assert torch.equal(latent[~living], features[~living])


@each_network
def test_an_episode_starts_with_zero_states(network):
    policy, living = policy_of(network), living_mask()
    states, starts = random_states(network, 1), torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0])
    first = random_observations(network, living[:ROWS])
    actions, values, _, after = policy.forward(first, states, starts, deterministic=True)
    fresh = policy.forward(first, zero_states(states), torch.zeros(ROWS), deterministic=True)
    new = starts > 0
    assert torch.equal(actions[new], fresh[0][new])
    assert torch.equal(values[new], fresh[1][new])
    assert all(
        torch.equal(ours[:, new], theirs[:, new])
        for pair, their_pair in zip(after, fresh[3], strict=True)
        for ours, theirs in zip(pair, their_pair, strict=True)
    )
    # row 1 lives and continues
    assert torch.equal(values[1], fresh[1][1]) != remembers(network)
    seen, choices = random_observations(network, living), torch.zeros(len(living), NUM_PARTS)
    started = policy.evaluate(seen, choices, states, SEQUENCES._replace(starts=starts))
    empty = policy.evaluate(seen, choices, zero_states(states), SEQUENCES)
    same = (started.values == empty.values).view(STEPS, ROWS)
    assert bool(same[:, new].all())
    assert bool(same[0, 1]) != remembers(network)


@each_network
def test_evaluating_sequences_equals_acting_step_by_step(network):
    policy, living, states = policy_of(network), living_mask(), random_states(network, 1)
    starts = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])
    seen = random_observations(network, living)
    steps = [
        {name: part[step * ROWS :][:ROWS] for name, part in seen.items()}
        if isinstance(seen, dict)
        else seen[step * ROWS :][:ROWS]
        for step in range(STEPS)
    ]
    torch.manual_seed(3)
    played, memory = [], states
    with torch.no_grad():
        for step, observations in enumerate(steps):
            step_starts = starts if step == 0 else torch.zeros(ROWS)
            *what, memory = policy.forward(observations, memory, step_starts)
            played.append(what)
        actions, values, log_probs = (torch.cat(each) for each in zip(*played, strict=True))
        active = living.nonzero().flatten()
        evaluation = policy.evaluate(seen, actions, states, SEQUENCES._replace(starts=starts), active)
    torch.testing.assert_close(evaluation.values, values, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(evaluation.log_probs, log_probs[living], rtol=1e-5, atol=1e-5)
    assert (actions[~living] == neutral_choices(actions.device)).all()
    assert not log_probs[~living].any()


@each_network
def test_values_are_evaluated_without_living_mechs(network):
    policy, living = policy_of(network), torch.zeros(STEPS * ROWS, dtype=torch.bool)
    seen, states = random_observations(network, living), random_states(network, 1)
    none = torch.zeros(0, dtype=torch.int64)
    evaluation = policy.evaluate(seen, torch.zeros(len(living), NUM_PARTS), states, SEQUENCES, none)
    assert evaluation.values.shape == (len(living), 1)
    assert evaluation.log_probs.shape == evaluation.entropy.shape == (0, len(BLOCKS))
    evaluation.values.sum().backward()
    assert bool(policy.value_net.weight.grad.any())
    first = random_observations(network, living[:ROWS])
    actions, values, log_probs, after = policy.forward(first, states, torch.zeros(ROWS))
    assert (actions == neutral_choices(actions.device)).all() and not log_probs.any()
    assert bool(torch.isfinite(values).all())
    assert not any(part.any() for part in after.pi)


# A policy with a central critic acts without the global state


def test_a_policy_with_a_central_critic_acts_on_flat_observations():
    network = NETWORKS[-1]
    policy = policy_of(network)
    plain = random_observations(network, torch.tensor([True] * 4))["observation"].numpy()
    state = np.ones((4, *policy.observation_space["state"].shape), np.float32)
    expected, memory = policy.predict({"observation": plain, "state": state}, deterministic=True)
    actions, states = policy.predict(plain, deterministic=True)
    np.testing.assert_array_equal(actions, expected)
    np.testing.assert_array_equal(states, memory)
    _, later = policy.predict(plain, state=states, episode_start=np.zeros(4, np.bool_), deterministic=True)
    assert not np.array_equal(later, states), "it goes on from the states"
    one, _ = policy.predict(plain[2], deterministic=True)
    np.testing.assert_allclose(one, actions[2], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="shape"):
        policy.predict(plain[:, :-1])


def forgetful(network):
    """A policy without memory, and one with the same weights and memory."""
    policies = policy_of(replace(network, memory=False)), policy_of(network)
    for policy in policies:
        policy.set_training_mode(False)
    return policies


@each_network
def test_without_memory_every_decision_is_like_the_first_of_an_episode(network):
    policy, with_memory = forgetful(network)
    living = torch.tensor([True, False, True, False, True])
    seen, states = random_observations(network, living), random_states(network, 1)
    found = policy.forward(seen, states, torch.zeros(ROWS), deterministic=True)
    expected = with_memory.forward(seen, states, torch.ones(ROWS), deterministic=True)
    for ours, theirs in zip(found[:3], expected[:3], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert all(not part.any() for pair in found[3] for part in pair)
    assert [part.shape for pair in found[3] for part in pair] == [part.shape for pair in expected[3] for part in pair]
    values = policy.predict_values(seen, states.vf, torch.zeros(ROWS))
    torch.testing.assert_close(values, found[1], rtol=1e-5, atol=1e-6)
    remembering = with_memory.forward(seen, states, torch.zeros(ROWS), deterministic=True)
    assert torch.allclose(remembering[1], found[1]) != remembers(network)
