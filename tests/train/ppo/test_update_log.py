"""Metrics of an update."""

import math

import numpy as np
import pytest
import torch

from echelon_env.layout.actions import BLOCKS
from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.policy.sequences import MlpLstmPolicy
from echelon_train.ppo.update_log import explained_variance
from train.ppo.random_env import RandomVecEnv, collect, make_model


def test_explained_variance():
    returns = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert float(explained_variance(returns, returns)) == 1.0
    assert float(explained_variance(torch.zeros(4), returns)) == pytest.approx(0.0)
    assert float(explained_variance(-returns, returns)) == pytest.approx(-3.0)
    assert math.isnan(explained_variance(returns, torch.ones(4)))


class PartlyActive(MlpLstmPolicy):
    """A row's observation determines whether it is active."""

    def actor_mask(self, observations):
        return observations[:, 1] > -0.5


def test_standard_deviations_are_of_active_samples():
    model = make_model(RandomVecEnv(6), policy=PartlyActive, policy_kwargs={"lstm_hidden_size": 8}, n_epochs=1)
    collect(model)
    buffer, generator = model.rollout_buffer, torch.Generator().manual_seed(4)
    for tensor, scale in ((buffer.advantages, 2.0), (buffer.values, 5.0), (buffer.rewards, 0.1)):
        tensor.copy_(scale * torch.randn(tensor.shape, generator=generator))
        tensor[~buffer.actor_mask] = 1000.0
    expected = {
        name: np.std(tensor[buffer.actor_mask].double().numpy())
        for name, tensor in (("advantage", buffer.advantages), ("value", buffer.values), ("reward", buffer.rewards))
    }
    model.train()
    logged = model.logger.name_to_value
    assert 0.05 < expected["reward"] < 0.2 < 1.0 < expected["advantage"] < 3.0 < 4.0 < expected["value"] < 6.0
    for name, number in expected.items():
        assert logged[f"train/{name}_std"] == pytest.approx(number, rel=1e-4), name
    assert logged["train/active_share"] == pytest.approx(buffer.actor_mask.double().mean().item())


def test_block_entropies_sum_to_the_entropy():
    env = RandomVecEnv(6, 0, observation_space(), action_space())
    kwargs = {"network": NetworkConfig(width=8, head=8, encoder="flat", communicate=True)}
    # without learning, so that the update does not change the policy
    model = make_model(env, policy=BattlePolicy, policy_kwargs=kwargs, n_epochs=1, learning_rate=0.0)
    collect(model)
    model.train()
    logged = model.logger.name_to_value
    blocks = [logged[f"train/entropy_{block.name}"] for block in BLOCKS]
    assert sum(blocks) == pytest.approx(logged["train/entropy"], rel=1e-5)
    assert all(number > 0.0 for number in blocks)
