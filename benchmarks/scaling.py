"""How the engine's speed goes with the battles of a batch and with threads, between scripted novices."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

from benchmarks.machine import cores
from benchmarks.recording import BATCH, MAPS, Recording, play, record
from benchmarks.tables import Table
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import BattleEngine, MapPool, make_config

BATCHES = (1, 4, 16, 64, 256)
THREADED_BATCH = 64
RATE, COST = "live agent-steps/s", "us a battle and decision"
OF_ONE = "of one thread"


def scaling(effort: Effort) -> list[Table]:
    """Batches on one thread, and threads with one batch."""
    config = make_config("battle")
    battle = record(config, "novices", effort.decisions, MapPool.generate(config, MAPS))
    batches = {f"{n}": battle.resized(n) for n in ((1, BATCH, 64) if effort.quick else BATCHES)}
    rounds, threaded = max(2, effort.rounds // 2), battle.resized(THREADED_BATCH)
    tell(f"scaling: {rounds} rounds of {len(batches) + len(thread_counts())} measurements")
    seconds = interleaved({name: _seconds(one) for name, one in batches.items()}, rounds)
    medians = [statistics.median(values) for values in seconds.values()]
    rows = {
        RATE: tuple(one.agent_steps / taken for one, taken in zip(batches.values(), medians, strict=True)),
        COST: tuple(1e6 * taken / one.battle_steps for one, taken in zip(batches.values(), medians, strict=True)),
        "live mechs a battle": tuple(one.agent_steps / one.battle_steps for one in batches.values()),
    }
    note = spread_note(seconds.values())
    batch = Table("batch", "Battles in the batch, 10 v 10", "one thread", tuple(batches), rows, (note,))
    return [batch, _threads(threaded, max(5, rounds))]


def thread_counts() -> tuple[int, ...]:
    """One, then twice as many as before up to the machine's cores."""
    powers = [2**k for k in range(cores().bit_length())]
    return tuple(sorted({*(n for n in powers if n <= cores()), cores()}))


def _threads(recording: Recording, rounds: int) -> Table:
    seconds = interleaved({f"{n}": _seconds(recording, n) for n in thread_counts()}, rounds)
    rates = [recording.agent_steps / statistics.median(values) for values in seconds.values()]
    rows = {RATE: tuple(rates), OF_ONE: tuple(rate / rates[0] for rate in rates)}
    title = f"Threads, 10 v 10, {THREADED_BATCH} battles"
    return Table("threads", title, "threads", tuple(seconds), rows, (spread_note(seconds.values()),))


def _seconds(recording: Recording, threads: int = 1) -> Callable[[], float]:
    engine = BattleEngine(recording.config, len(recording.seeds), threads, maps=recording.maps)
    return partial(_play, engine, recording)


def _play(engine: BattleEngine, recording: Recording) -> float:
    seconds = sum(step for step, _ in play(engine, recording))
    recording.check_end(engine)
    return seconds
