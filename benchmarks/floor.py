"""What a decision costs at least: what the rules need, counted, times what this machine takes for it, measured.

Run ``python -m benchmarks.floor [--scenarios skirmish battle] [--decisions 300]`` in the root of the repository.

Sixteen battles between scripted novices are played. At every fifth decision their state is copied into an engine that
decides every tick; what each of the decision's ticks needs is counted from the states before and after it
(`floor_counts`), and tight loops over the same records (`floor_kernels`, `floor_perception`) are timed. The other
decisions are the measurement that the floor stands beside: the time of `BattleEngine.step`.

The terms, by phase; a count is per battle and decision, a mech-tick is one living mech in one of the five ticks:

- step: a call of a compiled function with all arrays, shared by the battles of the batch that still run.
- commands: living mechs; 27 entries checked, cut, turned into fields of the mech's record.
- body: mech-ticks; timers, balance, heat, radiation and the look at the triggers.
- movement: mech-ticks that turn (wrap, cosine, sine); that move (displacement, bounds, covered cells, the vertical
  step); columns under the boxes that came to cover other cells, looked at once for what blocks, bears and burns; boxes
  of mechs compared: all pairs once a decision, for lists of neighbours, and each way along three axes every tick for
  pairs that could touch in it; draws of the order in ticks in which any pair could touch, else it cannot matter.
- shots: ready mounts' enemies in range; columns on the lines of fire, each pair looked at once a tick; a draw a shot.
- projectiles: projectile-ticks; guidance, the columns under the step, the enemies' boxes against the step's bounds.
- settlement: events written and settled; voxels in reach of bursts.
- outcome: living mechs; the zone, the eight components, the flags.
- sensors: pairs of living enemies; a line that the column which blocked it at the last decision still blocks takes one
  look, every other one the columns that it crosses until it is blocked; rows sorted into tables (contacts, and what the
  pack knows); sightings.
- observations: features that are shares of the own record; that are gathered of others (contacts, team-mates, intel,
  the objective); that are copied (messages); cells of the map around mechs that moved or turned, for to the others it
  is the same; bytes cleared of rows that emptied and of the dead. What stays as it was is not written.

Left out: step-ups and falls, what hazards do to whoever stands in them, the shuffle beyond its draws, splash beyond its
voxels and events, wrecks and changed voxels, jamming, smoke (novices lay none), the logarithms of sounds, what the
battle itself counts, resets, and everything between Python and the compiled call. The floor is too low by these, and
because each loop has the instruction cache to itself; it is too high where a fused engine would find a record in the
first-level cache that each loop here fetches for itself. The loops have run on another state before, never on the one
that is timed, so that no branch predictor knows it by heart. Rates are medians over the samples, weighted by units; the
measurement is the median over the decisions of the time a live mech, weighted by mechs. Times are of the thread, which
leaves out what other processes take, but not what they drive out of shared caches.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import floor_counts, floor_kernels, floor_perception
from echelon_env import BattleEngine, opponents
from echelon_env.engine.state import State
from echelon_env.layout.observations import EGO_SIDE
from echelon_env.storage.atomic import write_json

BATCH = 16
STRIDE = 5
"""Every how manyth decision is counted and its state used for the rates; the others are timed."""

TICKS, ONCE, MANY = (
    5,
    1,
    10,
)  # passes of a kernel over a battle before the next: as in a decision; more of what is short

PRIMITIVES: tuple[tuple[Callable[..., Any], int], ...] = (
    (floor_kernels.commands, MANY),
    (floor_kernels.bodies, TICKS),
    (floor_kernels.turns, TICKS),
    (floor_kernels.moves, TICKS),
    (floor_kernels.footprints, TICKS),
    (floor_kernels.pairs, TICKS),
    (floor_kernels.draws, TICKS),
    (floor_kernels.targets, TICKS),
    (floor_kernels.flights, TICKS),
    (floor_perception.deeds, TICKS),
    (floor_perception.blasts, TICKS),
    (floor_perception.rewards, MANY),
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
    ("step", "calls", "nothing"),
    ("commands", "mechs", "commands"),
    ("body", "mech-ticks", "bodies"),
    ("movement", "turns", "turns"),
    ("movement", "moves", "moves"),
    ("movement", "columns under boxes", "footprints"),
    ("movement", "boxes compared", "pairs"),
    ("movement", "draws of the order", "draws"),
    ("shots", "targets in range", "targets"),
    ("shots", "columns of fire", "lines"),
    ("shots", "shots", "draws"),
    ("projectiles", "projectile-ticks", "flights"),
    ("settlement", "events", "deeds"),
    ("settlement", "voxels of bursts", "blasts"),
    ("outcome", "mechs alive after", "rewards"),
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


class Work(NamedTuple):
    """What the kernels read and write beside the state."""

    actions: NDArray[np.float32]  # (B, M, A)
    events: NDArray[Any]  # (B, E) EVENT, to be written again
    components: NDArray[np.float32]  # (B, M, K)
    rewards: NDArray[np.float32]  # (B, M)
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
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


def take_sample(engine: BattleEngine, actions: NDArray[np.float32], familiar: Sample | None) -> Sample:
    """A copy of an engine's state; what blocked its lines is known from the sample before it."""
    state, out = State(*(array.copy() for array in engine.state)), engine.out
    work = Work(
        actions=actions.copy(),
        events=state.events.copy(),
        components=out.components.copy(),
        rewards=out.rewards.copy(),
        terminated=out.terminated.copy(),
        truncated=out.truncated.copy(),
        visible=state.visible.copy(),
        blockers=familiar.work.blockers.copy() if familiar else np.full(state.visible.shape, -1, np.int32),
        distances=np.zeros(state.mechs.shape[1] + 1),
        observations=out.observations.copy(),
        others=_others(state.mechs),
        painted=(state.paint["ticks"] > 0).any(axis=1),
        places=np.zeros(EGO_SIDE**2, np.int32),
    )
    return Sample(floor_counts.flatten(state), work)


