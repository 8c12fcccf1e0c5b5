"""The choices that a policy samples, and their conversion to and from the actions of the environment.

A policy's action has an index for each of `ALL_PARTS`, see `echelon_env.layout.parts`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.parts import ALL_PARTS, value_table
from echelon_train.policy.tables import device_table


@device_table
def neutral_choices(device: torch.device) -> Tensor:
    """The choices that do nothing, (NUM_PARTS,) int64."""
    return torch.tensor([part.neutral for part in ALL_PARTS], device=device)


class _Values(NamedTuple):
    """Tables on one device."""

    part: Tensor  # (ACTION_DIM,) int64: the part that sets each entry of an action
    of_entry: Tensor  # (ACTION_DIM, most choices) float32: the values of each entry by the choice of that part


@device_table
def _values(device: torch.device) -> _Values:
    part, values = map(torch.from_numpy, value_table(ALL_PARTS))
    return _Values(part.to(device), values.to(device))


def environment_actions(choices: Tensor) -> Tensor:
    """The actions (R, ACTION_DIM) float32 of the environment for choices (R, NUM_PARTS)."""
    tables = _values(choices.device)
    chosen = choices.index_select(1, tables.part).long()
    return tables.of_entry.expand(len(choices), -1, -1).gather(2, chosen.unsqueeze(2)).squeeze(2)


def nearest_choices(actions: Tensor) -> Tensor:
    """The choices nearest to actions of the environment, for example those of a teacher.

    A number is the nearest of its values. A switch is on above 0. Of a target, electronics or the display the largest
    entry is chosen; where no entry of an optional block is above 0, none is. As the engine does, it reads what is not
    finite as 0.

    Parameters
    ----------
    actions
        (R, ACTION_DIM).

    Returns
    -------
    torch.Tensor
        (R, NUM_PARTS) int64.

    Raises
    ------
    ValueError
        For another width.
    """
    if actions.ndim != 2 or actions.shape[1] != ACTION_DIM:
        raise ValueError(f"expected actions (R, {ACTION_DIM}), got {tuple(actions.shape)}")
    actions = actions.nan_to_num(0.0, 0.0, 0.0)
    tables = _values(actions.device)
    columns = []
    for part in ALL_PARTS:
        entries = actions[:, [*part.entries]]
        if len(part.entries) > 1:
            optional = len(part.values) - len(part.entries)
            largest, index = entries.max(1)
            chosen = index + optional
            columns.append(torch.where(largest > 0.0, chosen, 0) if optional else chosen)
        elif len(part.values) == 2:
            columns.append((entries[:, 0] > 0.0).long())
        else:
            values = tables.of_entry[part.entries[0], : len(part.values)]
            columns.append((entries - values).abs().argmin(1))
    return torch.stack(columns, 1)
