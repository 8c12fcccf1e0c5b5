"""Digests of the behaviour of the engine and the shipped players; `python tests/support/behaviour.py` writes them.

They depend on outputs only (observations, rewards, events, statistics, maps, actions), not on how these are computed or
stored. Write them again after a deliberate change of a rule or a player.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import echelon_env
from echelon_env import BattleEngine, make_config, opponents
from echelon_env.champions import CHAMPIONS
from echelon_env.config.biomes import default_biomes
from echelon_env.config.opponent import CHAMPION
from echelon_env.engine.state import EVENT_KINDS
from echelon_env.evaluate.players import BASELINES, BattleNoise, baseline
from echelon_env.layout.actions import ACTION_HIGH, ACTION_LOW, Action
from echelon_env.layout.observations import STREAMS, state_streams
from echelon_env.terrain import generate

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.golden_player import SEEDS, GoldenPlayer

FILE = Path(echelon_env.__file__).parent / "evaluate" / "behaviour.json"
BATTLES = ("duel", "skirmish", "battle")
WATCHED = "skirmish"  # the battles that the opponents see
DECISIONS = 160  # of those battles
HASHED_AS = {"damage_dealt": "damage"}  # a name is no behaviour
HANDICAPPED = "expert@reaction_delay=0.5,aim_error=0.1,fire_rate=0.5"


def digest(arrays: Iterable[np.ndarray]) -> str:
    """16 hexadecimal digits of the SHA-256 of the shapes and values of arrays.

    Records are hashed by field name. Integers of all widths and booleans are hashed as int64.
    """
    hashed = hashlib.sha256()
    for array in arrays:
        fields = {HASHED_AS.get(name, name): array[name] for name in array.dtype.names or ()} or {"": array}
        for name in sorted(fields):
            part = np.ascontiguousarray(fields[name])
            if part.dtype.kind in "biu":
                part = part.astype(np.int64)
            hashed.update(f"{name} {part.dtype.kind} {part.shape}\n".encode() + part.tobytes())
    return hashed.hexdigest()[:16]


def golden_battles(scenario: str) -> tuple[str, list[np.ndarray]]:
    """The digest of a scenario's golden battles, and the observations (B, M, D) of each decision."""
    engine = BattleEngine(scenario, num_battles=len(SEEDS))
    seen = [np.array(engine.reset(SEEDS))]
    outputs: list[np.ndarray] = []
    players = [GoldenPlayer(seed) for seed in SEEDS]
    while not engine.battle_over.all():
        engine.step(np.stack([player.act(rows) for player, rows in zip(players, seen[-1], strict=True)]))
        seen.append(np.array(engine.observations))
        outputs += [np.array(array) for array in engine.out]
        outputs += [engine.global_state(0)]
        for events in map(engine.events, range(len(SEEDS))):
            kinds = " ".join(EVENT_KINDS[kind] for kind in events["kind"])
            numbers = sorted({*(events.dtype.names or ())} - {"kind"})
            outputs += [np.frombuffer(kinds.encode(), np.uint8), events[numbers]]
    return digest([*seen, *outputs, engine.statistics, engine.shots, engine.hits]), seen


def acted(policy: opponents.Policy, seen: list[np.ndarray]) -> str:
    """The digest of the actions of a player for team blue in golden battles."""
    blue = [decision[:, : decision.shape[1] // 2].reshape(-1, decision.shape[2]) for decision in seen[:DECISIONS]]
    policy.reset(np.ones(len(blue[0]), bool))
    return digest(np.array(policy.act(np.ascontiguousarray(rows))) for rows in blue)


def maps(**terrain: Any) -> str:
    """The digest of three maps."""
    config = make_config("battle", terrain=terrain)
    return digest(np.frombuffer(generate(config, seed).content_hash.encode(), np.uint8) for seed in range(3))


def measure() -> dict[str, Any]:
    """All digests of the present package."""
    battles = {scenario: golden_battles(scenario) for scenario in BATTLES}
    seen, config = battles[WATCHED][1], make_config(WATCHED)
    weights = {"novice": 3.0, "expert": 1.0}

    def made(name: str, scenario: str = WATCHED) -> opponents.Policy:
        config = make_config(scenario)
        return baseline(name, 1).make(config, BattleNoise(SEEDS, (0,), len(config.blue)))

    streams = [*STREAMS.values(), *state_streams(config.num_mechs).values()]
    layout = [(entry.name, entry.low, entry.high) for stream in streams for entry in stream.features]
    return {
        "engine": {
            "battles": {scenario: found for scenario, (found, _) in battles.items()},
            "maps": {biome: maps(biomes=(biome,)) for biome in default_biomes()} | {"mirrored": maps(mirrored=True)},
            "observations": hashlib.sha256(repr(layout).encode()).hexdigest()[:16],
            "actions": hashlib.sha256(repr([list(Action), ACTION_LOW, ACTION_HIGH]).encode()).hexdigest()[:16],
        },
        "opponents": {
            **{name: acted(made(name), seen) for name in BASELINES if name != CHAMPION},
            **{f"champion of {name}": acted(made(CHAMPION, name), battles[name][1]) for name in CHAMPIONS},
            "handicapped": acted(opponents.make(HANDICAPPED, 1, config), seen),
            "mixture": acted(opponents.make(weights, 1, config), seen),
        },
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(), indent=2) + "\n")
