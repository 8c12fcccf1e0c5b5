"""The global states of battles of different sizes in one layout, for a central critic."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.layout.observations import state_streams, stream_bounds


class StateLayout:
    """Pads a battle's global state to a larger number of mechs; padding follows the mechs of each team.

    Parameters
    ----------
    config
        The battle.
    team_size
        Mechs of the own team.
    mechs
        Mechs of both teams that there is room for; by default twice the larger team's.

    Raises
    ------
    ConfigError
        If that is no even number, or less than twice the larger team's.
    """

    def __init__(self, config: BattleConfig, team_size: int, mechs: int | None = None) -> None:
        least = state_room(config)
        room = least if mechs is None else check_integer("state_mechs", mechs, least)
        if room % 2:
            raise ConfigError(f"state_mechs: expected an even number, got {room}", "state_mechs")
        own, padded = state_streams(config.num_mechs), state_streams(room)
        low, high = stream_bounds(padded)
        self.space = spaces.Box(low, high, dtype=np.float32)
        """The space of the padded state, (S,) float32; its streams are `state_streams(mechs)`."""
        places = np.arange(config.num_mechs)
        places[team_size:] += room // 2 - team_size
        width = own["units"].row_width
        units = padded["units"].start + (places[:, None] * width + np.arange(width)).ravel()
        rest = [np.arange(padded[name].start, padded[name].stop) for name in ("clock", "battle_map")]
        self._columns = np.concatenate([rest[0], units, rest[1]])

    def pad(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pad states (B, s) to (B, S)."""
        padded = np.zeros((len(states), *self.space.shape), np.float32)
        padded[:, self._columns] = states
        return padded


def state_room(config: BattleConfig) -> int:
    """Mechs that the state of a battle needs room for: twice the larger team's."""
    return 2 * max(len(config.blue), len(config.red))
