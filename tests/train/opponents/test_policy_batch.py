"""Stacked policies act as each does alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.layout.parts import NUM_PARTS
from echelon_env.networks.config import NetworkConfig
from echelon_train.opponents.actor import Actor, uniform
from echelon_train.opponents.policy_batch import (
    RECORDED_SLOTS,
    RECORDED_STEP,
    PolicyBatch,
    StackedPolicies,
    kept_places,
)
from echelon_train.policy import build_policy
from echelon_train.policy.choices import environment_actions
from train.ppo.test_cuda_graphs import OnDevice

SMALL = {"width": 12, "head": 8, "set_width": 4, "map_channels": 2}
ROWS = 6
VARIANTS = [
    NetworkConfig(encoder=encoder, critic=critic, memory=memory, **SMALL)
    for encoder, critic, memory in (
        ("sets", "shared", True), ("flat", "ippo", True), ("sets", "central", True), ("sets", "ippo", False),
    )
]  # fmt: skip
IDS = [f"{each.encoder}-{each.critic}-{each.memory}" for each in VARIANTS]


def moments(seed):
    """Observations (3, ROWS, D), recurrent states and noise; some rows are dead."""
    generator = torch.Generator().manual_seed(seed)
    seen = torch.rand(3, ROWS, OBSERVATION_DIM, generator=generator).round(decimals=1)
    seen[..., STREAMS["self"].start + Self.ALIVE] = (torch.rand(3, ROWS, generator=generator) < 0.7).float()
    states = torch.randn(2, 3, ROWS, SMALL["width"], generator=generator)
    return seen, (states[0], states[1]), torch.randn(3, ROWS, NUM_PARTS, generator=generator)


def actors_of(network):
    made = [Actor(build_policy(network, seed)) for seed in range(2)]
    for actor in made:
        actor.policy.set_training_mode(False)
    return made


def stacked_of(actors):
    stacked = StackedPolicies(actors[0])
    stacked.allocate(len(actors))
    for slot, actor in enumerate(actors):
        stacked.load([slot], actor)
    return stacked


@pytest.mark.parametrize("network", VARIANTS, ids=IDS)
def test_every_slot_acts_as_its_policy(network):
    first, second = actors_of(network)
    slots = [first, second, second]
    stacked = stacked_of(slots)
    seen, state, noise = moments(1)
    actions, (hidden, cell) = stacked.act(seen, state, noise)
    for slot, policy in enumerate(actor.policy for actor in slots):
        with torch.no_grad():
            own = (state[0][slot][None], state[1][slot][None])
            distribution, after = policy.get_distribution(seen[slot], own, torch.zeros(ROWS))
            expected = environment_actions(distribution.sample(uniform(noise[slot])))
        torch.testing.assert_close(actions[slot], expected, rtol=1e-5, atol=1e-5)
        living = policy.actor_mask(seen[slot])  # the recurrent state of the dead does not matter
        torch.testing.assert_close(hidden[slot][living], after[0][0][living], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(cell[slot][living], after[1][0][living], rtol=1e-5, atol=1e-5)
    assert not torch.equal(actions[0], actions[1])
    assert not any(each.requires_grad for each in (actions, hidden, cell))


def test_other_shapes_are_refused():
    stacked = stacked_of(actors_of(VARIANTS[0]))
    with pytest.raises(ValueError, match="of the kind"):
        stacked.load([0], Actor(build_policy(VARIANTS[1], 0)))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("network", VARIANTS, ids=IDS)
def test_recorded_decisions_are_the_same(network, device, monkeypatch):
    """While battles end, and others begin against other policies, some of them against a player of another batch.

    A single policy plays at first; later there are more slots.
    """
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    battles, team = 40, 2
    policies = [*(actor for _ in range(6) for actor in actors_of(network)), None]
    batches = [
        PolicyBatch(policies[0], battles, team, torch.device("cpu")),
        PolicyBatch(policies[0], battles, team, torch.device(device), recorded=True),
    ]
    rng = np.random.default_rng(0)
    played, slots = np.zeros(battles, np.int64), []
    for step in range(7):
        ended = rng.random(battles) < (0.0 if step == 0 else 0.7)
        played[ended] = rng.integers(len(policies), size=ended.sum())
        if step == 3:
            ended[:], played[:] = True, 1
        seen = rng.random((battles * team, OBSERVATION_DIM)).astype(np.float32)
        if step == 4:
            with torch.no_grad():
                policies[1].policy.action_net.bias.add_(0.5)
        actions = []
        for batch in batches:
            batch.arrange([policies[each] for each in played])
            if step == 4:
                batch.clear()
                batch.arrange([policies[each] for each in played])
            batch.forget(np.repeat(ended, team))
            torch.manual_seed(step)
            written = np.full((battles * team, 27), 7.0, np.float32)
            batch.act(seen, written)
            actions.append(written)
        np.testing.assert_allclose(*actions, rtol=1e-4, atol=1e-4 if device == "cpu" else 1e-3)
        others = np.repeat(played == len(policies) - 1, team)
        assert (actions[0][others] == 7.0).all() and (abs(actions[0][~others]) <= 1.0).all()
        states = [batch.state.cpu()[:, torch.from_numpy(~others)] for batch in batches]
        torch.testing.assert_close(*states, rtol=1e-4, atol=1e-4 if device == "cpu" else 1e-3)
        slots.append(len(batches[1]._slots))
        assert len(batches[1]._compute._recordings) == 1
    assert slots[0] == RECORDED_SLOTS < slots[2] == slots[-1], "more policies take more slots, which stay"
    assert slots[-1] % RECORDED_STEP == 0


def test_a_policy_that_changes_while_it_plays_no_battle_is_copied_again():
    network = VARIANTS[0]
    first, second = actors_of(network)
    batch = PolicyBatch(first, 4, 1, torch.device("cpu"), recorded=True)
    (bias,) = ([name] for name in batch._stacked._kinds if name.endswith("action_net.bias"))
    for leave in (lambda: batch.arrange([second, None, None, None]), batch.clear):
        batch.arrange([first] * 4)
        leave()
        with torch.no_grad():
            first.policy.action_net.bias.add_(1.0)
        batch.arrange([first] * 4)
        slots = [slot for slot, each in enumerate(batch._slots) if each is first]
        assert len(slots) == 4
        for slot in slots:
            assert batch._stacked._weights[bias[0]][slot].equal(first.policy.action_net.bias)


def test_decisions_are_made_in_inference_mode():
    actor = actors_of(VARIANTS[0])[0]
    batch = PolicyBatch(actor, 4, 1, torch.device("cpu"))
    batch.arrange([actor] * 4)
    noted, stock = [], batch._compute
    batch._compute = lambda *given: noted.append(torch.is_inference_mode_enabled()) or stock(*given)
    batch.act(np.zeros((4, OBSERVATION_DIM), np.float32), np.zeros((4, 27), np.float32))
    assert noted == [True]


@pytest.mark.parametrize("network", VARIANTS, ids=IDS)
def test_a_recorded_decision_does_not_wait_for_the_gpu(network):
    """On the device "meta" nothing can be read, and no operation gets a tensor of the CPU."""
    actor = actors_of(network)[0]
    batch = PolicyBatch(actor, 40, 2, torch.device("meta"), recorded=True)
    batch.arrange([actor] * 40)
    arguments = torch.zeros(80, OBSERVATION_DIM), batch._state, batch._index, torch.zeros(81, NUM_PARTS)
    arguments = [each.to("meta") for each in arguments]
    with torch.inference_mode():
        batch._act(*arguments)  # makes the tables
        with OnDevice():
            batch._act(*arguments)


@given(st.lists(st.sampled_from("abc-"), min_size=9, max_size=12), st.lists(st.sampled_from("abcd"), max_size=9))
def test_what_is_wanted_keeps_its_places(present, wanted):
    places = kept_places(present, wanted)
    assert len(set(places)) == len(wanted)
    for each in set(wanted):
        own = [present[place] for place, name in zip(places, wanted, strict=True) if name == each]
        assert own.count(each) == min(present.count(each), wanted.count(each))
