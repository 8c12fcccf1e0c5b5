"""What the three costliest phases of a decision need at least: the work of the rules, counted, times measured rates.

Sixteen battles between scripted novices are played. At every fifth decision their state is copied into an engine that
decides every tick; what each of the decision's ticks needs is counted from the states before and after it
(`floor_counts`), and tight loops over the same records (`floor_kernels`, `floor_perception`) are timed.

The terms, by phase; a count is per battle and decision, a tick is one of the five of a decision:

- movement: living mechs that turn in a tick (wrap, cosine, sine); that move (displacement, bounds, covered cells, the
  vertical step); columns under the boxes that came to cover other cells, read once for what blocks, bears and burns;
  boxes of mechs compared: all pairs once a decision, for lists of neighbours, and each way along three axes every tick
  for pairs that could touch in it; draws of the order in ticks in which any pair could touch, else it cannot matter.
- sensors: pairs of living enemies; a line that the column which blocked it at the last decision still blocks takes one
  read, every other one the columns that it crosses until it is blocked; rows sorted into tables (contacts, and what the
  pack knows); sightings.
- observations: features that are shares of the own record; that are gathered of others (contacts, team-mates, intel,
  the objective); that are copied (messages); cells of the map around mechs that moved or turned, for to the others it
  is the same; bytes cleared of rows that emptied and of the dead. What stays as it was is not written.

The other phases have no floor: each takes less than a tenth of a step of 10 v 10. Left out: step-ups and falls, what
hazards do to mechs that stand in them, the shuffle beyond its draws, jamming, smoke (novices lay none), the logarithms
of sounds. The floor is too low by these, and because each loop has the instruction cache to itself; it is too high
where a fused engine would find a record in the first-level cache that each loop here fetches for itself. The loops
have run on another state before, never on the one that is timed, so that no branch predictor has learned it. Rates are
medians over the samples, weighted by units. Times are of the thread, which leaves out what other processes take, but
not what they drive out of shared caches.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import floor_counts, floor_kernels, floor_perception
from benchmarks.apis import SIZES
from benchmarks.phases import LIVE
from benchmarks.results import Results
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, tell
from echelon_env import BattleEngine, opponents
from echelon_env.engine.state import State
from echelon_env.layout.observations import EGO_SIDE

BATCH = 16
STRIDE = 5
"""Every how manyth decision is counted and its state used for the rates."""

TICKS, ONCE, MANY = (
    5,
    1,
    10,
)  # passes of a kernel over a battle before the next: as in a decision; more of what is short

PRIMITIVES: tuple[tuple[Callable[..., Any], int], ...] = (
    (floor_kernels.turns, TICKS),
    (floor_kernels.moves, TICKS),
    (floor_kernels.footprints, TICKS),
    (floor_kernels.pairs, TICKS),
    (floor_kernels.draws, TICKS),
    (floor_kernels.blockers, ONCE),  # before `lines` finds what blocks now
    (floor_kernels.lines, ONCE),
    (floor_perception.senses, ONCE),
    (floor_perception.listings, ONCE),
    (floor_perception.sightings, MANY),
    (floor_perception.own_rows, ONCE),
    (floor_perception.entity_rows, ONCE),
    (floor_perception.copies, ONCE),
    (floor_perception.cells, ONCE),
    (floor_perception.clears, ONCE),
)

TERMS = (
    ("movement", "turns", "turns"),
    ("movement", "moves", "moves"),
    ("movement", "columns under boxes", "footprints"),
    ("movement", "boxes compared", "pairs"),
    ("movement", "draws of the order", "draws"),
    ("sensors", "pairs of enemies", "senses"),
    ("sensors", "lines blocked before", "blockers"),
    ("sensors", "columns of sight", "lines"),
    ("sensors", "rows sorted", "listings"),
    ("sensors", "sightings", "sightings"),
    ("observations", "own features", "own_rows"),
    ("observations", "features of others", "entity_rows"),
    ("observations", "copied features", "copies"),
    ("observations", "cells", "cells"),
    ("observations", "bytes cleared", "clears"),
)
"""Phase, what is counted, and the primitive whose rate it is multiplied with."""

PHASES = tuple(dict.fromkeys(phase for phase, _, _ in TERMS))


class Work(NamedTuple):
    """What the kernels read and write beside the state."""

    visible: NDArray[np.int8]  # (B, M, M)
    blockers: NDArray[np.int32]  # (B, M, M) the column that blocks the line, or -1
    distances: NDArray[np.float64]  # (M + 1,) scratch of sorting
    observations: NDArray[np.float32]  # (B, M, D)
    others: NDArray[np.int16]  # (B, M, M + 1) contacts and living team-mates of each living mech, then -1
    painted: NDArray[np.bool_]  # (B, M)
    places: NDArray[np.int32]  # (cells,) scratch of the map around a mech


class Sample(NamedTuple):
    """A state to run the kernels on."""

    state: State
    work: Work


def _others(mechs: NDArray[Any]) -> NDArray[np.int16]:
    listed = np.full((*mechs.shape, mechs.shape[1] + 1), -1, np.int16)
    for b, m in zip(*np.nonzero(mechs["alive"]), strict=True):
        mech = mechs[b, m]
        mates = np.flatnonzero((mechs["team"][b] == mech["team"]) & (mechs["alive"][b] == 1))
        rows = [*mech["contacts"][mech["contacts"] >= 0], *mates[mates != m]]
        listed[b, m, : len(rows)] = rows
    return listed


def take_sample(engine: BattleEngine, familiar: Sample | None) -> Sample:
    """A copy of an engine's state; what blocked its lines is known from the sample before it."""
    state = State(*(array.copy() for array in engine.state))
    work = Work(
        visible=state.visible.copy(),
        blockers=familiar.work.blockers.copy() if familiar else np.full(state.visible.shape, -1, np.int32),
        distances=np.zeros(state.mechs.shape[1] + 1),
        observations=engine.out.observations.copy(),
        others=_others(state.mechs),
        painted=(state.paint["ticks"] > 0).any(axis=1),
        places=np.zeros(EGO_SIDE**2, np.int32),
    )
    return Sample(floor_counts.flatten(state), work)


