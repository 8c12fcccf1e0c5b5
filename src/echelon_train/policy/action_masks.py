"""The parts of an action that can have an effect, as far as a mech's observation shows."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from echelon_env.config.catalog import MOUNTS
from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import CLASS_NAMES, OBSERVATION_DIM, STREAMS, Self, class_columns
from echelon_env.networks.possible import TOLERANCE, Limit, mask_needs
from echelon_train.policy.tables import device_table

_CLASSES = class_columns(Self)
_COOLDOWNS = slice(Self.COOLDOWN_PRIMARY, Self.COOLDOWN_PRIMARY + len(MOUNTS))
_WEAPONS = slice(Self.HAS_PRIMARY, Self.HAS_PRIMARY + len(MOUNTS))
_TARGETS = slice(STREAMS["contacts_mask"].start, STREAMS["contacts_mask"].start + TARGET_CHOICES)


@device_table
def _needs(off: frozenset[str], device: torch.device) -> Tensor:
    return torch.tensor(mask_needs(off), device=device)


def action_masks(observations: Tensor, limits: Tensor, *, off: Collection[str] = ()) -> Tensor:
    """The parts of an action that can have an effect, as far as observations show.

    What is False has no effect in the coming decision; `echelon_env.spaces.action_masks`, which sees the engine, rules
    out at least as much. Motion needs a mech that is neither shut down nor fallen for the whole decision; a trigger
    needs a weapon with shots left that has cooled down; a target needs a filled contact row; ECM and ECCM need a class
    that carries them. The neutral choice of every part is always possible. Dead mechs have only those.

    Parameters
    ----------
    observations
        (R, OBSERVATION_DIM), as the environment gives them.
    limits
        (classes + 1, bounds) float32, see `action_limits`.
    off
        Names of blocks that are ruled out, all but their neutral choices.

    Returns
    -------
    torch.Tensor
        (R, CHOICES) bool.

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
    asleep = (own[:, Self.SHUTDOWN] > 0.5) & (own[:, Self.HEAT] > bound[:, Limit.RESTART] + TOLERANCE)
    awake = alive & ~asleep
    able = awake & (own[:, Self.FALLEN] <= bound[:, Limit.FALLEN] + TOLERANCE)
    fires = (own[:, _WEAPONS] > 0.5) & (own[:, _COOLDOWNS] <= bound[:, : len(MOUNTS)] + TOLERANCE) & able[:, None]
    conditions = [
        torch.zeros_like(alive),
        torch.ones_like(alive),
        alive,
        awake,
        able & (own[:, Self.LEGS] > bound[:, Limit.LEGS]),
        able & (bound[:, Limit.JETS] > 0.5),
        able & (bound[:, Limit.TURNS] > 0.5),
        awake & (own[:, Self.HAS_ELECTRONICS] > 0.5),
    ]
    found = torch.cat([torch.stack(conditions, 1), fires, observations[:, _TARGETS] > 0.5], 1)
    return found.index_select(1, _needs(frozenset(off), observations.device))
