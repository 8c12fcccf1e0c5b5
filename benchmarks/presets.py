"""Live agent-steps per second of every scenario that is shipped, through every API, on one thread."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

from benchmarks.apis import (
    AEC_ENV,
    BATCH_ENV,
    ENGINE,
    PARALLEL_ENV,
    SINGLE_ENV,
    VECTOR_ENV,
    rate,
    recordings,
    replays,
)
from benchmarks.recording import BATCH, MAPS
from benchmarks.tables import Table, by_pairs
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import MapPool, scenarios

COLUMNS = {
    "engine": ENGINE, "batch": BATCH_ENV, "vector": VECTOR_ENV, "env": SINGLE_ENV, "parallel": PARALLEL_ENV,
    "AEC": AEC_ENV,
}  # fmt: skip
QUICK = "duel-open", "hunt", "skirmish-jungle"
ROUNDS = 3
"""At most: there are many more measurements than in the other sections."""


def presets(effort: Effort) -> list[Table]:
    """Every scenario through every API, between scripted novices."""
    rounds = min(effort.rounds, ROUNDS)
    plays: dict[tuple[str, str], Callable[[], float]] = {}
    live: dict[tuple[str, str], float] = {}
    for scenario in QUICK if effort.quick else scenarios():
        config = scenarios()[scenario].config
        batch, single = recordings("novices", config, effort.decisions, MapPool.generate(config, MAPS))
        live[scenario, "living"] = batch.agent_steps / batch.battle_steps
        found = replays(batch, single, "novices")
        plays |= {(scenario, column): partial(rate, *found[api]) for column, api in COLUMNS.items()}
    tell(f"presets: {rounds} rounds of {len(plays)} measurements")
    rates = interleaved(plays, rounds)
    cells = {key: statistics.median(values) for key, values in rates.items()} | live
    notes = (
        f"Engine, batch env and Gymnasium vector env: {BATCH} battles; Gymnasium env, PettingZoo parallel env and AEC: "
        f"one. Living: mechs of a battle, on average. {rounds} rounds.",
        spread_note(rates.values()),
    )
    return [by_pairs("presets", "Scenarios, between scripted novices", "live agent-steps/s", cells, notes)]
