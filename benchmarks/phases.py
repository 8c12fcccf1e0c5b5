"""What each phase of a decision costs, in microseconds a battle, between scripted novices.

The phases are the engine's own kernels, each compiled into a loop over the batch and called one after the other from
Python, in the engine's order (`echelon_env.engine.tick`); the median of empty calls in between is taken off. What only
the order costs is thereby missing: in the engine a battle goes through all phases before the next one begins.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.apis import SIZES
from benchmarks.recording import BATCH, MAPS, Recording, play, record
from benchmarks.tables import Table
from benchmarks.timing import Effort, interleaved, tell
from echelon_env import BattleEngine, MapPool, make_config
from echelon_env.engine.body import update_bodies
from echelon_env.engine.commands import clear_decision, read_commands
from echelon_env.engine.damage import settle
from echelon_env.engine.intel import share_intel
from echelon_env.engine.kernels import entry_point
from echelon_env.engine.movement import list_near, move_all
from echelon_env.engine.observe import observe_all
from echelon_env.engine.outcome import decide_outcome, flag_rows
from echelon_env.engine.paint import age_paint
from echelon_env.engine.projectiles import fly_all
from echelon_env.engine.reward import reward_all
from echelon_env.engine.sensors import list_all_contacts, update_visibility
from echelon_env.engine.smoke import age_clouds
from echelon_env.engine.weapons import fire_all
from echelon_env.engine.zone import score_all


@entry_point
def nothing(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    pass


@entry_point
def commands(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        clear_decision(state, b)
        if not state.battles[b].over:
            read_commands(tables, state, actions[b], b)
            list_near(tables, state, b)


@entry_point
def body(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            first[b] = state.battles[b].num_events
            age_clouds(state, b)
            age_paint(tables, state, b)
            update_bodies(tables, state, b)


@entry_point
def movement(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            move_all(tables, state, b)


@entry_point
def shots(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            fire_all(tables, state, b)


@entry_point
def projectiles(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            fly_all(tables, state, b)


@entry_point
def settlement(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            settle(tables, state, b, first[b])
            state.battles[b].tick += 1


@entry_point
def outcome(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            state.battles[b].step_count += 1
            score_all(tables, state, b)
            decide_outcome(tables, state, b)
            flag_rows(tables, state, b, out.terminated[b], out.truncated[b])
            reward_all(tables, state, b, out.components[b], out.rewards[b])


@entry_point
def sensors(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            update_visibility(tables, state, b)
            list_all_contacts(tables, state, b)
            share_intel(tables, state, b)


@entry_point
def observations(tables: Any, state: Any, out: Any, actions: Any, first: Any, places: Any, seen: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            observe_all(tables, state, b, places[b], seen)


TICK = (body, movement, shots, projectiles, settlement)
AFTER = (outcome, sensors, observations)
SUM, WHOLE, LIVE = "all phases", "the engine's step", "live mechs a battle"


def phases(effort: Effort) -> list[Table]:
    """Medians over the rounds of every phase, of their sum, and of the engine's step in the same battles."""
    sizes = dict(list(SIZES.items())[1:3]) if effort.quick else SIZES
    recordings = {}
    for size, scenario in sizes.items():
        config = make_config(scenario)
        recordings[size] = record(config, "novices", effort.decisions, MapPool.generate(config, MAPS))
    tell(f"phases: {effort.rounds} rounds of {len(sizes)} measurements")
    plays = {size: (lambda r=recording: measure(r)) for size, recording in recordings.items()}
    samples = interleaved(plays, effort.rounds)
    costs = {
        size: {name: float(np.median([sample[name] for sample in rounds])) for name in rounds[0]}
        for size, rounds in samples.items()
    }
    rows = {name: tuple(cost[name] for cost in costs.values()) for name in next(iter(costs.values()))}
    note = f"Batches of {BATCH}. The sum is of calls phase by phase; the step is one call for all of it."
    return [Table("phases", "A decision, phase by phase", "us a battle", tuple(sizes), rows, (note,))]


def measure(recording: Recording) -> dict[str, float]:
    """Microseconds a live battle and decision by phase, their sum and the engine's whole step, and the live mechs."""
    engine = BattleEngine(recording.config, len(recording.seeds), maps=recording.maps)
    whole = sum(step for step, _ in play(engine, recording))
    spent = _by_phase(engine, recording)
    recording.check_end(engine)
    costs = {name: 1e6 * seconds / recording.battle_steps for name, seconds in spent.items()}
    return {
        **costs, SUM: sum(costs.values()), WHOLE: 1e6 * whole / recording.battle_steps,
        LIVE: recording.agent_steps / recording.battle_steps,
    }  # fmt: skip


def _by_phase(engine: BattleEngine, recording: Recording) -> dict[str, float]:
    """Seconds by phase of a whole recording."""
    spent: dict[str, float] = defaultdict(float)
    empty: list[float] = []
    first = np.zeros(engine.num_battles, np.int64)
    episodes = np.zeros(engine.num_battles, np.int64)
    order = (commands, *TICK * engine.config.decision_repeat, *AFTER)
    engine.reset(recording.episode_seeds(episodes))
    for actions, begins in zip(recording.actions, recording.begins, strict=True):
        seen = engine.observation_rows
        arguments = engine.tables, engine.state, engine.out, actions, first, seen.places, seen.array
        for phase in order:
            start = time.perf_counter()
            nothing(*arguments)
            called = time.perf_counter()
            phase(*arguments)
            spent[phase.__name__] += time.perf_counter() - called
            empty.append(called - start)
        if begins.any():
            episodes += begins
            engine.reset(recording.episode_seeds(episodes), begins)
    call = float(np.median(empty)) * len(recording.actions)
    return {name: seconds - call * sum(phase.__name__ == name for phase in order) for name, seconds in spent.items()}
