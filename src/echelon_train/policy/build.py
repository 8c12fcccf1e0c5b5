"""Policies with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from echelon_env.layout.observations import state_streams
from echelon_env.networks.config import NetworkConfig
from echelon_train.policy.recurrent import BattlePolicy
from echelon_train.policy.spaces import action_space, observation_space
from echelon_train.threads import torch_threads


def build_policy(network: NetworkConfig, seed: int | None = None) -> BattlePolicy:
    """Create a policy with random weights on the CPU; the same seed gives the same weights.

    The weights of a critic that sees the global state do not depend on the number of mechs in the global state.
    """
    space: spaces.Space[Any] = observation_space()
    if network.sees_state:
        width = state_streams(2)["units"].stop
        space = spaces.Dict({"observation": space, "state": spaces.Box(-np.inf, np.inf, (width,), np.float32)})
    # one thread: the last bits of orthogonal weights depend on the number of threads
    with torch.random.fork_rng(devices=[]), torch_threads(1):
        if seed is not None:
            torch.manual_seed(seed % 2**63)
        return BattlePolicy(space, action_space(), lambda _: 0.0, network)
