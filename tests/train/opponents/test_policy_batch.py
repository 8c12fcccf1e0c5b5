"""Stacked policies act as each does alone."""

import itertools

import pytest
import torch

from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.networks.config import NetworkConfig
from echelon_train.opponents.policy_batch import StackedPolicies
from echelon_train.policy import build_policy
from echelon_train.policy.raw_actions import RAW_DIM, environment_actions

SMALL = {"width": 12, "head": 8, "set_width": 4, "map_channels": 2}
ROWS = 6
VARIANTS = [
    NetworkConfig(encoder=encoder, critic=critic, normalize_observations=normalize, auxiliary=normalize, **SMALL)
    for encoder, critic, normalize in itertools.product(
        ("sets", "flat"), ("shared", "separate", "central"), (False, True)
    )
]
VARIANTS += [NetworkConfig(memory=False, critic=critic, **SMALL) for critic in ("shared", "separate")]


def moments(seed):
    """Observations (3, ROWS, D), recurrent states, starts and noise; some rows are dead."""
    generator = torch.Generator().manual_seed(seed)
    seen = torch.rand(3, ROWS, OBSERVATION_DIM, generator=generator).round(decimals=1)
    seen[..., STREAMS["self"].start + Self.ALIVE] = (torch.rand(3, ROWS, generator=generator) < 0.7).float()
    states = torch.randn(2, 3, ROWS, SMALL["width"], generator=generator)
    starts = (torch.rand(3, ROWS, generator=generator) < 0.3).float()
    return seen, (states[0], states[1]), starts, torch.randn(3, ROWS, RAW_DIM, generator=generator)


def policies_of(network):
    made = [build_policy(network, seed) for seed in range(2)]
    for policy in made:
        policy.set_training_mode(False)
        seen = moments(5)[0].flatten(0, 1)
        policy.observe({"observation": seen} if network.critic == "central" else seen, policy.actor_mask(seen))
    return made


@pytest.mark.parametrize(
    "network", VARIANTS, ids=lambda each: f"{each.encoder}-{each.critic}-{each.auxiliary}-{each.memory}"
)
def test_every_slot_acts_as_its_policy(network):
    first, second = policies_of(network)
    stacked = StackedPolicies(network)
    slots = [first, second, second]
    stacked.set_slots(slots)
    seen, state, starts, noise = moments(1)
    actions, (hidden, cell) = stacked.act(seen, state, starts, noise)
    for slot, policy in enumerate(slots):
        with torch.no_grad():
            own = (state[0][slot][None], state[1][slot][None])
            distribution, after = policy.get_distribution(seen[slot], own, starts[slot])
            expected = environment_actions(distribution.sample(noise[slot]))
        torch.testing.assert_close(actions[slot], expected, rtol=1e-5, atol=1e-5)
        living = policy.actor_mask(seen[slot])  # the recurrent state of the dead does not matter
        torch.testing.assert_close(hidden[slot][living], after[0][0][living], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(cell[slot][living], after[1][0][living], rtol=1e-5, atol=1e-5)
    assert not torch.equal(actions[0], actions[1])
    assert actions.is_inference() and hidden.is_inference() and cell.is_inference()


def test_slots_are_copies():
    (policy,) = policies_of(VARIANTS[0])[:1]
    stacked = StackedPolicies(VARIANTS[0])
    stacked.set_slots([policy])
    seen, state, starts, noise = (
        each[:1] if isinstance(each, torch.Tensor) else (each[0][:1], each[1][:1]) for each in moments(1)
    )
    before = stacked.act(seen, state, starts, noise)[0]
    with torch.no_grad():
        policy.action_net.bias.add_(1.0)
    torch.testing.assert_close(stacked.act(seen, state, starts, noise)[0], before, rtol=0, atol=0)
    stacked.set_slots([policy])
    assert not torch.equal(stacked.act(seen, state, starts, noise)[0], before)


def test_no_policies_and_other_shapes_are_refused():
    stacked = StackedPolicies(VARIANTS[0])
    with pytest.raises(ValueError, match="at least one"):
        stacked.set_slots([])
    with pytest.raises(ValueError, match="of the shape"):
        stacked.set_slots([build_policy(VARIANTS[1], 0)])
