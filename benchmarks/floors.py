"""What the three costliest phases of a decision need at least: the work of the rules, counted, times measured rates.

The recordings of `phases` are played again: sixteen battles between scripted novices. The states before and after every
fifth decision are copied. Tight loops (`floor_kernels`) do the work that the decision needed on the state after it, and
are counted and timed.

The terms, by phase; a count is per battle and decision, a tick is one of the five of a decision:

- movement: mechs that turn in a tick (wrap, cosine, sine); mechs that move (displacement, bounds, the vertical step,
  and the columns of a box that comes to cover other cells); pairs of mechs, compared once a decision.
- sensors: pairs of enemies; columns read for lines of sight, one where the column that blocked the line at the last
  decision still does, else all that the line crosses until it is blocked; rows sorted into tables, of contacts and of
  what the pack knows.
- observations: features of others (contacts, team-mates, intel), at the rate of contacts; cells of the map around mechs
  that moved or turned, for to the others it is the same. What stays as it was is not written.

The other phases have no floor: each takes less than a tenth of a step of 10 v 10. Left out is what takes less than a
twentieth of its phase's floor: draws of the order of moves, sightings, features of the mech itself, messages, cleared
rows. Left out are also what mechs near enough to touch need in every tick, mechs in the air, step-ups and falls,
hazards, jamming, smoke and the logarithms of sounds. The floor is too low by these, and because each loop has the
instruction cache to itself; it is too high where a fused engine would find a record in the first-level cache that each
loop here fetches for itself.

The loops have run on another state before, never on the one that is timed, so that no branch predictor has learned it.
Rates are medians over the samples, weighted by units. Times are of the thread, which leaves out what other processes
take, but not what they drive out of shared caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import floor_kernels
from benchmarks.apis import SIZES
from benchmarks.recording import MAPS, Recording, play, record
from benchmarks.results import Results
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, tell
from echelon_env import BattleEngine, MapPool, make_config
from echelon_env.engine.state import State
from echelon_env.layout.observations import EGO_SIDE, STREAMS

STRIDE = 5
"""Every how manyth decision is sampled."""

TERMS: dict[str, Callable[..., tuple[int, float]]] = {
    "movement: turns": floor_kernels.turns,
    "movement: moves": floor_kernels.moves,
    "movement: pairs of mechs": floor_kernels.pairs,
    "sensors: pairs of enemies": floor_kernels.senses,
    "sensors: columns of sight": floor_kernels.lines,
    "sensors: rows sorted": floor_kernels.listings,
    "observations: features of others": floor_kernels.entity_rows,
    "observations: cells": floor_kernels.cells,
}
"""By phase and unit, the loop that does the work."""

PHASES = tuple(dict.fromkeys(term.partition(":")[0] for term in TERMS))


class Work(NamedTuple):
    """What the kernels read and write beside the state."""

    blockers: NDArray[np.int32]  # (B, M, M) the column that blocks the line between two mechs, or -1
    listed: NDArray[np.bool_]  # (B, 2, M, M) what a mech perceives, and what its pack knows
    distances: NDArray[np.float64]  # (M + 1,) scratch of sorting
    observations: NDArray[np.float32]  # (B, M, D)
    moved: NDArray[np.bool_]  # (B, M) mechs that have moved or turned
    places: NDArray[np.int32]  # (cells,) scratch of the map around a mech


class Sample(NamedTuple):
    """A state to run the kernels on."""

    state: State
    work: Work


def copied(state: State) -> State:
    """A copy with the columns as the kernels take them, (B, Y * X)."""
    copy = State(*(array.copy() for array in state))
    return copy._replace(columns=copy.columns.reshape(len(copy.columns), -1))


def take_sample(engine: BattleEngine, before: State) -> Sample:
    """A copy of an engine's state after a decision; what blocked its lines is known from the state before it."""
    state = copied(engine.state)
    mechs, was = state.mechs, before.mechs
    known = state.sightings["known"] == 1
    packs = np.take_along_axis(known, mechs["pack"][:, :, None].astype(np.intp), axis=1)
    moved = np.any([mechs[name] != was[name] for name in ("x", "y", "z", "yaw")], axis=0)
    work = Work(
        blockers=np.full(state.visible.shape, -1, np.int32),
        listed=np.stack([state.visible != 0, packs], axis=1),
        distances=np.zeros(mechs.shape[1] + 1),
        observations=engine.observations.copy(),
        moved=moved & (mechs["alive"] == 1),
        places=np.zeros(EGO_SIDE**2, np.int32),
    )
    floor_kernels.lines(engine.tables, before, work)
    return Sample(state, work)


