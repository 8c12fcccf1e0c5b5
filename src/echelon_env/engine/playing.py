"""Battles that follow each other on maps of a pool, in two kernels: all that happens between two decisions.

`load_maps`, whose work many threads share, brings the maps of the next battles. Then `play_range` starts these battles,
plays the others, and reports about all. Neither needs Python in between, so GPUs run them, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.agents import Players, Results, report_battle
from echelon_env.engine.kernels import entry_point, integer, kernel
from echelon_env.engine.rng import sequence_seed
from echelon_env.engine.setup import place_all
from echelon_env.engine.state import BLUE, EVENT, RED, Outputs, State, record_dtype
from echelon_env.engine.tables import Tables
from echelon_env.engine.tick import DECIDE, PERCEIVE, play_one

SLOT = record_dtype(
    [
        ("seed", "u8"),  # of the sequence of battles
        ("episode", "i8"),  # battles since it was given
        ("battle_seed", "u8"),  # of the present battle, or of the next one if it starts
        ("map", "i8"),  # its map's number in the pool
        ("starts", "?"),  # whether a battle starts in the next call
    ]
)
"""A place in the batch, in which one battle follows the other."""

EVENT_BYTES = integer(EVENT.itemsize)

START = integer(3)
"""The part of `play_range` in which battles start and no decision is taken. See DECIDE."""

PARTS = 128
"""Threads of a GPU that bring a battle's map."""


class MapBytes(NamedTuple):
    """The bytes (rows, ...) of the state's arrays that follow from maps: a row for each battle, or for each map."""

    voxels: NDArray[np.uint8]
    opaque: NDArray[np.uint8]
    solid: NDArray[np.uint8]
    hazard: NDArray[np.uint8]
    blocks: NDArray[np.uint8]


class Starts(NamedTuple):
    """Where battles start on each of N maps."""

    battles: NDArray[Any]
    """(N,) BATTLE with what follows from the map."""
    spawns: NDArray[np.float64]
    """(N, 2, K, 2) m"""
    classes: NDArray[np.int64]
    """(M,) the mechs' classes, on all maps."""


class Cleared(NamedTuple):
    """The bytes (B, ...) of the arrays that are zeroed for the next battle."""

    mechs: NDArray[np.uint8]
    teams: NDArray[np.uint8]
    projectiles: NDArray[np.uint8]
    clouds: NDArray[np.uint8]
    paint: NDArray[np.uint8]
    sightings: NDArray[np.uint8]
    statistics: NDArray[np.uint8]
    shots: NDArray[np.uint8]
    hits: NDArray[np.uint8]
    pending: NDArray[np.uint8]
    rewards: NDArray[np.uint8]
    components: NDArray[np.uint8]
    terminated: NDArray[np.uint8]
    truncated: NDArray[np.uint8]


@kernel
def _copy(maps: Any, n: int, battles: Any, b: int, part: int, parts: int) -> None:
    """Copy a part of the bytes of map n to battle b."""
    for k in range(part, maps.shape[1], parts):
        battles[b, k] = maps[n, k]


@kernel
def _zero(array: Any, b: int, part: int, parts: int) -> None:
    """Zero a part of the bytes of a battle."""
    for k in range(part, array.shape[1], parts):
        array[b, k] = 0


@kernel
def _clear(state: State, damage: Any, events: Any, cleared: Cleared, b: int, part: int, parts: int) -> None:
    """Zero a part of what the last battle has used. `play_range` clears `used`, which says what that is."""
    heights = integer(state.used[b].heights)
    for z in range(damage.shape[1]):
        if (heights >> z) & 1:
            for k in range(part, damage.shape[2], parts):
                damage[b, z, k] = 0
    written = max(state.used[b].events, state.battles[b].num_events) * EVENT_BYTES
    for k in range(part, written, parts):
        events[b, k] = 0
    _zero(cleared.mechs, b, part, parts)
    _zero(cleared.teams, b, part, parts)
    _zero(cleared.projectiles, b, part, parts)
    _zero(cleared.clouds, b, part, parts)
    _zero(cleared.paint, b, part, parts)
    _zero(cleared.sightings, b, part, parts)
    _zero(cleared.statistics, b, part, parts)
    _zero(cleared.shots, b, part, parts)
    _zero(cleared.hits, b, part, parts)
    _zero(cleared.pending, b, part, parts)
    _zero(cleared.rewards, b, part, parts)
    _zero(cleared.components, b, part, parts)
    _zero(cleared.terminated, b, part, parts)
    _zero(cleared.truncated, b, part, parts)


