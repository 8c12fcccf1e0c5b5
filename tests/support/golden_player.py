"""The player of the golden battles, and the battles: `python tests/support/golden_player.py` writes their hashes again.

It uses comparisons, sums, products and integers only, so its actions are the same on every processor. It is designed to
exercise many rules, not to win.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

import numpy as np

from echelon_env import BattleEngine
from echelon_env.engine.state import SCRATCH
from echelon_env.layout.actions import ACTION_DIM, COMM_DIM, Action
from echelon_env.layout.observations import CONTACT_ROWS, STREAMS, Contact, Objective, Self
from support.playing import SIZES

HASHES = pathlib.Path(__file__).parents[1] / "engine" / "golden.json"
SEEDS = (2, 4, 6, 7, 21)
_OBJECTIVE = STREAMS["objective"].start


def noise(seed: int, decision: int, rows: np.ndarray, what: int) -> np.ndarray:
    """Integers from 0 to 255, one per row."""
    h = rows.astype(np.uint32) * np.uint32(0x9E3779B1)
    h ^= np.uint32((seed * 0x85EBCA6B + decision * 0xC2B2AE35 + what * 0x27D4EB2F) & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h ^= h >> np.uint32(shift)
        h *= np.uint32(factor)
    return (h >> np.uint32(24)).astype(np.int64)


class GoldenPlayer:
    """Walks to the zone with detours, turns to a contact, fires all weapons, and sometimes uses everything else."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.decision = 0

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (M, A) for the observations (M, D) of a battle's mechs."""
        rows = np.arange(len(observations))
        wander, chance, choice = (noise(self.seed, self.decision // 6, rows, what) for what in range(3))
        words = [noise(self.seed, self.decision, rows, 3 + word) for word in range(COMM_DIM)]
        self.decision += 1
        actions = np.zeros((len(rows), ACTION_DIM), np.float32)
        contacts = observations[:, STREAMS["contacts"].part].reshape(len(rows), CONTACT_ROWS, -1)
        filled = observations[:, STREAMS["contacts_mask"].part] > 0
        picked = np.where(filled[:, 1] & (choice < 64), 1, 0)
        contact, seen = contacts[rows, picked], filled[:, 0]

        forward = observations[:, _OBJECTIVE + Objective.DIRECTION_FORWARD]
        left = observations[:, _OBJECTIVE + Objective.DIRECTION_LEFT]
        arrived = observations[:, _OBJECTIVE + Objective.DISTANCE_NEAR] < 0.5
        detour = wander < 48
        side = np.where(wander % 2 == 0, np.float32(1), np.float32(-1))
        actions[:, Action.THROTTLE] = np.where(detour, -side * left, np.where(arrived & seen, 0, forward))
        actions[:, Action.STRAFE] = np.where(detour, side * forward, np.where(arrived & seen, 0, left))
        actions[:, Action.JET] = np.where(detour & (chance < 128), 1, 0)

        ahead = np.where(seen, contact[:, Contact.DIRECTION_FORWARD], forward)
        aside = np.where(seen, contact[:, Contact.DIRECTION_LEFT], left)
        turn = np.where(ahead > 0, np.clip(aside * 3, -1, 1), np.where(aside < 0, -1, 1))
        actions[:, Action.TURN] = turn

        firing = seen & (chance < 224)
        actions[:, Action.PRIMARY : Action.SPECIAL] = np.where(firing, 1, -1)[:, None]
        actions[:, Action.SPECIAL] = np.where(seen & (chance < 16), 1, -1)
        hot = observations[:, Self.HEAT] > 0.75
        actions[:, Action.VENT] = np.where(hot & (rows % 3 != 0), 1, -1)  # every third lets itself overheat
        actions[rows, Action.TARGET_0 + picked] = 1
        actions[:, Action.ECM] = np.where(choice % 2 == 0, 1, -1)
        actions[:, Action.ECCM] = np.where(choice % 4 == 1, 1, -1)
        actions[rows, Action.DISPLAY_NEAREST + wander % 3] = 1
        actions[:, Action.COMM_0 :] = (np.stack(words, axis=1) - 128) / 128
        return actions


def digest(engine: BattleEngine, b: int, hashed: Any) -> None:
    """Hash the state and the outputs of a battle."""
    lasting = (array for name, array in engine.state._asdict().items() if name not in SCRATCH)
    for array in (*lasting, engine.observations, *engine.out):
        hashed.update(array[b : b + 1].view(np.uint8).reshape(-1).data)


def play(scenario: str) -> tuple[dict[str, str], list[np.ndarray], BattleEngine]:
    """The hash of each golden battle of a scenario by its seed, the events of all, and the engine at their ends."""
    engine = BattleEngine(scenario, num_battles=len(SEEDS))
    engine.reset(SEEDS)
    players = [GoldenPlayer(seed) for seed in SEEDS]
    hashes = [hashlib.sha256() for _ in SEEDS]
    events = []
    while not engine.battle_over.all():
        actions = [player.act(observations) for player, observations in zip(players, engine.observations, strict=True)]
        engine.step(np.stack(actions))
        for b, hashed in enumerate(hashes):
            digest(engine, b, hashed)
            events.append(engine.events(b))
    return {str(seed): h.hexdigest()[:16] for seed, h in zip(SEEDS, hashes, strict=True)}, events, engine


if __name__ == "__main__":
    HASHES.write_text(json.dumps({scenario: play(scenario)[0] for scenario in SIZES}, indent=2) + "\n")