def clock(engine: BattleEngine, familiar: Sample, sample: Sample) -> dict[str, tuple[int, int]]:
    """Units and nanoseconds of each term on a sample; its loop has just run on the familiar one.

    The time of an empty call right before is taken off. The large arrays are read first, so that they come from the
    caches that a batch fits into, not from memory.
    """
    results: dict[str, tuple[int, int]] = {}
    mechs = sample.state.mechs.copy()
    for term, function in TERMS.items():
        for array in (sample.state.columns, sample.work.observations):
            array.reshape(-1).view(np.uint32).max()
        function(engine.tables, *familiar)
        np.copyto(sample.state.mechs, mechs)  # earlier kernels have moved them
        times, units = [], 0
        for timed in (floor_kernels.nothing, floor_kernels.nothing, function):  # the first call fills caches
            units, _ = timed(engine.tables, *sample)
            times.append(time.thread_time_ns())
        results[term] = units, max(0, times[2] - 2 * times[1] + times[0])
    return results


def features_of_others(sample: Sample) -> int:
    """Features in the filled rows of contacts, team-mates and intel of living mechs."""
    living = (sample.state.mechs["alive"] == 1) & (sample.state.battles["over"] == 0)[:, None]
    rows = sample.work.observations[living]
    return sum(
        int(rows[:, STREAMS[f"{name}_mask"].part].sum()) * STREAMS[name].row_width
        for name in ("contacts", "squad", "intel")
    )


def rate(samples: list[tuple[int, int]]) -> float:
    """The median of nanoseconds a unit, weighted by units; 0 for what never occurred."""
    units, spent = np.array([sample for sample in samples if sample[0] > 0] or [(1, 0)], np.float64).T
    order = np.argsort(spent / units)
    reached = np.cumsum(units[order])
    return float((spent / units)[order][np.searchsorted(reached, 0.5 * reached[-1])])


def measure(recording: Recording) -> dict[str, tuple[float, float, float]]:
    """Count, nanoseconds each and microseconds of each term, per battle and decision.

    The first sample only makes the loops familiar, the second gives rates: seven decisions are the least.
    """
    engine = BattleEngine(recording.config, len(recording.seeds), maps=recording.maps)
    counts, battles = dict.fromkeys(TERMS, 0), 0
    samples: dict[str, list[tuple[int, int]]] = {term: [] for term in TERMS}
    earlier, familiar = copied(engine.state), None

    def sample(t: int, fresh: NDArray[np.bool_]) -> None:
        nonlocal earlier, familiar, battles
        if t % STRIDE == 0:
            earlier = copied(engine.state)
        if t % STRIDE != 1:
            return
        taken = take_sample(engine, earlier)
        taken.state.battles["over"] |= fresh  # those that have just begun took no decision
        if familiar is not None:
            battles += int((taken.state.battles["over"] == 0).sum())
            features = features_of_others(taken)
            for term, (units, spent) in clock(engine, familiar, taken).items():
                counts[term] += features if TERMS[term] is floor_kernels.entity_rows else units
                samples[term].append((units, spent))
        familiar = taken

    play(engine, recording, sample)
    found = {}
    for term, count in counts.items():
        each = rate(samples[term])
        found[term] = count / battles, each, count / battles * each / 1000
    return found


def floors(effort: Effort) -> list[Table]:
    """Floors in microseconds a battle and decision, and the terms of one of them."""
    sizes = dict(list(SIZES.items())[1:3] if effort.quick else list(SIZES.items())[1:])
    tell("floors: counting, and measuring the machine's rates")
    terms = {}
    for size, scenario in sizes.items():
        config = make_config(scenario)
        terms[size] = measure(record(config, "novices", effort.decisions, MapPool.generate(config, MAPS)))
    rows: dict[str, tuple[Cell, ...]] = {
        phase: tuple(sum(us for term, (*_, us) in one.items() if term.startswith(phase)) for one in terms.values())
        for phase in PHASES
    }
    size = "10 v 10"
    return [
        Table("floors", "Floors", "us a battle and decision", tuple(terms), rows),
        Table("terms", f"Terms of the floor, {size}", "a battle and decision", ("count", "ns each", "us"), terms[size]),
    ]


def phases_beside_floors(results: Results) -> Table:
    """The phases' measured times, each beside its floor, where both were measured."""
    phases = results.sections["phases"]["phases"]
    bottom = results.sections.get("floors", {}).get("floors")
    columns: list[str] = []
    rows: dict[str, list[Cell]] = {row: [] for row in phases.rows}
    for size in phases.columns:
        columns += [size, "floor"]
        for row, cells in rows.items():
            known = bottom is not None and size in bottom.columns and row in PHASES
            cells += [phases.cell(row, size), bottom.cell(row, size) if bottom is not None and known else None]
    shown = {row: tuple(cells) for row, cells in rows.items()}
    return Table("beside", "Phases and floors", phases.unit, tuple(columns), shown, phases.notes)
