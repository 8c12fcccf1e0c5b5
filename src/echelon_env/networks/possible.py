"""The parts of an action that can have an effect, as far as a mech's observation shows."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.kernels import integer, kernel
from echelon_env.engine.tables import build_tables
from echelon_env.layout.actions import TARGET_CHOICES, Action
from echelon_env.layout.observations import CLASS_NAMES, STREAMS, Self, class_columns
from echelon_env.layout.parts import BLOCK_PARTS

TOLERANCE = 1e-5
"""Of observations, which are float32."""

_CLASS, _COOLDOWN, _WEAPON = class_columns(Self).start, int(Self.COOLDOWN_PRIMARY), int(Self.HAS_PRIMARY)
_TARGET = STREAMS["contacts_mask"].start
_MOUNTS = len(MOUNTS)
_NUM_CLASSES = len(CLASS_NAMES)

_UNBOUNDED = 1e9  # beyond every feature; checkpoints hold finite numbers only


class Limit(IntEnum):
    """Columns of `action_limits`: bounds of features of the stream ``self``."""

    COOLDOWN = 0  # of four columns, one for each mount: most cooldown with which a weapon may fire in the decision
    FALLEN = 4  # most time until it stands again with which it acts in the decision
    RESTART = 5  # most heat with which a mech that is shut down may restart in the decision
    LEGS = 6  # a mech walks with more leg hit points than this
    TURNS = 7  # 1 if it can turn
    JETS = 8  # 1 if it has jump jets


class Condition(IntEnum):
    """What an entry of a mask needs: columns of `find_conditions`."""

    NEVER = 0
    ALWAYS = 1
    ALIVE = 2
    AWAKE = 3  # alive, and not shut down for the whole decision
    WALKS = 4
    JETS = 5
    TURNS = 6
    ELECTRONICS = 7
    FIRST_WEAPON = 8
    FIRST_TARGET = 8 + len(MOUNTS)


CONDITIONS = Condition.FIRST_TARGET + TARGET_CHOICES
"""Number of conditions."""

_NEEDS = {
    Action.THROTTLE: Condition.WALKS,
    Action.STRAFE: Condition.WALKS,
    Action.JET: Condition.JETS,
    Action.TURN: Condition.TURNS,
    Action.VENT: Condition.ALIVE,
    Action.ECM: Condition.ELECTRONICS,
    Action.ECCM: Condition.ELECTRONICS,
    **{tuple(Action)[Action.PRIMARY + mount]: Condition.FIRST_WEAPON + mount for mount in range(len(MOUNTS))},
    **{tuple(Action)[Action.TARGET_0 + row]: Condition.FIRST_TARGET + row for row in range(TARGET_CHOICES)},
}
"""The conditions of entries of an action; the others need `Condition.AWAKE`."""


def mask_needs(off: Collection[str] = ()) -> NDArray[np.int64]:
    """The condition that each choice of `ALL_PARTS` needs, (CHOICES,).

    The neutral choice of a part is always possible. All else of the blocks whose names are in `off` never is.
    """
    needs: list[int] = []
    for block, parts in BLOCK_PARTS.items():
        for part in parts:
            for choice, values in enumerate(part.values):
                if choice == part.neutral:
                    needs.append(Condition.ALWAYS)
                elif block in off:
                    needs.append(Condition.NEVER)
                else:  # the entry that the choice sets
                    needs.append(_NEEDS.get(part.entries[np.flatnonzero(values)[0]], Condition.AWAKE))
    return np.array(needs, np.int64)


def action_limits(config: BattleConfig) -> NDArray[np.float32]:
    """The bounds up to which an action can have an effect, by mech class, in the battles of a configuration.

    Returns
    -------
    numpy.ndarray
        (len(CLASS_NAMES) + 1, len(Limit) + 3) float32, in the units of the stream ``self``. The last row is of classes
        without a column in observations: it rules nothing out.
    """
    tables = build_tables(config)
    rules = tables.rules[0]
    ticks = float(rules["decision_repeat"])
    free = [1.0] * len(MOUNTS) + [1.0, _UNBOUNDED, -1.0, 1.0, 1.0]
    rows = [free] * (len(CLASS_NAMES) + 1)
    # as in `echelon_env.engine.possibilities`: a mech may yet fall onto every material that cools
    cooled_by_materials = np.maximum(-tables.materials["heat"], 0.0).sum()
    for each in tables.classes:
        cooling = (each["heat_dissipation"] * rules["vent_factor"] + cooled_by_materials) * rules["dt"] * ticks
        walks = each["top_speed"] > 0
        rows[int(each["one_hot"])] = [
            *(ticks / tables.weapons[weapon]["cooldown"] if weapon >= 0 else 1.0 for weapon in each["weapon"]),
            ticks / rules["fall_ticks"],
            rules["restart_heat"] + cooling / each["heat_capacity"],
            (-1.0 if rules["legged_speed"] > 0 else 0.0) if walks else _UNBOUNDED,
            float(each["turn_rate"] > 0),
            float(each["jet_acceleration"] > 0),
        ]
    rows[-1] = free
    return np.array(rows, np.float32)


@kernel
def find_conditions(limits: Any, seen: Any, conditions: Any) -> None:
    """Write the conditions (CONDITIONS,) bool of a mech with the observation `seen` (D,), as it comes.

    `limits` are those of `action_limits`.
    """
    known = integer(_NUM_CLASSES)
    for column in range(_NUM_CLASSES):
        if seen[_CLASS + column] > 0.0:
            known = integer(column)
            break
    bounds = limits[known]
    alive = seen[Self.ALIVE] > 0.5
    asleep = seen[Self.SHUTDOWN] > 0.5 and np.float64(seen[Self.HEAT]) > np.float64(bounds[Limit.RESTART]) + TOLERANCE
    awake = alive and not asleep
    able = awake and np.float64(seen[Self.FALLEN]) <= np.float64(bounds[Limit.FALLEN]) + TOLERANCE
    conditions[Condition.NEVER] = False
    conditions[Condition.ALWAYS] = True
    conditions[Condition.ALIVE] = alive
    conditions[Condition.AWAKE] = awake
    conditions[Condition.WALKS] = able and seen[Self.LEGS] > bounds[Limit.LEGS]
    conditions[Condition.JETS] = able and bounds[Limit.JETS] > 0.5
    conditions[Condition.TURNS] = able and bounds[Limit.TURNS] > 0.5
    conditions[Condition.ELECTRONICS] = awake and seen[Self.HAS_ELECTRONICS] > 0.5
    for mount in range(_MOUNTS):
        cool = np.float64(seen[_COOLDOWN + mount]) <= np.float64(bounds[mount]) + TOLERANCE
        conditions[Condition.FIRST_WEAPON + mount] = able and cool and seen[_WEAPON + mount] > 0.5
    for row in range(TARGET_CHOICES):
        conditions[Condition.FIRST_TARGET + row] = seen[_TARGET + row] > 0.5
