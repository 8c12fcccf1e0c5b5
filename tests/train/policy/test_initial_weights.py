import math

import pytest
import torch
from torch import nn

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import build_policy
from echelon_train.policy.distributions import TARGET_LOGITS, initial_bias


def check_weight(layer, gain):
    weight = layer.weight.detach() / gain
    gram = weight @ weight.T if layer.out_features < layer.in_features else weight.T @ weight
    torch.testing.assert_close(gram, torch.eye(len(gram)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("encoder", ["sets", "flat"])
def test_a_policys_heads_have_their_gains(encoder):
    network = NetworkConfig(width=8, head=6, set_width=4, encoder=encoder)
    policy = build_policy(network, 1)
    bias = initial_bias().tolist()
    hidden = [layer for layer in policy.mlp_extractor.modules() if isinstance(layer, nn.Linear)]
    assert len(hidden) == 2
    gains = [(layer, math.sqrt(2)) for layer in hidden]
    gains.append((policy.action_net, 0.01))
    if encoder == "sets":
        gains.append((policy.target_query, 0.01))
        del bias[TARGET_LOGITS]
    for layer, gain in gains:
        check_weight(layer, gain)
    assert not any(layer.bias.any() for layer, _ in gains if layer is not policy.action_net)
    assert policy.action_net.bias.tolist() == bias
    assert not policy.value_net.weight.any()
    assert not policy.value_net.bias.any()