@entry_point
def load_maps(
    state: State,
    damage: Any,
    events: Any,
    cleared: Cleared,
    battles: MapBytes,
    maps: MapBytes,
    slots: Any,
    parts: int,
    first: int,
    last: int,
) -> None:
    """Bring the maps of the battles that start, and zero what the last ones have left.

    Number `b * parts + part` does a part of battle b: the bytes with this remainder, so that threads in succession have
    bytes in succession. `damage` (B, Z, ...) and `events` (B, ...) uint8 are the bytes of `voxel_damage` and `events`
    of the state, `slots` (B,) SLOT.
    """
    for number in range(first, last):
        b, part = number // parts, number % parts
        if slots[b].starts:
            n = integer(slots[b].map)
            _copy(maps.voxels, n, battles.voxels, b, part, parts)
            _copy(maps.opaque, n, battles.opaque, b, part, parts)
            _copy(maps.solid, n, battles.solid, b, part, parts)
            _copy(maps.hazard, n, battles.hazard, b, part, parts)
            _copy(maps.blocks, n, battles.blocks, b, part, parts)
            _clear(state, damage, events, cleared, b, part, parts)


@kernel
def _start(tables: Tables, state: State, starts: Starts, slot: Any, b: int) -> None:
    """Start a battle whose map is loaded. Its mechs have perceived nothing yet."""
    n = integer(slot.map)
    state.used[b].heights, state.used[b].events = 0, 0
    state.battles[b] = starts.battles[n]
    state.battles[b].seed = slot.battle_seed
    blue = integer(tables.rules[0].num_blue)
    state.teams[b, BLUE].mechs_alive, state.teams[b, RED].mechs_alive = blue, state.mechs.shape[1] - blue
    place_all(tables, state, starts.spawns[n], starts.classes, 0, b)


@kernel
def _choose_next(num_maps: int, slot: Any, regenerate: int) -> None:
    """Let the next battle of a sequence start, see `AutoresetBattles`: its seed and its map follow from its number."""
    slot.episode += 1
    slot.battle_seed = sequence_seed(slot.seed, slot.episode)
    map_seed = sequence_seed(slot.seed, slot.episode - slot.episode % regenerate)
    slot.map = integer(sequence_seed(map_seed, 1) % np.uint64(num_maps))  # see `MapPool.number_of`
    slot.starts = True


@entry_point
def play_range(
    tables: Tables,
    state: State,
    actions: Any,
    out: Outputs,
    places: Any,
    observations: Any,
    starts: Starts,
    slots: Any,
    players: Players,
    results: Results,
    max_cycles: int,
    regenerate: int,
    part: int,
    first: int,
    last: int,
) -> None:
    """Start the battles from `first` to `last` - 1 that start, and report about them, see `report_agents`.

    With `part` DECIDE the others take a decision, and where no agent is left the next battle starts in the next call.
    With START they stay as they are. The maps must be loaded, and observations are written as by `step_range`. Every
    `regenerate`-th battle of a slot brings another map.
    """
    for b in range(first, last):
        slot, decides = slots[b], part == DECIDE
        begins = slot.starts
        if begins:
            _start(tables, state, starts, slot, b)
            slot.starts = False
            play_one(tables, state, actions, out, places, observations, PERCEIVE, b)
        elif decides:
            play_one(tables, state, actions, out, places, observations, DECIDE, b)
        if begins or decides:
            report_battle(state, out, players, results, max_cycles, decides, b)
        if decides and results.done[b]:
            _choose_next(starts.battles.shape[0], slot, regenerate)
