"""The recurrent policy: an encoder of the flat observation, an LSTM for the actor, and two heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from echelon_env.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.observations import observation_bounds
from echelon_train.config import NetworkConfig

LstmState = tuple[Tensor, Tensor]
"""Hidden and cell state, each (layers, rows, units)."""


def observation_space() -> spaces.Box:
    """The space of a mech's flat observation."""
    low, high = observation_bounds()
    return spaces.Box(low, high, dtype=np.float32)


def action_space() -> spaces.Box:
    """The space of a mech's action."""
    return spaces.Box(ACTION_LOW, ACTION_HIGH, (ACTION_DIM,), np.float32)


class Encoder(BaseFeaturesExtractor):  # type: ignore[misc]
    """One linear layer with LayerNorm and ReLU over the flat observation."""

    def __init__(self, observation_space: spaces.Box, features_dim: int) -> None:
        super().__init__(observation_space, features_dim)
        self.layers = nn.Sequential(
            nn.Linear(observation_space.shape[0], features_dim), nn.LayerNorm(features_dim), nn.ReLU()
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Encode observations (rows, D) as features (rows, features_dim)."""
        encoded: Tensor = self.layers(observations)
        return encoded


class BattlePolicy(RecurrentActorCriticPolicy):  # type: ignore[misc]
    """sb3-contrib's recurrent actor-critic with a fast LSTM, a skip connection around it, and a quiet critic at first.

    The value head starts at zero: the approach reward is about 0.01 a decision, far below what a critic with random
    weights fluctuates by from one decision to the next, and nothing would be learned until it has been fitted.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nn.init.zeros_(self.value_net.weight)

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: LstmState, episode_starts: Tensor, lstm: nn.LSTM
    ) -> tuple[Tensor, LstmState]:
        """Run the LSTM over `n_seq` sequences of equal length, given one after the other, and add its input.

        The sum lets the heads see the observation from the first update on, past gates that have yet to open. The stock
        method walks through time in Python whenever any row starts an episode. The rollout buffer cuts its sequences at
        episode starts, so that a start can only be the first step of one: masking the initial state is enough. Features
        are (n_seq * length, F), episode starts (n_seq * length,), states (layers, n_seq, units).
        """
        hidden, cell = lstm_states
        n_seq = hidden.shape[1]
        keep = (1.0 - episode_starts.reshape(n_seq, -1)[:, 0]).view(1, n_seq, 1)
        output, state = lstm(features.reshape(n_seq, -1, lstm.input_size).swapaxes(0, 1), (hidden * keep, cell * keep))
        return output.transpose(0, 1).flatten(0, 1) + features, state


def policy_kwargs(network: NetworkConfig) -> dict[str, Any]:
    """Keyword arguments of `BattlePolicy` for a network configuration."""
    return {
        "features_extractor_class": Encoder,
        "features_extractor_kwargs": {"features_dim": network.width},
        "net_arch": [network.head],
        "activation_fn": nn.ReLU,
        "log_std_init": network.initial_log_std,
        "lstm_hidden_size": network.width,
        "enable_critic_lstm": False,
    }


def build_policy(network: NetworkConfig, seed: int | None = None) -> BattlePolicy:
    """A policy with random weights on the CPU; the same seed gives the same weights."""
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed % 2**63)
        return BattlePolicy(observation_space(), action_space(), lambda _: 0.0, **policy_kwargs(network))
