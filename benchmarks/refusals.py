"""Refused parts of actions that a policy's masks rule out, by reason: ``python -m benchmarks.refusals``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from echelon_env import BattleEngine, opponents
from echelon_env.config.catalog import MOUNTS
from echelon_env.config.scenario import make_config
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.networks.possible import SIZES, SWITCHES, action_limits
from echelon_train.policy.action_masks import action_masks

BATTLES = 32
DECISIONS = 480

_TRIGGERS = slice(0, len(MOUNTS))
_TARGETS = slice(SWITCHES + 1, SWITCHES + SIZES[0])  # without the first option, none
_ELECTRONICS = slice(_TARGETS.stop + 1, _TARGETS.stop + SIZES[1])
_FIRST_NUMBER = SWITCHES + sum(SIZES)
_MOTION = slice(_FIRST_NUMBER, _FIRST_NUMBER + 4)
_JET = slice(_FIRST_NUMBER + 2, _FIRST_NUMBER + 3)

Bools = NDArray[np.bool_]


def refusals(engine: BattleEngine) -> Iterator[tuple[str, slice, Bools]]:
    """What has no effect in the coming decision: a reason, columns of a mask, and where (R, columns)."""
    can = engine.possibilities()

    def rows(mask: Bools, columns: slice) -> Bools:
        flat = mask.reshape(engine.alive.size, -1)
        return np.broadcast_to(flat, (len(flat), columns.stop - columns.start))

    fires = can.fires.any(-1)
    able = can.able[..., None]
    for columns in (_TRIGGERS, _MOTION):
        yield "the mech is shut down", columns, rows(can.present & ~can.awake, columns)
        yield "the mech has fallen", columns, rows(can.awake & ~can.able, columns)
    yield "no weapon is mounted", _TRIGGERS, rows(able & ~can.mounted, _TRIGGERS)
    yield "the weapon has no shots left", _TRIGGERS, rows(able & can.mounted & ~can.loaded, _TRIGGERS)
    yield "the weapon cools down", _TRIGGERS, rows(able & can.mounted & can.loaded & ~can.ready, _TRIGGERS)
    yield "no jump jets", _JET, rows(can.able & ~can.jets, _JET)
    yield "no electronics", _ELECTRONICS, rows(can.awake & ~can.electronics, _ELECTRONICS)
    yield "no weapon can fire at a target", _TARGETS, rows(can.present & ~fires, _TARGETS)
    yield "no contact in the row of the target", _TARGETS, rows(fires[..., None] & ~can.contacts, _TARGETS)


def measure(battles: int = BATTLES, decisions: int = DECISIONS) -> dict[str, tuple[int, int]]:
    """Reason -> parts of actions refused, and those of them that the masks rule out; `skirmish`, novice v expert."""
    engine = BattleEngine(make_config("skirmish"), num_battles=battles)
    engine.reset(np.arange(battles))
    team = engine.num_mechs // 2
    players = [opponents.make(name, 0, engine.config) for name in ("novice", "expert")]
    limits = torch.from_numpy(action_limits(engine.config))
    counts: dict[str, tuple[int, int]] = {}
    for _ in range(decisions):
        seen = engine.observations
        masks = action_masks(torch.from_numpy(seen.reshape(-1, OBSERVATION_DIM)), limits).numpy()
        for reason, columns, refused in refusals(engine):
            earlier = counts.get(reason, (0, 0))
            caught = int((refused & ~masks[:, columns]).sum())
            counts[reason] = earlier[0] + int(refused.sum()), earlier[1] + caught
        teams = (seen[:, :team], seen[:, team:])
        actions = [
            player.act(np.ascontiguousarray(part).reshape(-1, OBSERVATION_DIM)).reshape(battles, team, -1)
            for player, part in zip(players, teams, strict=True)
        ]
        engine.step(np.concatenate(actions, 1))
    return counts


def table(counts: dict[str, tuple[int, int]]) -> str:
    """The counts as a table in Markdown."""
    lines = ["| reason | refused | ruled out |", "|---|---|---|"]
    lines += [
        f"| {reason} | {refused:,} | {caught / refused:.2%} |" if refused else f"| {reason} | 0 | - |"
        for reason, (refused, caught) in counts.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
    sys.exit(0)