def clock(engine: BattleEngine, familiar: Sample, sample: Sample) -> dict[str, tuple[int, int]]:
    """Units and nanoseconds of each primitive on a sample; each has just run on the familiar one.

    The time of an empty call right before is taken off, and is the primitive `nothing`. The large arrays are read
    first, so that they come from the caches that a batch fits into, not from memory.
    """
    results: dict[str, tuple[int, int]] = {}
    calls = []
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
        calls.append(times[1] - times[0])
        if units > 0:
            results[function.__name__] = units, max(0, times[2] - times[1] - calls[-1])
    return {**results, "nothing": (1, int(np.median(calls)))}


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
        floor_counts.count_shooting(single.tables, before, single.state, counts)
        before = State(*(array.copy() for array in single.state))
    floor_counts.count_decision(first, single, seen, counts)
    counts["calls"] += 1


def _copy_into(single: BattleEngine, engine: BattleEngine, repeat: int) -> None:
    for source, target in zip(engine.state, single.state, strict=True):
        if source.shape == target.shape:  # the lists of events, which a step empties, are not
            np.copyto(target, source)
    single.state.battles["step_count"] *= repeat
    np.copyto(single.out.observations, engine.out.observations)


def measure(scenario: str, decisions: int) -> dict[str, Any]:
    """The floor of a scenario and what was measured in the same run, as a dict that JSON can hold.

    `decisions` must be at least 6: the first state only makes the loops familiar, the second gives rates.
    `terms` (phase, what, count, ns, us) and `counts` of everything are per battle and decision, as are `floor_us`, by
    phase and in `all`, and `measured_us`, with the `ratio` of the two; `..._agent_steps` are of live mechs a second.
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
    timed: list[tuple[int, int, int]] = []  # battles, live mechs, nanoseconds
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
            sample = take_sample(single, actions, familiar)
            if familiar is not None:
                samples.append(clock(single, familiar, sample))
            familiar = sample
            engine.step(actions)
            continue
        running = ~engine.battle_over
        live = int(engine.alive[running].sum())
        start = time.thread_time_ns()
        engine.step(actions)
        timed.append((int(running.sum()), live, time.thread_time_ns() - start))
    battles, mechs, spent = np.array(timed, np.float64).T
    live_mechs = float(mechs.sum() / battles.sum())
    measured = live_mechs * weighted_median(spent / mechs, mechs) / 1000
    return _report(scenario, counts, rates(samples), measured, live_mechs)


def _report(scenario: str, counts: Counter[str], ns: dict[str, float], measured: float, live: float) -> dict[str, Any]:
    per_battle = {name: count / counts["battles"] for name, count in counts.items()}
    terms = []
    floor: dict[str, float] = defaultdict(float)
    for phase, what, primitive in TERMS:
        count = per_battle.get(what, 0.0)
        us = count * ns[primitive] / 1000
        terms.append({"phase": phase, "what": what, "count": count, "ns": ns[primitive], "us": us})
        floor[phase] += us
    whole = sum(floor.values())
    return {
        "scenario": scenario,
        "batch": BATCH,
        "live_mechs": live,
        "terms": terms,
        "floor_us": {**floor, "all": whole},
        "measured_us": measured,
        "ratio": measured / whole,
        "floor_agent_steps": 1e6 * per_battle["mechs"] / whole,
        "measured_agent_steps": 1e6 * live / measured,
        "counts": per_battle,
    }


def print_report(result: dict[str, Any]) -> None:
    """A floor as a table of 80 columns."""
    print(f"{result['scenario']}, {result['live_mechs']:.1f} live mechs, per battle and decision")
    print(f"{'':14}{'':24}{'count':>10}{'ns':>9}{'us':>9}")
    for term in result["terms"]:
        print(f"{term['phase']:14}{term['what']:24}{term['count']:10.1f}{term['ns']:9.2f}{term['us']:9.2f}")
    for phase, us in result["floor_us"].items():
        print(f"{phase:14}{'':43}{us:9.2f}")
    for name, what in (("floor_us", "floor"), ("measured_us", "measured")):
        us = result[name]["all"] if name == "floor_us" else result[name]
        print(f"{what:12}{us:8.1f} us{result[f'{what}_agent_steps']:14,.0f} live agent-steps/s")
    print(f"{result['ratio']:.2f} times the floor\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="the least that a decision can cost on this machine")
    parser.add_argument("--scenarios", nargs="+", default=["skirmish", "battle"])
    parser.add_argument("--decisions", type=int, default=300)
    parser.add_argument("--json", type=Path, help="a file for the results")
    options = parser.parse_args()
    results = [measure(scenario, options.decisions) for scenario in options.scenarios]
    for result in results:
        print_report(result)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
