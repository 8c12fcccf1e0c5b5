"""What each phase of a decision costs, in microseconds a battle, between scripted novices.

Run ``python benchmarks/phases.py [--scenarios skirmish battle] [--decisions 1500]``. The phases are the engine's own
kernels, each compiled into a loop over the batch and called one after the other from Python, in the engine's order;
an empty call before each is timed too and taken off.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from typing import Any

import numpy as np

from echelon_env import BattleEngine, opponents
from echelon_env.engine._jit import entry_point
from echelon_env.engine.body import age_all
from echelon_env.engine.commands import forget_decision, read_commands
from echelon_env.engine.damage import settle
from echelon_env.engine.intel import share_intel
from echelon_env.engine.movement import move_all
from echelon_env.engine.observe import observe_all
from echelon_env.engine.outcome import flag_rows, judge
from echelon_env.engine.paint import age_paint
from echelon_env.engine.projectiles import fly_all
from echelon_env.engine.reward import reward_all
from echelon_env.engine.sensors import list_all_contacts, look_around
from echelon_env.engine.smoke import age_clouds
from echelon_env.engine.weapons import fire_all
from echelon_env.engine.zone import score_all

BATCH = 16


@entry_point
def nothing(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    pass


@entry_point
def commands(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        forget_decision(state, b)
        if not state.battles[b].over:
            read_commands(tables, state, actions[b], b)


@entry_point
def body(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            first[b] = state.battles[b].num_events
            age_clouds(state, b)
            age_paint(state, b)
            age_all(tables, state, b)


@entry_point
def movement(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            move_all(tables, state, b)


@entry_point
def shots(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            fire_all(tables, state, b)


@entry_point
def projectiles(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            fly_all(tables, state, b)


@entry_point
def settlement(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            settle(tables, state, b, first[b])
            state.battles[b].tick += 1


@entry_point
def outcome(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            state.battles[b].step_count += 1
            score_all(tables, state, b)
            judge(tables, state, b)
            flag_rows(tables, state, b, out.terminated[b], out.truncated[b])
            reward_all(tables, state, b, out.components[b], out.rewards[b])


@entry_point
def sensors(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            look_around(tables, state, b)
            list_all_contacts(tables, state, b)
            share_intel(tables, state, b)


@entry_point
def observations(tables: Any, state: Any, out: Any, actions: Any, first: Any) -> None:
    for b in range(len(state.battles)):
        if not state.battles[b].over:
            observe_all(tables, state, b, out.observations[b])


TICK = (body, movement, shots, projectiles, settlement)
AFTER = (outcome, sensors, observations)


def measure(scenario: str, decisions: int) -> dict[str, float]:
    """Microseconds a live battle and decision by phase, and the number of live mechs a battle."""
    engine = BattleEngine(scenario, BATCH)
    player = opponents.make("novice", 0, engine.config)
    spent: dict[str, float] = defaultdict(float)
    battles = mechs = seed = 0
    first = np.zeros(BATCH, np.int64)
    engine.reset(np.arange(BATCH))
    for _ in range(decisions):
        if engine.battle_over.all():
            seed += BATCH
            engine.reset(np.arange(seed, seed + BATCH))
        seen = engine.out.observations
        actions = player.act(seen.reshape(-1, engine.observation_dim)).reshape(*seen.shape[:2], -1)
        running = ~engine.battle_over
        battles += int(running.sum())
        mechs += int(engine.alive[running].sum())
        arguments = engine.tables, engine.state, engine.out, actions, first
        nothing(*arguments)  # brings back what the player's thinking drove out of the caches
        for phase in (commands, *TICK * engine.config.decision_repeat, *AFTER):
            times = [time.perf_counter()]
            for function in (nothing, phase):
                function(*arguments)
                times.append(time.perf_counter())
            spent[phase.__name__] += times[2] - times[1] - (times[1] - times[0])
    costs = {name: 1e6 * seconds / battles for name, seconds in spent.items()}
    return {**costs, "all": sum(costs.values()), "live mechs": mechs / battles}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", nargs="+", default=["skirmish", "battle"])
    parser.add_argument("--decisions", type=int, default=1500)
    options = parser.parse_args()
    for scenario in options.scenarios:
        measure(scenario, 2)  # compiles
    results = {scenario: measure(scenario, options.decisions) for scenario in options.scenarios}
    print(f"{'us a battle and decision':26}" + "".join(f"{scenario:>12}" for scenario in results))
    for name in next(iter(results.values())):
        print(f"{name:26}" + "".join(f"{result[name]:12.1f}" for result in results.values()))


if __name__ == "__main__":
    main()
