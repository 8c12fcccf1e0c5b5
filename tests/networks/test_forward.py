"""The kernel's forward pass is PyTorch's in float64, and its actions follow the distribution that it computes."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import special, stats

from echelon_env import BattleEngine
from echelon_env.champions import CHAMPIONS, champion_folder
from echelon_env.evaluate.networks import NetworkPolicy
from echelon_env.evaluate.players import ACTION_MODES, BattleNoise
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import OBSERVATION_DIM, STREAMS, Self
from echelon_env.layout.parts import ALL_PARTS, CHOICE_STARTS, CHOICES
from echelon_env.networks.config import NetworkConfig
from echelon_env.networks.weights import CheckpointError, load_network
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.policy.action_masks import action_masks
from echelon_train.policy.choices import environment_actions, nearest_choices
from echelon_train.policy.distributions import ActionDistribution
from echelon_train.tensor_files import weights_of

CONFIGS = {
    "sets": NetworkConfig(),
    "flat": NetworkConfig(encoder="flat", width=24, head=8),
    "messages": NetworkConfig(communicate=True, width=40, set_width=12, map_channels=3),
    "own critic": NetworkConfig(critic="ippo", width=16),
    "own critic on the state": NetworkConfig(critic="mappo", width=16),
    "without memory": NetworkConfig(memory=False, width=40),
}


def lively(config: NetworkConfig) -> BattlePolicy:
    """A policy with large weights in every layer, so that a wrong one changes the result."""
    policy = build_policy(config, 3)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in policy.named_parameters():
            if name.endswith("bias") or "fusion.1" in name:
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
        policy.action_net.weight.mul_(100.0)
        if policy.target_query is not None:
            policy.target_query.weight.mul_(100.0)
    policy.set_training_mode(False)
    return policy


def arrays(policy: BattlePolicy) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in weights_of(policy).items()}


@pytest.mark.parametrize("name", CONFIGS)
def test_log_probabilities_and_masks_are_pytorchs(name):
    assert_equal_forward_passes(lively(CONFIGS[name]), BattleEngine("skirmish", 4))


@pytest.mark.parametrize("name", CHAMPIONS)
def test_a_champions_log_probabilities_and_masks_are_pytorchs(name):
    policy = load_checkpoint(champion_folder(name)).policy
    policy.set_training_mode(False)
    assert_equal_forward_passes(policy, BattleEngine(name, 4))


def assert_equal_forward_passes(policy: BattlePolicy, engine: BattleEngine) -> None:
    """Play 30 decisions by the kernel, and compare it with PyTorch in float64."""
    config, team = policy.network, engine.num_mechs
    observations = engine.reset([1, 2, 3, 4]).reshape(-1, OBSERVATION_DIM).copy()
    subject = NetworkPolicy(
        load_network(config, arrays(policy)), engine.config, BattleNoise([1, 2, 3, 4], [0], team), action_mode="sampled"
    )
    policy.set_battle(engine.config)
    exact, states = policy.double(), [torch.zeros(1, len(observations), config.width, dtype=torch.float64)] * 2
    dead = 0
    for decision in range(30):
        actions = subject.act(observations)
        seen = torch.from_numpy(observations)
        with torch.inference_mode():
            start = torch.full((len(seen),), float(decision == 0), dtype=torch.float64)
            expected, states = exact.get_distribution(seen.double(), tuple(states), start)
            masks = action_masks(seen, exact.action_limits.float(), off=config.blocks_off)
            np.testing.assert_array_equal(subject.possible, masks.numpy())
            choices = nearest_choices(torch.from_numpy(actions))
            np.testing.assert_array_equal(environment_actions(choices).numpy(), actions)
            found = ActionDistribution(torch.from_numpy(subject.logits).double(), masks)
            living = seen[:, Self.ALIVE] > 0.5
            blocks = expected.block_log_probs(choices)[living]
            torch.testing.assert_close(found.block_log_probs(choices)[living], blocks, rtol=1e-5, atol=1e-5)
            assert blocks.min() > -1000.0, "what is impossible is never chosen"
        dead += int((~living).sum())
        engine.step(actions.reshape(4, team, -1))
        observations = engine.observations.reshape(-1, OBSERVATION_DIM).copy()
        if decision > 15:
            observations[3] = 0.0  # dies
    assert dead >= 10


def still(rows: int) -> np.ndarray:
    """Observations of mechs that can do everything."""
    observations = np.zeros((rows, OBSERVATION_DIM), np.float32)
    own = observations[:, STREAMS["self"].part]
    own[:, [Self.ALIVE, Self.LEGS, Self.HAS_ELECTRONICS]] = 1.0
    own[:, Self.HAS_PRIMARY : Self.HAS_PRIMARY + 4] = 1.0
    observations[:, STREAMS["contacts_mask"].part] = 1.0
    return observations


def constant(communicate: bool = True) -> tuple[NetworkConfig, BattlePolicy]:
    """A network with the same logits for every observation."""
    config = NetworkConfig(encoder="flat", width=8, head=8, communicate=communicate)
    policy = build_policy(config, 0)
    with torch.no_grad():
        policy.action_net.weight.zero_()
        policy.action_net.bias.copy_(torch.linspace(-1.5, 1.5, CHOICES))
    return config, policy


def made(config: NetworkConfig, policy: BattlePolicy, rows: int, **arguments: str) -> NetworkPolicy:
    network = load_network(config, arrays(policy))
    return NetworkPolicy(network, BattleEngine("duel").config, BattleNoise(range(rows), [5], 1), **arguments)


def test_samples_follow_the_distribution():
    config, policy = constant()
    subject, rows = made(config, policy, 2000), still(2000)
    choices = nearest_choices(torch.from_numpy(np.concatenate([subject.act(rows) for _ in range(10)]))).numpy()
    logits, possible = subject.logits[0].astype(np.float64), subject.possible[0]
    assert possible.all()
    for column, part in enumerate(ALL_PARTS):
        start, size = CHOICE_STARTS[part.name], len(part.values)
        counts = np.bincount(choices[:, column], minlength=size)
        assert stats.chisquare(counts, special.softmax(logits[start : start + size]) * len(choices)).pvalue > 1e-4


@pytest.mark.parametrize("mode", ACTION_MODES)
def test_what_is_impossible_is_never_chosen(mode):
    config, policy = constant(communicate=False)
    rows = still(50)
    rows[:, STREAMS["contacts_mask"].start + 1 : STREAMS["contacts_mask"].stop] = 0.0
    rows[:25, Self.HAS_PRIMARY] = 0.0
    rows[40:] = 0.0
    subject = made(config, policy, 50, action_mode=mode)
    actions = np.stack([subject.act(rows) for _ in range(20)])
    assert not actions[..., Action.TARGET_1 : Action.TARGET_4 + 1].any()
    assert actions[:, :40, Action.TARGET_0].any() or mode == "deterministic"
    assert not actions[:, :25, Action.PRIMARY].any()
    assert not actions[..., Action.COMM_0 :].any()
    assert (actions[..., Action.DISPLAY_NEAREST] == 1.0).all()
    assert not np.delete(actions[:, 40:], Action.DISPLAY_NEAREST, axis=2).any(), "the dead do nothing"


def test_the_mode_is_the_most_probable_action():
    config, policy = constant()
    subject = made(config, policy, 1, action_mode="deterministic")
    (found,) = nearest_choices(torch.from_numpy(subject.act(still(1)))).tolist()
    for column, part in enumerate(ALL_PARTS):
        start, size = CHOICE_STARTS[part.name], len(part.values)
        assert found[column] == subject.logits[0, start : start + size].argmax()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("action_net.bias"), "'action_net.bias' is missing"),
        (
            lambda weights: weights.update({"action_net.bias": np.zeros(3, np.float32)}),
            r"expected \(101,\) float32",
        ),
        (lambda weights: weights.update({"action_net.bias": np.zeros(101)}), r"got \(101,\) float64"),
        (
            lambda weights: [weights[f"lstm_actor.bias_{each}_l0"].fill(3e38) for each in ("ih", "hh")],
            "'lstm_bias' is not finite in float32",
        ),
    ],
)
def test_tensors_that_are_not_a_networks_are_refused(change, message):
    weights = arrays(build_policy(NetworkConfig(), 0))
    change(weights)
    with pytest.raises(CheckpointError, match=message):
        load_network(NetworkConfig(), weights)


def test_the_shape_does_not_depend_on_what_only_the_critic_has():
    config = NetworkConfig(critic="central")
    weights = arrays(build_policy(config, 0))
    actor = {name: weight for name, weight in weights.items() if not name.startswith(("battle_encoder", "value_net"))}
    assert len(actor) < len(weights)
    both = [load_network(dataclasses.replace(config), each) for each in (weights, actor)]
    np.testing.assert_array_equal(both[0].fusion, both[1].fusion)
