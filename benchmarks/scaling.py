"""How the engine's speed goes with mechs, batch, threads and map, between scripted novices."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks import calibration
from benchmarks.machine import ROOT, cores
from benchmarks.recording import BATCH, MAPS, Recording, play, record
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import BattleEngine, MapPool, make_config

TEAMS = (1, 2, 5, 10, 20, 40)
BATCHES = (1, 4, 16, 64, 256)
MAP_SIZES = (60, 80, 100, 140, 200)
LARGE_MAP = 140  # m, on which 40 mechs a team find room
THREADED_BATCH = 64
PACK = ("heavy", "medium", "medium", "light", "scout")
RATE, COST = "live agent-steps/s", "us a battle and decision"
OF_ONE, LOOPS = "of one thread", "calibration loops side by side, of one"
LOOPS_A_ROUND = 8

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
    """The engine's threads, beside processes that share nothing: what a machine's cores can do at once."""
    counts = thread_counts()
    plays: dict[tuple[str, int], Measure] = {(RATE, n): _engine_seconds(recording, n) for n in counts}
    with contextlib.ExitStack() as stack:
        loops = [stack.enter_context(_Loop()) for _ in range(max(counts))]
        plays |= {(LOOPS, n): partial(_side_by_side, loops[:n]) for n in counts}
        seconds = interleaved(plays, max(5, rounds))
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    rates = [recording.agent_steps / medians[RATE, n] for n in counts]
    rows: dict[str, tuple[Cell, ...]] = {
        RATE: tuple(rates),
        OF_ONE: tuple(rate / rates[0] for rate in rates),
        LOOPS: tuple(n * medians[LOOPS, 1] / medians[LOOPS, n] for n in counts),
    }
    notes = "A calibration loop is a process that runs benchmarks/calibration.py.", spread_note(seconds.values())
    title = f"Threads, 10 v 10, {THREADED_BATCH} battles"
    return Table("threads", title, "threads", tuple(f"{n}" for n in counts), rows, notes)


class _Loop(contextlib.AbstractContextManager["_Loop"]):
    """A process that runs the calibration loop when it is told to."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scaling"],
            cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self) -> None:
        """Let it run, some times."""
        assert self._process.stdin is not None
        print(LOOPS_A_ROUND, file=self._process.stdin, flush=True)

    def seconds(self) -> float:
        """How long it took."""
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())


def _side_by_side(loops: Sequence[_Loop]) -> float:
    """Mean seconds of loops that run at the same time."""
    for loop in loops:
        loop.start()
    return statistics.mean([loop.seconds() for loop in loops])


def _run_loops() -> None:
    """The process of `_Loop`."""
    work = calibration.make()
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            work()
        print(time.perf_counter() - start, flush=True)


def _engine_seconds(recording: Recording, threads: int = 1) -> Measure:
    engine = BattleEngine(recording.config, len(recording.seeds), threads, maps=recording.maps)
    return partial(_play_steps, engine, recording)


def _play_steps(engine: BattleEngine, recording: Recording) -> float:
    seconds = sum(step for step, _ in play(engine, recording))
    recording.check_end(engine)
    return seconds


if __name__ == "__main__":
    _run_loops()
