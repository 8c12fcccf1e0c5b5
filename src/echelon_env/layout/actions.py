"""The layout of an action: one float32 vector in [-1, 1] per mech, in named entries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

TARGET_CHOICES = 5
"""Contact rows that an action can choose as target."""

COMM_DIM = 8
"""Numbers in a message to pack-mates."""


class Action(IntEnum):
    """An entry of the action vector; its value is its index."""

    meaning: str

    def __new__(cls, meaning: str) -> Action:
        """Number the entries in the order in which they are declared."""
        index = len(cls.__members__)
        member = int.__new__(cls, index)
        member._value_ = index
        member.meaning = meaning
        return member

    THROTTLE = "forward (1) or backward (-1); with strafe cut to a vector of length 1"
    STRAFE = "to the left (1) or to the right (-1)"
    JET = "jump jets: thrust upwards and a higher top speed, on above 0, full at 1; only classes that have them"
    TURN = "turn counter-clockwise (1) or clockwise (-1)"
    PRIMARY = "fire the primary weapon, on above 0"
    SECONDARY = "fire the secondary weapon, on above 0"
    TERTIARY = "fire the tertiary weapon, on above 0"
    SPECIAL = "fire the special weapon, on above 0"
    VENT = "double heat dissipation and hold fire, on above 0"
    TARGET_0 = "target the mech in contact row 0 of the last observation; the highest of these that is above 0 counts"
    TARGET_1 = "target the mech in contact row 1"
    TARGET_2 = "target the mech in contact row 2"
    TARGET_3 = "target the mech in contact row 3"
    TARGET_4 = "target the mech in contact row 4"
    ECM = "radiate ECM, on above 0; only classes that carry it"
    ECCM = "radiate ECCM instead, on above 0; only classes that carry it"
    DISPLAY_NEAREST = "sort the next contact table by distance; the highest of the three counts, of equals the first"
    DISPLAY_DANGEROUS = "sort it by danger, the most dangerous first"
    DISPLAY_DAMAGED = "sort it by armour, the most damaged first"
    COMM_0 = "message to pack-mates, in their next observation"
    COMM_1 = "message"
    COMM_2 = "message"
    COMM_3 = "message"
    COMM_4 = "message"
    COMM_5 = "message"
    COMM_6 = "message"
    COMM_7 = "message"


ACTION_DIM = len(Action)
"""Length of the action vector."""

ACTION_LOW, ACTION_HIGH = -1.0, 1.0
"""Bounds of every entry."""


@dataclass(frozen=True)
class Block:
    """Entries of the action vector that are one entry of the dict format."""

    name: str
    first: Action
    last: Action
    kind: Literal["numbers", "switches", "choice"]
    optional: bool = False
    """Whether choosing none of the entries is possible, too."""

    @property
    def entries(self) -> tuple[Action, ...]:
        """The block's entries."""
        return tuple(Action)[self.first : self.last + 1]

    @property
    def part(self) -> slice:
        """The block's part of the action vector."""
        return slice(self.first, self.last + 1)

    @property
    def choices(self) -> int:
        """Choices of a block of the kind ``"choice"``."""
        return len(self.entries) + self.optional


BLOCKS = (
    Block("motion", Action.THROTTLE, Action.TURN, "numbers"),
    Block("triggers", Action.PRIMARY, Action.VENT, "switches"),
    Block("target", Action.TARGET_0, Action.TARGET_4, "choice", optional=True),
    Block("electronics", Action.ECM, Action.ECCM, "choice", optional=True),
    Block("display", Action.DISPLAY_NEAREST, Action.DISPLAY_DAMAGED, "choice"),
    Block("comm", Action.COMM_0, Action.COMM_7, "numbers"),
)
"""The blocks, in the order of the action vector."""
