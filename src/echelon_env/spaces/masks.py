"""Masks of choices that certainly have no effect."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from gymnasium.spaces import MultiBinary, Space, Tuple
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.possibilities import Possibilities
from echelon_env.layout.actions import Action
from echelon_env.layout.parts import CHOICE_STARTS, PARTS
from echelon_env.spaces.actions import DISCRETE_CHOICES, MULTI_DISCRETE_SIZES, ActionFormat, choice_sizes

MASK_SIZE = sum(MULTI_DISCRETE_SIZES)
"""Entries of one mech's mask of the multi-discrete format: the parts' choices one after the other."""

MASK_SLICES = {
    part.name: slice(CHOICE_STARTS[part.name], CHOICE_STARTS[part.name] + len(part.values)) for part in PARTS
}
"""Each part's slice of the mask, by name."""


def action_masks(engine: BattleEngine, action_format: ActionFormat = "multi_discrete") -> NDArray[np.int8]:
    """The masks of all mechs' choices, (B, M, K) int8, a new array.

    ``"multi_discrete"``, and formats without masks: K = MASK_SIZE. 0: the choice certainly has no effect in the coming
    decision, the same as the part's neutral choice, except that the next observation may echo it (`by_...`). 1: it may
    have an effect, or it is the neutral choice, which is always allowed. Dead mechs, and all mechs in a battle that is
    over, have only the neutral choices.

    ``"discrete"``: one entry for each of the K `DISCRETE_CHOICES`. 0: a part of the choice has no effect, so that a
    simpler choice does the same.
    """
    can = engine.possibilities()
    masks = np.zeros((*can.present.shape, MASK_SIZE), np.int8)
    write_masks(can, masks, engine.config)
    return np.asarray(discrete_masks(masks), np.int8) if action_format == "discrete" else masks


def write_masks(can: Possibilities, masks: Any, config: BattleConfig) -> None:
    """Write multi-discrete masks (..., MASK_SIZE), zeros before. All arrays are NumPy's, or all are torch's."""
    allowed = {
        "throttle": can.able & can.walks,
        "strafe": can.able & can.walks,
        "jet": can.able & can.jets,
        "turn": can.able & can.turns,
        **{mount: can.fires[..., i] for i, mount in enumerate(MOUNTS)},
        "vent": can.present,
        "electronics": can.awake & can.electronics,
        "display": can.awake,
    }
    for part in PARTS:
        mask = masks[..., MASK_SLICES[part.name]]
        if part.name == "target":
            mask[..., 1:] = can.contacts & can.present[..., None]
        else:
            mask[:] = allowed[part.name][..., None]
        if part.name in config.abilities.blocks_off:
            mask[:] = 0
        mask[..., part.neutral] = 1


_WEAPONS = tuple(Action[mount.upper()] for mount in MOUNTS)


def _column(entry: Action, value: float) -> int:
    """The column of the multi-discrete mask for a value of an entry."""
    part = next(part for part in PARTS if entry in part.entries)
    wanted = tuple(value * (other == entry) for other in part.entries)
    return MASK_SLICES[part.name].start + part.values.index(wanted)


def _needed_columns() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each discrete choice the columns of which all, (N, k), and of which any, (N, j), have to be allowed."""
    all_of, any_of = [], []
    for choice in DISCRETE_CHOICES.values():
        columns = {entry: _column(entry, value) for entry, value in choice.items()}
        all_of.append([column for entry, column in columns.items() if entry not in _WEAPONS])
        any_of.append([column for entry, column in columns.items() if entry in _WEAPONS])
    always = _column(Action.THROTTLE, 0.0)
    return _filled(all_of, always), _filled(any_of, always)


def _filled(rows: list[list[int]], always: int) -> NDArray[np.intp]:
    """The rows as an array, filled up with their first column, or one that is always allowed."""
    width = max(map(len, rows))
    return np.array([row + [row[0] if row else always] * (width - len(row)) for row in rows])


COLUMNS = _needed_columns()
"""For each discrete choice the columns of the multi-discrete mask of which all, and of which any, must be allowed."""


def discrete_masks(masks: Any, columns: tuple[Any, Any] = COLUMNS) -> Any:
    """Masks (..., N) bool of the discrete choices from those of the multi-discrete format, (..., MASK_SIZE).

    For tensors `columns` are `COLUMNS` as tensors.
    """
    all_of, any_of = columns
    return (masks[..., all_of] != 0).all(-1) & (masks[..., any_of] != 0).any(-1)


def mask_space(action_format: ActionFormat, mechs: int | None = None) -> Space[Any]:
    """The space of an agent's mask: what its action space's `sample` takes, see `split_mask`."""
    spaces = [MultiBinary(size) for size in choice_sizes(action_format, mechs)]
    return spaces[0] if action_format == "discrete" and mechs is None else Tuple(spaces)


def split_mask(
    mask: NDArray[np.int8], action_format: ActionFormat = "multi_discrete", mechs: int | None = None
) -> NDArray[np.int8] | tuple[NDArray[np.int8], ...]:
    """Views of masks as the action space's `sample` takes them.

    Parameters
    ----------
    mask
        (..., K); for a team of n mechs as one agent (..., n * K), with the parts of the first mech before those of the
        second.
    action_format
        ``"multi_discrete"`` or ``"discrete"``.
    mechs
        None for one mech, n for a team of n mechs as one agent.

    Returns
    -------
    numpy.ndarray or tuple of numpy.ndarray
        The mask itself for a discrete action of one mech, otherwise one array for each part.

    Raises
    ------
    ValueError
        If the last axis has another length.
    """
    sizes = choice_sizes(action_format, mechs)
    if mask.shape[-1] != sum(sizes):
        raise ValueError(f"mask: expected a last axis of {sum(sizes)}, got shape {mask.shape}")
    if action_format == "discrete" and mechs is None:
        return mask
    return tuple(np.split(mask, list(accumulate(sizes))[:-1], axis=-1))
