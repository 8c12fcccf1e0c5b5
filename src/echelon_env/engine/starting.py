"""The start of battles on their maps: what an engine does between two battles in the same place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.maps import MapPool, Packed
from echelon_env.engine.state import BATTLE, EVENT, SCRATCH, Outputs, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.tick import begin_battle
from echelon_env.terrain import Terrain, generate

_NEXT_WRITTEN = (
    "voxels", "voxel_damage", "battles", "columns", "blocks", "events", "order", "visible", "battle_maps",
)  # fmt: skip
"""Arrays of which a start overwrites everything, or clears what was used."""


_BOUND = ("_state", "constants", "begin", "_battles", "_columns", "_blocks", "_events", "_cleared")


class BattleStarter:
    """Starts battles in an engine's arrays.

    Parameters
    ----------
    config
        The battles' configuration.
    state
        The state that battles will start in; of `bind` one of the same shapes.
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
        self._surveys = np.zeros_like(state.battle_maps[:, 0], order="C")
        self.terrains: list[Terrain | None] = [None] * battles
        """The maps of the battles that have started last."""

    def bind(self, tables: Tables, state: State, out: Outputs) -> None:
        """Set the arrays in which battles start."""
        self._state, self._materials = state, tables.materials.tobytes()
        self.constants = tables, state, self._spawns, self._classes, self._surveys
        self.begin = begin_battle.bind(*self.constants)
        # bytes of arrays, a row for each battle
        arrays = {**state._asdict(), **out._asdict()}
        rows = {name: array.view(np.uint8).reshape(len(state.battles), -1) for name, array in arrays.items()}
        self._battles, self._columns, self._blocks = rows["battles"], rows["columns"], rows["blocks"]
        self._events = rows["events"]
        # of the scratch memory only what a decision cut short may have left, and what `_clear` reads
        cleared = {name for name in rows if name not in SCRATCH} | {"pending", "used"}
        self._cleared = [rows[name] for name in cleared.difference(_NEXT_WRITTEN)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _BOUND}  # a copy is bound again

    def find_map(self, b: int, map_seed: int, found: dict[int, Terrain]) -> None:
        """Add the map of a battle's next seed to those that are found. Raises `RecipeError` as the pool does."""
        present = self.terrains[b]
        if self._maps is not None:
            found[b] = self._maps[self._maps.number_of(map_seed)]
        elif present is not None and present.seed == map_seed:
            found[b] = present
        else:
            found[b] = generate(self._config, map_seed)

    def start(self, b: int, seed: int, terrain: Terrain) -> None:
        """Start battle b on a map. Its mechs have perceived nothing yet."""
        state, self.terrains[b] = self._state, terrain
        self._clear(b)
        packed = None if self._maps is None else self._maps.packed(self._materials, terrain.seed)
        if packed is None:
            self._battles[b], self._columns[b], top = _battle_of(terrain), 0, max(1, terrain.top)
        else:  # all that follows from the map is known
            (self._battles[b], self._columns[b], self._blocks[b], self._surveys[b]), top = packed, 0
        state.battles["seed"][b] = seed
        state.teams["mechs_alive"][b] = self._team_sizes
        state.voxels[b], self._spawns[b] = terrain.voxels, terrain.spawns
        self.begin(top, b)
        if self._maps is not None and packed is None:
            battle = _battle_of(terrain, int(state.battles["num_hazards"][b]))
            computed = Packed(battle, self._columns[b].copy(), self._blocks[b].copy(), self._surveys[b].copy())
            self._maps.keep_packed(self._materials, terrain.seed, computed)

    def _clear(self, b: int) -> None:
        """Zero what a battle starts with as zeros; of the large arrays, what the last one has used."""
        heights, events = self._state.used[b].item()
        self._state.voxel_damage[b, (heights & -heights).bit_length() - 1 : heights.bit_length()] = 0
        self._events[b, : events * EVENT.itemsize] = 0
        for rows in self._cleared:
            rows[b] = 0


def _battle_of(terrain: Terrain, num_hazards: int = 0) -> NDArray[np.uint8]:
    """The bytes of a BATTLE in which all that follows from the map is set."""
    battle: NDArray[Any] = np.zeros(1, BATTLE)
    battle["map_seed"], battle["num_hazards"] = terrain.seed, num_hazards
    battle["zone_x"], battle["zone_y"], battle["zone_radius"] = terrain.zone_x, terrain.zone_y, terrain.zone_radius
    return battle.view(np.uint8)
