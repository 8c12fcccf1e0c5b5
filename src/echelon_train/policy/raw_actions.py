"""Raw actions: what a policy samples, and its conversion to and from the actions of the environment.

A raw action holds numbers before tanh, switches as 0 or 1, and the index of each choice, where 0 is none if the block
has it. It is stored because a float32 action at -1 or 1 does not determine the number before tanh.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from echelon_env.layout.actions import ACTION_DIM, BLOCKS
from echelon_env.networks.possible import BY_KIND
from echelon_train.policy.tables import device_table

RAW_WIDTHS = [1 if block.kind == "choice" else len(block.entries) for block in BLOCKS]
"""Columns of each block in a raw action."""

RAW_DIM = sum(RAW_WIDTHS)
"""Width of a raw action: the blocks in the order of `BLOCKS`."""

RAW_COLUMNS = {
    block.name: range(stop - width, stop)
    for block, width, stop in zip(BLOCKS, RAW_WIDTHS, accumulate(RAW_WIDTHS), strict=True)
}
"""Columns of each block in a raw action, by name."""

LABEL_BOUND = 0.98
"""Largest continuous entry of an action that is converted to a raw one: tanh never reaches 1."""


@dataclass(frozen=True)
class _Tables:
    """Index tables on one device."""

    by_kind: Tensor  # (RAW_DIM,) raw columns in the order numbers, switches, choices
    in_order: Tensor  # (RAW_DIM,) inverse of `by_kind`
    column: Tensor  # (ACTION_DIM,) raw column of each entry of an action
    value: Tensor  # (ACTION_DIM,) value of that column for which a switch or an option is 1
    is_number: Tensor  # (ACTION_DIM,) bool


@device_table
def raw_tables(device: torch.device) -> _Tables:
    """The index tables of raw actions on a device."""
    by_kind = [column for blocks in BY_KIND.values() for block in blocks for column in RAW_COLUMNS[block.name]]
    column, value, is_number = [], [], []
    for block in BLOCKS:
        for i in range(len(block.entries)):
            column.append(RAW_COLUMNS[block.name][0 if block.kind == "choice" else i])
            value.append(float(i + block.optional if block.kind == "choice" else 1))
            is_number.append(block.kind == "numbers")
    places = torch.tensor(by_kind, device=device)
    return _Tables(
        by_kind=places,
        in_order=places.argsort(),
        column=torch.tensor(column, device=device),
        value=torch.tensor(value, device=device),
        is_number=torch.tensor(is_number, device=device),
    )


def environment_actions(raw: Tensor) -> Tensor:
    """The actions of the environment for raw actions: numbers after tanh, switches and options 0 or 1.

    Parameters
    ----------
    raw
        (R, RAW_DIM).

    Returns
    -------
    torch.Tensor
        (R, ACTION_DIM) float32 in [-1, 1], in the order of `Action`.
    """
    tables = raw_tables(raw.device)
    columns = raw.index_select(1, tables.column).float()
    return torch.where(tables.is_number, columns.tanh(), columns == tables.value)


def raw_actions(actions: Tensor) -> Tensor:
    """Raw actions for actions of the environment, for example those of a teacher.

    Numbers are clipped to +-`LABEL_BOUND`. A switch is on above 0. A choice is its largest entry; where no entry of an
    optional block is above 0, it is none. The engine reads actions in the same way.

    Parameters
    ----------
    actions
        (R, ACTION_DIM).

    Returns
    -------
    torch.Tensor
        (R, RAW_DIM) float32.

    Raises
    ------
    ValueError
        For another width.
    """
    if actions.ndim != 2 or actions.shape[1] != ACTION_DIM:
        raise ValueError(f"expected actions (R, {ACTION_DIM}), got {tuple(actions.shape)}")
    raw = actions.new_zeros(len(actions), RAW_DIM, dtype=torch.float32)
    for block in BLOCKS:
        part, columns = actions[:, block.part], RAW_COLUMNS[block.name]
        if block.kind == "numbers":
            raw[:, columns.start : columns.stop] = part.clamp(-LABEL_BOUND, LABEL_BOUND).atanh()
        elif block.kind == "switches":
            raw[:, columns.start : columns.stop] = (part > 0.0).float()
        else:
            index = part.argmax(1) + int(block.optional)
            raw[:, columns.start] = (
                torch.where((part > 0.0).any(1), index, 0).float() if block.optional else index.float()
            )
    return raw
