"""The parts of an action that can have an effect, as far as a mech's observation shows."""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.tables import build_tables
from echelon_env.layout.actions import TARGET_CHOICES, Action
from echelon_env.layout.observations import CLASS_NAMES, OBSERVATION_DIM, STREAMS, Self, class_columns
from echelon_train.policy.raw_actions import BY_KIND, NUMBERS, SIZES, SWITCHES

_CLASSES = class_columns(Self)
_COOLDOWNS = slice(Self.COOLDOWN_PRIMARY, Self.COOLDOWN_PRIMARY + len(MOUNTS))
_WEAPONS = slice(Self.HAS_PRIMARY, Self.HAS_PRIMARY + len(MOUNTS))
_TARGETS = slice(STREAMS["contacts_mask"].start, STREAMS["contacts_mask"].start + TARGET_CHOICES)
_TOLERANCE = 1e-5  # of observations, which are float32
_UNBOUNDED = 1e9  # beyond every feature; checkpoints hold finite numbers only

_ALIVE, _AWAKE, _WALKS, _JETS, _TURNS, _ELECTRONICS, _FIRST_WEAPON = range(7)
_FIRST_TARGET = _FIRST_WEAPON + len(MOUNTS)
_NEEDS = {
    Action.THROTTLE: _WALKS,
    Action.STRAFE: _WALKS,
    Action.JET: _JETS,
    Action.TURN: _TURNS,
    Action.VENT: _ALIVE,
    Action.ECM: _ELECTRONICS,
    Action.ECCM: _ELECTRONICS,
    **{tuple(Action)[Action.PRIMARY + mount]: _FIRST_WEAPON + mount for mount in range(len(MOUNTS))},
    **{tuple(Action)[Action.TARGET_0 + row]: _FIRST_TARGET + row for row in range(TARGET_CHOICES)},
}
"""Columns of the conditions in `action_masks` that entries of an action need; the others need `_AWAKE`."""

MASKS = SWITCHES + sum(SIZES) + NUMBERS
"""Width of a mask: an entry for each switch, then for each option of each choice, then for each number."""


class Limit(IntEnum):
    """Columns of `action_limits`: bounds of features of the stream ``self``."""

    COOLDOWN = 0  # of four columns, one for each mount: most cooldown with which a weapon may fire in the decision
    FALLEN = 4  # most time until it stands again with which it acts in the decision
    RESTART = 5  # most heat with which a mech that is shut down may restart in the decision
    LEGS = 6  # a mech walks with more leg hit points than this
    TURNS = 7  # 1 if it can turn
    JETS = 8  # 1 if it has jump jets


def action_limits(config: BattleConfig) -> Tensor:
    """The bounds up to which an action can have an effect, by mech class, in the battles of a configuration.

    Returns
    -------
    torch.Tensor
        (len(CLASS_NAMES) + 1, len(Limit) + 3) float32, in the units of the stream ``self``. The last row is of classes
        without a column in observations: it rules nothing out.
    """
    tables = build_tables(config)
    rules = tables.rules[0]
    ticks = float(rules["decision_repeat"])
    free = [1.0] * len(MOUNTS) + [1.0, _UNBOUNDED, -1.0, 1.0, 1.0]
    rows = [free] * (len(CLASS_NAMES) + 1)
    # as in `echelon_env.engine.possibilities`: a mech may yet fall onto every material that cools
    cooled_by_materials = torch.from_numpy(tables.materials["heat"]).neg().clamp_min(0.0).sum().item()
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
    return torch.tensor(rows, dtype=torch.float32)


class _Entries(NamedTuple):
    """The entries of a mask, (MASKS,) each."""

    needs: Tensor  # int64: the condition in `action_masks` that an entry needs
    always: Tensor  # bool: the first options of choices, which need none
    communication: Tensor  # bool: messages and displays other than the default


@functools.cache
def _entries(device: torch.device) -> _Entries:
    needs, always, communication = [], [], []
    for block in (*BY_KIND["switches"], *BY_KIND["choice"], *BY_KIND["numbers"]):
        actions = (None, *block.entries) if block.kind == "choice" and block.optional else block.entries
        for option, action in enumerate(actions):
            first = block.kind == "choice" and option == 0
            needs.append(_ALIVE if action is None else _NEEDS.get(action, _AWAKE))
            always.append(first)
            communication.append(block.name in ("display", "comm") and not first)
    with torch.inference_mode(False):  # tables made in inference mode could not be used in training
        return _Entries(*(torch.tensor(each, device=device) for each in (needs, always, communication)))


def action_masks(observations: Tensor, limits: Tensor, *, communicate: bool = True) -> Tensor:
    """The parts of an action that can have an effect, as far as observations show.

    What is False has no effect in the coming decision; `echelon_env.spaces.action_masks`, which sees the engine, rules
    out at least as much. Motion needs a mech that is neither shut down nor fallen for the whole decision; a trigger
    needs a weapon with shots left that has cooled down; a target needs a filled contact row and a weapon that can fire;
    ECM and ECCM need a class that carries them. The first option of a choice, which is none or the default, is always
    possible. Dead mechs have only that.

    Parameters
    ----------
    observations
        (R, OBSERVATION_DIM), as the environment gives them: not normalised.
    limits
        See `action_limits`.
    communicate
        False: messages are ruled out, and all displays but the default.

    Returns
    -------
    torch.Tensor
        (R, MASKS) bool.

    Raises
    ------
    ValueError
        For observations of another width.
    """
    if observations.ndim != 2 or observations.shape[1] != OBSERVATION_DIM:
        raise ValueError(f"expected observations (R, {OBSERVATION_DIM}), got {tuple(observations.shape)}")
    own = observations[:, STREAMS["self"].part]
    classes = own[:, _CLASSES]
    known = classes.amax(1) > 0.0
    bound = limits.index_select(0, torch.where(known, classes.argmax(1), len(CLASS_NAMES)))
    alive = own[:, Self.ALIVE] > 0.5
    asleep = (own[:, Self.SHUTDOWN] > 0.5) & (own[:, Self.HEAT] > bound[:, Limit.RESTART] + _TOLERANCE)
    awake = alive & ~asleep
    able = awake & (own[:, Self.FALLEN] <= bound[:, Limit.FALLEN] + _TOLERANCE)
    fires = (own[:, _WEAPONS] > 0.5) & (own[:, _COOLDOWNS] <= bound[:, : len(MOUNTS)] + _TOLERANCE) & able[:, None]
    targets = (observations[:, _TARGETS] > 0.5) & fires.any(1, keepdim=True)
    conditions = [
        alive,
        awake,
        able & (own[:, Self.LEGS] > bound[:, Limit.LEGS]),
        able & (bound[:, Limit.JETS] > 0.5),
        able & (bound[:, Limit.TURNS] > 0.5),
        awake & (own[:, Self.HAS_ELECTRONICS] > 0.5),
    ]
    entries = _entries(observations.device)
    masks = torch.cat([torch.stack(conditions, 1), fires, targets], 1).index_select(1, entries.needs)
    return (masks if communicate else masks & ~entries.communication) | entries.always
