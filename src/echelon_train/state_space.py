"""The space of the global state for a central critic, with room for battles of different sizes."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.layout.observations import state_streams, stream_bounds


def state_room(config: BattleConfig, mechs: int | None = None) -> int:
    """Mechs that the state has room for: twice the larger team's unless `mechs` says more.

    Raises `ConfigError` if `mechs` is no even number, or less than that.
    """
    least = 2 * max(len(config.blue), len(config.red))
    room = least if mechs is None else check_integer("state_mechs", mechs, least)
    if room % 2:
        raise ConfigError(f"state_mechs: expected an even number, got {room}", "state_mechs")
    return room


def state_space(mechs: int) -> spaces.Box:
    """The space (S,) float32 of a global state with room for `mechs` mechs; its streams are `state_streams(mechs)`."""
    low, high = stream_bounds(state_streams(mechs))
    return spaces.Box(low, high, dtype=np.float32)
