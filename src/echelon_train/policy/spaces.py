"""The spaces of the recurrent policy."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from gymnasium import spaces

from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.layout.observations import OBSERVATION_DIM, observation_bounds
from echelon_env.networks.config import NetworkConfig


def observation_space() -> spaces.Box:
    """The space of a mech's flat observation, (OBSERVATION_DIM,) float32."""
    low, high = observation_bounds()
    return spaces.Box(low, high, dtype=np.float32)


def action_space() -> spaces.Box:
    """The space of a mech's action, (ACTION_DIM,) float32."""
    return spaces.Box(ACTION_LOW, ACTION_HIGH, (ACTION_DIM,), np.float32)


def flat_space(observations: Any, actions: Any, network: NetworkConfig) -> spaces.Box:
    """The space of the flat observation in a policy's observation space.

    Raises ValueError if the spaces are not those of a mech, or do not fit the network's critic.
    """
    central = network.sees_state
    if central != isinstance(observations, spaces.Dict) or (
        central and set(observations.keys()) != {"observation", "state"}
    ):
        expected = "a Dict of 'observation' and 'state'" if central else "a Box"
        raise ValueError(f"a {network.critic} critic needs an observation space that is {expected}, got {observations}")
    flat = observations["observation"] if central else observations
    for name, space, shape in (("observation", flat, (OBSERVATION_DIM,)), ("action", actions, (ACTION_DIM,))):
        if not isinstance(space, spaces.Box) or space.shape != shape:
            raise ValueError(f"{name} space: expected a mech's, a Box of {shape}, got {space}")
    return cast("spaces.Box", flat)
