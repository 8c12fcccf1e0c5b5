"""The start of battles on their maps: what an engine does between two battles in the same place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.maps import MapPool
from echelon_env.engine.state import BATTLE, EVENT, SCRATCH, Outputs, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.tick import begin_battle, pack_terrain
from echelon_env.terrain import Terrain, generate

_NEXT_WRITTEN = (
    "voxels", "voxel_damage", "battles", "events", "order", "visible",
)  # fmt: skip
"""Arrays of which a start overwrites everything, or clears what was used."""

_OF_VOXELS = ("opaque", "solid", "hazard", "blocks")
"""Arrays that follow from a battle's voxels."""


class _Bound(NamedTuple):
    """The arrays in which battles start."""

    materials: bytes
    state: State
    rows: dict[str, NDArray[np.uint8]]  # bytes of the arrays, a row for each battle
    cleared: list[NDArray[np.uint8]]  # those that are zeroed


class BattleStarter:
    """Starts battles in an engine's arrays.

    Parameters
    ----------
    config
        The battles' configuration.
    state
        A state of the battles, for its shapes.
    maps
        The pool of maps, or None.
    """

    def __init__(self, config: BattleConfig, state: State, maps: MapPool | None) -> None:
        self._config, self._maps = config, maps
        names = [name for roster in config.rosters for name in roster]
        self._classes = np.array([config.catalog.class_index(name) for name in names])
        self._team_sizes = len(config.blue), len(config.red)
        battles = len(state.battles)
        self._spawns = np.zeros((battles, 2, max(self._team_sizes), 2))  # what `begin_battle` reads and writes
        self.terrains: list[Terrain | None] = [None] * battles
        """The maps of the battles that have started last."""
        self._bound: _Bound | None = None

    def bind(self, tables: Tables, state: State, out: Outputs) -> None:
        """Set the arrays in which battles start."""
        self.constants = tables, state, self._spawns, self._classes
        self.begin = begin_battle.bind(*self.constants)
        self._pack = pack_terrain.bind(tables, state)
        arrays = {**state._asdict(), **out._asdict()}
        rows = {name: array.view(np.uint8).reshape(len(state.battles), -1) for name, array in arrays.items()}
        # of the scratch memory only what a decision cut short may have left, and what `_clear` reads
        cleared = {name for name in rows if name not in SCRATCH} | {"pending", "used"}
        cleared_rows = [rows[name] for name in cleared.difference(_NEXT_WRITTEN)]
        self._bound = _Bound(tables.materials.tobytes(), state, rows, cleared_rows)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | dict.fromkeys(("_bound", "constants", "begin", "_pack"))  # a copy is bound again

    def find_map(self, b: int, map_seed: int, found: dict[int, Terrain]) -> None:
        """Add the map of a battle's next seed to those that are found. Raises `RecipeError` as the pool does."""
        present = self.terrains[b]
        if self._maps is not None:
            found[b] = self._maps[self._maps.number_of(map_seed)]
        elif present is not None and present.seed == map_seed:
            found[b] = present
        else:
            found[b] = generate(self._config, map_seed)

    def pack(self, b: int) -> None:
        """Compute what follows from a battle's voxels."""
        self._pack(self._config.terrain.height, b)

    def start(self, b: int, seed: int, terrain: Terrain) -> None:
        """Start battle b on a map. Its mechs have perceived nothing yet."""
        assert self._bound is not None
        materials, state, rows, cleared = self._bound
        self.terrains[b] = terrain
        _clear_used(state, rows["events"], b)
        for each in cleared:
            each[b] = 0
        packed = None if self._maps is None else self._maps.packed(materials, terrain.seed)
        if packed is None:
            rows["battles"][b], top = battle_of(terrain), max(1, terrain.top)
        else:  # all that follows from the map is known
            top = 0
            for name, row in packed.items():
                rows[name][b] = row
        state.battles["seed"][b] = seed
        state.teams["mechs_alive"][b] = self._team_sizes
        state.voxels[b], self._spawns[b] = terrain.voxels, terrain.spawns
        self.begin(top, b)
        if self._maps is not None and packed is None:
            computed = {name: rows[name][b].copy() for name in _OF_VOXELS}
            computed["battles"] = battle_of(terrain, int(state.battles["num_hazards"][b]))
            self._maps.keep_packed(materials, terrain.seed, computed)


def _clear_used(state: State, events: NDArray[np.uint8], b: int) -> None:
    """Zero what the last battle has used of the large arrays."""
    heights, most = state.used[b].item()
    state.voxel_damage[b, (heights & -heights).bit_length() - 1 : heights.bit_length()] = 0
    written = max(most, int(state.battles["num_events"][b]))  # of a decision that was cut short
    events[b, : written * EVENT.itemsize] = 0


def battle_of(terrain: Terrain, num_hazards: int = 0) -> NDArray[np.uint8]:
    """The bytes of a BATTLE in which all that follows from the map is set."""
    battle: NDArray[Any] = np.zeros(1, BATTLE)
    battle["map_seed"], battle["num_hazards"] = terrain.seed, num_hazards
    battle["zone_x"], battle["zone_y"], battle["zone_radius"] = terrain.zone_x, terrain.zone_y, terrain.zone_radius
    return battle.view(np.uint8)
