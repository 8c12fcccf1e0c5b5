import numpy as np
import torch
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy

from echelon_env.actions import ACTION_DIM
from echelon_env.observations import OBSERVATION_DIM
from echelon_train.config import NetworkConfig
from echelon_train.policy import action_space, build_policy, observation_space

NETWORK = NetworkConfig(width=16, head=8)


def test_spaces_are_those_of_the_layouts():
    assert observation_space().shape == (OBSERVATION_DIM,)
    assert observation_space().dtype == np.float32
    assert action_space().shape == (ACTION_DIM,)
    assert action_space().contains(np.zeros(ACTION_DIM, np.float32))


def test_the_same_seed_gives_the_same_weights_and_disturbs_no_stream():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, other = build_policy(NETWORK, 1), build_policy(NETWORK, 1), build_policy(NETWORK, 2)
    assert torch.equal(torch.rand(3), expected)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.action_net.weight, other.action_net.weight)


def test_the_critic_starts_at_zero():
    policy = build_policy(NETWORK, 1)
    observations = torch.rand(4, OBSERVATION_DIM)
    state = (torch.zeros(1, 4, 16), torch.zeros(1, 4, 16))
    assert torch.equal(policy.predict_values(observations, state, torch.zeros(4)), torch.zeros(4, 1))


def stock_and_ours(starts: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """The LSTM's output and state by sb3-contrib's method and by ours, over 3 sequences of 5 steps."""
    torch.manual_seed(0)
    policy = build_policy(NETWORK, 3)
    features = torch.randn(15, 16)
    state = (torch.randn(1, 3, 16), torch.randn(1, 3, 16))
    results = []
    for cls in (RecurrentActorCriticPolicy, type(policy)):
        output, (hidden, cell) = cls._process_sequence(features, state, starts, policy.lstm_actor)
        results.append((output, hidden, cell))
    output, hidden, cell = results[0]
    return [(output + features, hidden, cell), results[1]]


def test_sequences_equal_the_stock_ones_with_the_input_added():
    starts = torch.zeros(3, 5)
    for row in ([0, 0, 0], [1, 0, 1]):
        starts[:, 0] = torch.tensor(row)
        stock, ours = stock_and_ours(starts.flatten())
        for a, b in zip(stock, ours, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_start_inside_a_sequence_would_differ():
    """The negative control: the comparison above can fail."""
    starts = torch.zeros(3, 5)
    starts[1, 2] = 1.0
    stock, ours = stock_and_ours(starts.flatten())
    assert not torch.allclose(stock[0], ours[0], atol=1e-3)


def test_the_rollout_buffer_starts_sequences_at_episode_starts():
    """What the fast LSTM relies on, of the pinned sb3-contrib."""
    from sb3_contrib.common.recurrent.buffers import create_sequencers

    starts = np.array([0, 0, 1, 0, 1, 1, 0], np.float32)
    _, pad, _ = create_sequencers(starts, np.zeros(7), torch.device("cpu"))
    padded = pad(starts)
    assert padded.shape[0] == 4
    assert padded[:, 1:].sum() == 0
