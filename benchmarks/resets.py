"""What it costs to begin battles, and what is left of the engine's speed when that is counted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import count

import numpy as np

from benchmarks.apis import SIZES
from benchmarks.recording import MAPS, Player, Recording, config_for, play, record
from benchmarks.tables import Table, by_pairs
from benchmarks.timing import Effort, interleaved, tell
from echelon_env import BattleEngine, MapPool, make_config
from echelon_env.terrain import generate

MAP, RESET, POOL_RESET = "a map is made", "reset on a new map", "reset on a map of a pool"
KEPT: dict[Player, str] = {"novices": "between novices", "random": "random actions, short battles"}


def resets(effort: Effort) -> list[Table]:
    """Maps and resets alone, and the share of the throughput that is left with resets from a pool counted."""
    tell("resets")
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else SIZES
    times = 10 if effort.quick else 30
    begun: dict[tuple[str, str], Callable[[], float]] = {}
    plays: dict[tuple[str, str], Callable[[], float]] = {}
    for size, scenario in sizes.items():
        config = make_config(scenario)
        maps = MapPool.generate(config, MAPS)
        for row, act in beginnings(scenario, maps).items():
            begun[row, size] = _milliseconds(act)
        for player, row in KEPT.items():
            played = config_for(player, config, effort.decisions)
            plays[row, size] = share_left(record(played, player, effort.decisions, maps))
    costs = {key: statistics.median(values) for key, values in interleaved(begun, times).items()}
    shares = {key: statistics.median(values) for key, values in interleaved(plays, effort.rounds).items()}
    limit = config_for("random", config, effort.decisions).max_steps
    short = f"Short battles have {limit} decisions."
    note = "Maps, unlike resets, can be made ahead: a pool is made once and shared by all battles of a process."
    return [
        by_pairs("costs", "Beginning one battle", "ms", costs, [note]),
        by_pairs("kept", "Engine with resets from a pool, of the engine without", "%", shares, [short]),
    ]


def beginnings(scenario: str, maps: MapPool) -> dict[str, Callable[[int], object]]:
    """The ways in which a battle of some seed begins; the pool's maps are made first."""
    config = make_config(scenario)
    for number in range(len(maps)):
        maps[number]
    own, pooled = BattleEngine(config), BattleEngine(config, maps=maps)
    return {
        MAP: lambda seed: generate(config, seed),
        RESET: lambda seed: own.reset([seed]),
        POOL_RESET: lambda seed: pooled.reset([seed]),
    }


def _milliseconds(act: Callable[[int], object]) -> Callable[[], float]:
    """How long a beginning takes, with another seed in every call."""
    seeds = count()

    def measure() -> float:
        seed, start = next(seeds), time.perf_counter()
        act(seed)
        return 1000 * (time.perf_counter() - start)

    return measure


def share_left(recording: Recording) -> Callable[[], float]:
    """A measurement in %: steps' time over that of steps and of the resets among them."""
    engine = BattleEngine(recording.config, len(recording.seeds), maps=recording.maps)

    def measure() -> float:
        steps, begins = np.sum(play(engine, recording), axis=0)
        recording.check_end(engine)
        return float(100 * steps / (steps + begins))

    return measure
