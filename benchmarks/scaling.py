"""How the engine's speed goes with mechs, batch, threads and map, between scripted novices."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks.machine import cores
from benchmarks.recording import BATCH, MAPS, Recording, play, record
from benchmarks.tables import Table
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import BattleEngine, MapPool, make_config

TEAMS = (1, 2, 5, 10, 20, 40)
BATCHES = (1, 4, 16, 64, 256)
MAP_SIZES = (60, 80, 100, 140, 200)
LARGE_MAP = 140  # m, on which 40 mechs a team find room
THREADED_BATCH = 64
PACK = ("heavy", "medium", "medium", "light", "scout")
RATE, COST = "live agent-steps/s", "us a battle and decision"

Measure = Callable[[], float]


def scaling(effort: Effort) -> list[Table]:
    """Four sweeps, one quantity at a time."""
    quick = effort.quick
    battle = _record({}, effort)
    rounds = max(2, effort.rounds // 2)
    teams = TEAMS[::2] if quick else TEAMS
    batches = (1, BATCH, 64) if quick else BATCHES
    sizes = MAP_SIZES[::2] if quick else MAP_SIZES
    tell(f"scaling: {rounds} rounds of {len(teams) + len(batches) + len(sizes) + len(thread_counts())} measurements")
    tables = [
        _sweep(
            "mechs", f"Mechs, on a map of {LARGE_MAP} m", rounds,
            {f"{n} v {n}": _record(_teams(n), effort) for n in teams},
        ),
        _sweep("batch", "Battles in the batch, 10 v 10", rounds, {f"{n}": battle.resized(n) for n in batches}),
        _sweep(
            "map", "Map, 5 v 5", rounds,
            {f"{n} m": _record(_teams(5) | {"terrain": {"size": n}}, effort) for n in sizes},
        ),
    ]  # fmt: skip
    return [*tables, _threads(battle.resized(THREADED_BATCH), rounds)]


def thread_counts() -> tuple[int, ...]:
    """One, then twice as many as before up to the machine's cores."""
    powers = [2**k for k in range(cores().bit_length())]
    return tuple(sorted({*(n for n in powers if n <= cores()), cores()}))


def _teams(size: int) -> dict[str, Any]:
    roster = (PACK * 8)[:size] if size > 2 else ("medium",) * size
    return {"blue": roster, "red": roster, "terrain": {"size": LARGE_MAP}}


def _record(overrides: Mapping[str, Any], effort: Effort) -> Recording:
    config = make_config("battle", **overrides)
    return record(config, "novices", effort.decisions, MapPool.generate(config, MAPS))


def _sweep(name: str, title: str, rounds: int, recordings: Mapping[str, Recording]) -> Table:
    seconds = interleaved({key: _engine_seconds(r) for key, r in recordings.items()}, rounds)
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    rows: dict[str, tuple[float, ...]] = {
        RATE: tuple(r.agent_steps / medians[key] for key, r in recordings.items()),
        COST: tuple(1e6 * medians[key] / r.battle_steps for key, r in recordings.items()),
        "live mechs a battle": tuple(r.agent_steps / r.battle_steps for r in recordings.values()),
    }
    return Table(name, title, "one thread", tuple(recordings), rows, (spread_note(seconds.values()),))


def _threads(recording: Recording, rounds: int) -> Table:
    counts = thread_counts()
    seconds = interleaved({n: _engine_seconds(recording, n) for n in counts}, max(5, rounds))
    rates = [recording.agent_steps / statistics.median(seconds[n]) for n in counts]
    rows = {RATE: tuple(rates), "of one thread": tuple(rate / rates[0] for rate in rates)}
    note = spread_note(seconds.values())
    title = f"Threads, 10 v 10, {THREADED_BATCH} battles"
    return Table("threads", title, "threads", tuple(f"{n}" for n in counts), rows, (note,))


def _engine_seconds(recording: Recording, threads: int = 1) -> Measure:
    engine = BattleEngine(recording.config, len(recording.seeds), threads, maps=recording.maps)
    return partial(_play_steps, engine, recording)


def _play_steps(engine: BattleEngine, recording: Recording) -> float:
    seconds = sum(step for step, _ in play(engine, recording))
    recording.check_end(engine)
    return seconds
