import torch

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import build_policy

NETWORK = NetworkConfig(width=16, head=8)


def test_a_seed_determines_the_weights_and_leaves_the_global_generator():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second, other = build_policy(NETWORK, 1), build_policy(NETWORK, 1), build_policy(NETWORK, 2)
    assert torch.equal(torch.rand(3), expected)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.action_net.weight, other.action_net.weight)
