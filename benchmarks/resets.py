"""What it costs to begin battles."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import count

from benchmarks.apis import SIZES
from benchmarks.recording import MAPS
from benchmarks.tables import Table, by_pairs
from benchmarks.timing import Effort, interleaved, tell
from echelon_env import BattleEngine, MapPool, make_config
from echelon_env.terrain import generate

MAP, RESET, POOL_RESET = "a map is made", "reset on a new map", "reset on a map of a pool"


def resets(effort: Effort) -> list[Table]:
    """Milliseconds of a map, and of resets on new maps and on those of a pool."""
    tell("resets")
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else SIZES
    times = 10 if effort.quick else 30
    plays = {
        (row, size): _milliseconds(act)
        for size, scenario in sizes.items()
        for row, act in beginnings(scenario, MapPool.generate(make_config(scenario), MAPS)).items()
    }
    costs = {key: statistics.median(values) for key, values in interleaved(plays, times).items()}
    note = "Maps, unlike resets, can be made ahead: a pool is made once and shared by all battles of a process."
    return [by_pairs("costs", "Beginning one battle", "ms", costs, [note])]


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
