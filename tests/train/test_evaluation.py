import json
from collections.abc import Callable

import numpy as np
import pytest
import torch

from echelon_env import ConfigError, opponents
from echelon_env.actions import ACTION_DIM
from echelon_env.observations import OBSERVATION_DIM
from echelon_train.config import NetworkConfig
from echelon_train.evaluation import Evaluation, evaluate, play, wilson
from echelon_train.players import (
    BASELINES,
    BLOCK,
    BattleNoise,
    Contender,
    NetworkPlayer,
    baseline_contender,
    network_contender,
)
from echelon_train.policy import build_policy
from echelon_train.seeds import EVALUATION_SEEDS

from .small import small_battle

NETWORK = NetworkConfig(width=8, head=8)


def lively_policy(seed: int = 0):
    """A policy whose actions are large and hang on every bit of its state."""
    policy = build_policy(NETWORK, seed)
    with torch.no_grad():
        policy.action_net.weight.mul_(200.0)
    return policy


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # Agresti and Coull (1998), and by hand from the closed form with z = 1.959964
        (0, 10, 0.0, 0.277533),
        (1, 10, 0.017876, 0.404150),
        (5, 10, 0.236593, 0.763407),
        (10, 10, 0.722467, 1.0),
        (120, 200, 0.530816, 0.665377),
    ],
)
def test_wilson_intervals(count, total, low, high):
    share = wilson(count, total)
    z = 1.959963984540054
    p = count / total
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * np.sqrt(p * (1 - p) / total + z * z / (4 * total**2))
    assert (share.count, share.share) == (count, p)
    assert share.low == pytest.approx(max(0.0, centre - half), abs=1e-9)
    assert share.high == pytest.approx(min(1.0, centre + half), abs=1e-9)
    assert share.low == pytest.approx(low, abs=5e-4)
    assert share.high == pytest.approx(high, abs=5e-4)


def test_an_evaluation_counts_its_outcomes():
    result = Evaluation("policy", "sampled", "novice", 3, (1, 1, 0, -1, -1, -1), 3, None, None)
    assert (result.wins.count, result.draws.count, result.losses.count) == (2, 1, 3)
    document = json.loads(json.dumps(result.to_dict()))
    assert document["battles"] == 6
    assert document["win"]["share"] == pytest.approx(1 / 3)
    assert document["outcomes"] == [1, 1, 0, -1, -1, -1]


def all_actions(contender: Contender, count: int, first: int = 0) -> np.ndarray:
    """What the engine was given in battles `first` to `first + count - 1`, (steps, battles, mechs, entries)."""
    config = small_battle(max_steps=8)
    return np.array([b._actions.copy() for b in play(contender, "novice", config, 5, first, count)])[1:]


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_battle_is_the_same_whatever_is_played_beside_it(deterministic):
    contender = network_contender("x", lively_policy(), NETWORK, small_battle(), deterministic=deterministic)
    many = all_actions(contender, 2 * BLOCK + 3)
    np.testing.assert_array_equal(all_actions(contender, 5), many[:, :5])
    np.testing.assert_array_equal(all_actions(contender, 3, first=2 * BLOCK), many[:, 2 * BLOCK :])
    assert np.unique(many[-1, :, 0], axis=0).shape[0] > BLOCK


def test_the_result_does_not_depend_on_the_batch_or_the_threads():
    config = small_battle(max_steps=60, zone={"score_to_win": 2.0}, terrain={"size": 32})
    contender = baseline_contender("novice", config)
    results = [
        evaluate(contender, "novice", config, num_battles=20, seed=1, batch_size=batch, num_threads=threads)
        for batch, threads in ((1, 1), (20, 1), (64, 2))
    ]
    assert results[0] == results[1] == results[2]
    assert len(set(results[0].outcomes)) > 1
    assert evaluate(contender, "novice", config, num_battles=6, seed=1).outcomes == results[0].outcomes[:6]
    assert evaluate(contender, "novice", config, num_battles=20, seed=2) != results[0]


def test_both_colours_play_the_same_maps():
    *_, battles = play(baseline_contender("random", small_battle()), "trivial", small_battle(), 5, 0, 6)
    seeds = battles.engine.state.battles["seed"].tolist()
    assert all(seed in EVALUATION_SEEDS for seed in seeds)
    assert seeds[0::2] == seeds[1::2]
    assert len(set(seeds)) == 3
    assert battles.side.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_better_player_wins():
    config = small_battle(max_steps=240)
    idle = Contender("idle", "scripted", lambda noise: Idle())
    assert evaluate(idle, "trivial", config, num_battles=4, seed=0).losses.count == 4


class Idle:
    def reset(self, mask):
        pass

    def act(self, observations):
        return np.zeros((len(observations), ACTION_DIM), np.float32)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_play(name):
    contender = baseline_contender(name, small_battle())
    result = evaluate(contender, "trivial", small_battle(), num_battles=2, seed=0)
    assert (result.player, len(result.outcomes)) == (name, 2)


def test_unknown_names_are_errors():
    with pytest.raises(ConfigError, match="untrained"):
        baseline_contender("untraind", small_battle())
    with pytest.raises(ConfigError, match="novice"):
        evaluate(baseline_contender("random", small_battle()), "novic", small_battle(), num_battles=1, seed=0)


def test_no_battles_are_an_error():
    with pytest.raises(ValueError, match="at least one battle"):
        evaluate(baseline_contender("random", small_battle()), "novice", small_battle(), num_battles=0, seed=0)


def player(make_noise: Callable[[], BattleNoise | None]) -> NetworkPlayer:
    return NetworkPlayer(lively_policy(), NETWORK, 1, make_noise())


def test_a_network_player_remembers_and_forgets():
    observations = np.random.default_rng(0).random((2, OBSERVATION_DIM)).astype(np.float32)
    subject = player(lambda: None)
    subject.reset(np.ones(2, np.bool_))
    first, second = subject.act(observations), subject.act(observations)
    assert not np.array_equal(first, second)
    subject.reset(np.array([True, False]))
    third = subject.act(observations)
    np.testing.assert_array_equal(third[0], first[0])
    assert not np.array_equal(third[1], first[1])
    assert np.abs(third).max() <= 1.0


def test_a_network_player_neither_trains_nor_is_trained():
    policy = lively_policy()
    policy.set_training_mode(True)
    subject = NetworkPlayer(policy, NETWORK, 1)
    subject.reset(np.ones(1, np.bool_))
    observation = np.zeros((1, OBSERVATION_DIM), np.float32)
    before = subject.act(observation)
    assert policy.training
    with torch.no_grad():
        policy.action_net.bias.add_(0.5)
    subject.reset(np.ones(1, np.bool_))
    np.testing.assert_array_equal(subject.act(observation), before)
    assert isinstance(subject, opponents.Policy)


def test_sampling_touches_no_global_stream():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    contender = network_contender("x", build_policy(NETWORK, 0), NETWORK, small_battle())
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    evaluate(contender, "trivial", small_battle(), num_battles=2, seed=0)
    assert torch.equal(torch.rand(3), expected)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
