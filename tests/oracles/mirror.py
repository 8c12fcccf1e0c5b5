"""A battle rotated by half a turn, and a battle with exchanged team colours.

Both transform the state between two decisions. What a decision overwrites (events, visibility, statistics) is left
unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.geometry import wrap_angle
from echelon_env.engine.state import NO_MECH, State
from oracles.world import columns_of, set_columns

BACKWARD = ("facing_x", "facing_y", "vx", "vy", "hurt_x", "hurt_y")


def copy_state(state: State) -> State:
    return State(*(array.copy() for array in state))


def half_turn(state: State, config: BattleConfig) -> State:
    """All battles rotated by half a turn about the centres of their maps."""
    turned, size = copy_state(state), config.terrain.size
    for records, x, y in (
        (turned.mechs, "x", "y"),
        (turned.projectiles, "x", "y"),
        (turned.clouds, "x", "y"),
        (turned.sightings, "x", "y"),
        (turned.teams, "spawn_x", "spawn_y"),
        (turned.battles, "zone_x", "zone_y"),
    ):
        records[x], records[y] = size - records[x], size - records[y]
    for records in (turned.mechs, turned.projectiles, turned.sightings):
        for name in set(BACKWARD) & set(records.dtype.names or ()):
            records[name] *= -1
    turned.mechs["yaw"] = np.vectorize(wrap_angle)(turned.mechs["yaw"] + np.pi)
    turned.teams["quarter_turns"] = (turned.teams["quarter_turns"] + 2) % 4
    for name in ("voxels", "voxel_damage"):
        getattr(turned, name)[:] = getattr(turned, name)[:, :, ::-1, ::-1]
    for battle, voxels in enumerate(turned.voxels):
        set_columns(turned, battle, columns_of(voxels, config.catalog.materials))
    return turned


def exchange_colours(state: State, config: BattleConfig) -> State:
    """All battles with blue and red exchanged; each mech keeps its spawn place.

    The result is a state of the configuration with exchanged rosters.
    """
    exchanged, blue = copy_state(state), len(config.blue)
    mechs = np.roll(np.arange(config.num_mechs), -blue)  # new order of the mechs: red first
    packs = np.roll(np.arange(state.paint.shape[1]), -len(np.unique(state.mechs["pack"][:, :blue])))
    exchanged.mechs[:] = state.mechs[:, mechs]
    for records in (exchanged.mechs, exchanged.clouds):
        records["team"] = 1 - records["team"]
    exchanged.mechs["pack"] = np.argsort(packs)[exchanged.mechs["pack"]]
    for marks in (exchanged.paint, exchanged.sightings):
        marks[:] = marks[:, packs][:, :, mechs]
    exchanged.teams[:] = state.teams[:, ::-1]
    exchanged.battles["first_team"] = 1 - state.battles["first_team"]
    for records, name in (
        (exchanged.mechs, "contacts"),
        (exchanged.mechs, "intel"),
        (exchanged.mechs, "target"),
        (exchanged.projectiles, "owner"),
        (exchanged.projectiles, "target"),
        (exchanged.paint, "painter"),
    ):
        records[name] = renamed(records[name], mechs)
    exchanged.order[:] = renamed(state.order, mechs)
    return exchanged


def renamed(indices: NDArray[Any], mechs: NDArray[np.int64]) -> NDArray[Any]:
    """Indices of mechs after the exchange; NO_MECH stays NO_MECH."""
    return np.where(indices == NO_MECH, NO_MECH, np.argsort(mechs)[indices])