def clock(engine: BattleEngine, familiar: Sample, sample: Sample) -> dict[str, tuple[int, int]]:
    """Units and nanoseconds of each primitive on a sample; each has just run on the familiar one.

    The time of an empty call right before is taken off. The large arrays are read
    first, so that they come from the caches that a batch fits into, not from memory.
    """
    results: dict[str, tuple[int, int]] = {}
    floor_kernels.nothing(engine.tables, *sample, ONCE)
    for function, passes in PRIMITIVES:
        for array in (sample.state.columns, sample.work.observations):
            array.reshape(-1).view(np.uint32).max()
        function(engine.tables, *familiar, passes)
        np.copyto(sample.state.mechs, engine.state.mechs)  # earlier kernels have moved them
        times = [time.thread_time_ns()]
        for timed in (floor_kernels.nothing, function):
            units, _ = timed(engine.tables, *sample, passes)
            times.append(time.thread_time_ns())
        if units > 0:
            results[function.__name__] = units, max(0, times[2] - 2 * times[1] + times[0])
    return results


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The value at which half of the weight is reached."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])


def rates(samples: list[dict[str, tuple[int, int]]]) -> dict[str, float]:
    """Nanoseconds a unit of each primitive; 0 for what never occurred."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for sample in samples:
        for name, result in sample.items():
            found[name].append(result)
    result = {}
    for _, _, name in TERMS:
        units, spent = np.array(found[name] or [(1, 0)], np.float64).T
        result[name] = weighted_median(spent / units, units)
    return result


def _count_ticks(single: BattleEngine, actions: NDArray[np.float32], repeat: int, counts: Counter[str]) -> None:
    """Take a decision tick by tick and count what it needs."""
    first, seen = State(*(array.copy() for array in single.state)), single.out.observations.copy()
    before = first
    for _ in range(repeat):
        single.step(actions)
        before.mechs["alive"][before.battles["over"] != 0] = 0
        floor_counts.count_movement(single.tables, before.mechs, single.state.mechs, counts)
        before = State(*(array.copy() for array in single.state))
    floor_counts.count_decision(first, single, seen, counts)


def _copy_into(single: BattleEngine, engine: BattleEngine, repeat: int) -> None:
    for source, target in zip(engine.state, single.state, strict=True):
        if source.shape == target.shape:  # the lists of events, which a step empties, are not
            np.copyto(target, source)
    single.state.battles["step_count"] *= repeat
    np.copyto(single.out.observations, engine.out.observations)


def measure(scenario: str, decisions: int) -> dict[str, Any]:
    """The floor of a scenario.

    `decisions` must be at least 6: the first state only makes the loops familiar, the second gives rates.
    `terms` (phase, what, count, ns, us) and `counts` of everything are per battle and decision, as is `floor_us`.
    """
    if decisions <= STRIDE:
        raise ValueError(f"decisions: expected at least {STRIDE + 1}, got {decisions}")
    engine = BattleEngine(scenario, BATCH)
    repeat = engine.config.decision_repeat
    single = BattleEngine(scenario, BATCH, decision_repeat=1, max_steps=repeat * engine.config.max_steps)
    player = opponents.make("novice", 0, engine.config)
    counts: Counter[str] = Counter()
    samples: list[dict[str, tuple[int, int]]] = []
    familiar: Sample | None = None
    engine.reset(np.arange(BATCH))
    single.reset(np.arange(BATCH))
    for decision in range(decisions):
        if engine.battle_over.all():
            engine.reset(np.arange(decision * BATCH, (decision + 1) * BATCH))
        seen = engine.out.observations
        actions = player.act(seen.reshape(-1, engine.observation_dim)).reshape(*seen.shape[:2], -1)
        if decision % STRIDE == 0:
            _copy_into(single, engine, repeat)
            _count_ticks(single, actions, repeat, counts)
            sample = take_sample(single, familiar)
            if familiar is not None:
                samples.append(clock(single, familiar, sample))
            familiar = sample
        engine.step(actions)
    return _report(counts, rates(samples))


def _report(counts: Counter[str], ns: dict[str, float]) -> dict[str, Any]:
    per_battle = {name: count / counts["battles"] for name, count in counts.items()}
    terms = []
    floor: dict[str, float] = defaultdict(float)
    for phase, what, primitive in TERMS:
        count = per_battle.get(what, 0.0)
        us = count * ns[primitive] / 1000
        terms.append({"phase": phase, "what": what, "count": count, "ns": ns[primitive], "us": us})
        floor[phase] += us
    return {"terms": terms, "floor_us": dict(floor), "counts": per_battle}


def floors(effort: Effort) -> list[Table]:
    """Floors in microseconds a battle and decision, and the terms of one of them."""
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else dict(list(SIZES.items())[1:])
    tell("floors: counting, and measuring the machine's rates")
    found = {size: measure(scenario, effort.decisions) for size, scenario in sizes.items()}
    rows: dict[str, tuple[Cell, ...]] = {
        **{phase: tuple(one["floor_us"][phase] for one in found.values()) for phase in PHASES},
        LIVE: tuple(one["counts"]["mechs"] for one in found.values()),
    }
    size = "10 v 10"
    terms = {
        f"{term['phase']}: {term['what']}": (term["count"], term["ns"], term["us"]) for term in found[size]["terms"]
    }
    return [
        Table("floors", "Floors", "us a battle and decision", tuple(found), rows),
        Table("terms", f"Terms of the floor, {size}", "a battle and decision", ("count", "ns each", "us"), terms),
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
