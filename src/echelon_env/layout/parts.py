"""The parts of an action that consist of choices: those of the multi-discrete format, and of a policy's actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW, BLOCKS, Action, Block

LEVELS = 7
"""Choices of a continuous entry."""


@dataclass(frozen=True)
class Part:
    """A part of an action: a choice among rows of values."""

    name: str
    entries: tuple[Action, ...]
    values: tuple[tuple[float, ...], ...]
    """For each choice the values of the entries."""
    neutral: int
    """The choice that does nothing."""


def _parts(block: Block) -> list[Part]:
    """The parts of a block: one for a choice, else one for each entry."""
    if block.kind == "choice":
        none = [(0.0,) * len(block.entries)] if block.optional else []
        rows = [tuple(float(entry == chosen) for entry in block.entries) for chosen in block.entries]
        return [Part(block.name, block.entries, (*none, *rows), 0)]
    parts = []
    for entry in block.entries:
        low = 0.0 if entry is Action.JET or block.kind == "switches" else ACTION_LOW
        levels = np.linspace(low, ACTION_HIGH, 2 if block.kind == "switches" else LEVELS).tolist()
        parts.append(Part(entry.name.lower(), (entry,), tuple((level,) for level in levels), levels.index(0.0)))
    return parts


BLOCK_PARTS = {block.name: tuple(_parts(block)) for block in BLOCKS}
"""The parts of each block, in the order of `BLOCKS`."""

ALL_PARTS = tuple(part for parts in BLOCK_PARTS.values() for part in parts)
"""The parts of a policy's action, in order."""

PARTS = tuple(part for name, parts in BLOCK_PARTS.items() if name != "comm" for part in parts)
"""The parts of the multi-discrete format, which has no messages."""

NUM_PARTS = len(ALL_PARTS)
"""Width of a policy's action."""

SIZES = tuple(len(part.values) for part in ALL_PARTS)
"""Choices of each of `ALL_PARTS`."""

CHOICES = sum(SIZES)
"""Choices of all parts: the width of a mask, and of the logits of a policy."""

CHOICE_STARTS = {part.name: stop - size for part, size, stop in zip(ALL_PARTS, SIZES, accumulate(SIZES), strict=True)}
"""The first choice of each part among all, by the part's name."""


def value_table(parts: Sequence[Part]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Per entry of the vector: the part that sets it (ACTION_DIM,), and its value for each choice of that part."""
    part_of = np.zeros(ACTION_DIM, np.intp)
    values = np.zeros((ACTION_DIM, max(len(part.values) for part in parts)), np.float32)
    for number, part in enumerate(parts):
        for column, entry in enumerate(part.entries):
            part_of[entry] = number
            values[entry, : len(part.values)] = [row[column] for row in part.values]
    return part_of, values
