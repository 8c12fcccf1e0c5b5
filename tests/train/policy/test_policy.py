import numpy as np
import pytest
import torch

from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import action_space, build_policy, observation_space

NETWORK = NetworkConfig(width=16, head=8)


def test_the_spaces_have_the_shapes_of_the_layouts():
    assert observation_space().shape == (OBSERVATION_DIM,)
    assert observation_space().dtype == np.float32
    assert action_space().shape == (ACTION_DIM,)
    assert action_space().contains(np.zeros(ACTION_DIM, np.float32))


def test_a_seed_determines_the_weights_and_leaves_the_global_generator():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, other = build_policy(NETWORK, 1), build_policy(NETWORK, 1), build_policy(NETWORK, 2)
    assert torch.equal(torch.rand(3), expected)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.action_net.weight, other.action_net.weight)


def test_saving_and_loading_by_pickle_is_not_supported(tmp_path):
    policy = build_policy(NETWORK)
    with pytest.raises(NotImplementedError, match="EchelonRecurrentPPO"):
        policy.save(str(tmp_path / "policy"))
    with pytest.raises(NotImplementedError, match="EchelonRecurrentPPO"):
        type(policy).load(str(tmp_path / "policy"))
