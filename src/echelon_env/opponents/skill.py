"""The five scripted levels as lists of abilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Skill:
    """Abilities of a scripted level. Levels differ only in these; none is weakened by hidden noise."""

    aims: bool = False  # turns to the nearest enemy and fires every weapon that reaches one, else one second in eight
    range_share: float = 0.0  # of its best weapon's range, at which it fights visible enemies; 0: it keeps walking
    cools: bool = False  # fires no shot that would shut it down, the most damage for its heat first, and vents
    paints: bool = False  # paints those that are not painted, and only those
    dodges: bool = False  # sidesteps while it fights
    leaves_at: float = 0.0  # share of its armour below which it leaves a fight that it is not alone in, nor winning
    screens: bool = False  # fires smoke at enemies that see it retreat
    yields: bool = False  # retreats from stronger enemies near, unless its team is stronger than all known
    guards: bool = False  # goes to the zone when the enemy is about to win by it
    scouts: bool = False  # if unarmed, paints enemies one after the other, and keeps away in between
    jams: bool = False  # radiates ECCM where it is jammed, else ECM while it sees enemies
    talks: bool = False  # sends its target to its pack, and prefers targets of pack-mates

    def record(self) -> NDArray[Any]:
        """The skill as an array (1,) of one record, for kernels."""
        return np.array([astuple(self)], np.dtype([(field.name, "f8") for field in fields(self)]))


_NOVICE: dict[str, Any] = {"aims": True}
_COMPETENT = {**_NOVICE, "range_share": 0.6, "cools": True, "paints": True}
_VETERAN = {**_COMPETENT, "range_share": 0.85, "dodges": True, "leaves_at": 0.15, "screens": True}
_EXPERT = {**_VETERAN, "range_share": 1.0, "leaves_at": 0.45, "yields": True, "guards": True}
_EXPERT |= {"scouts": True, "jams": True, "talks": True}

LEVELS: Mapping[str, Skill] = MappingProxyType(
    {
        "trivial": Skill(),
        "novice": Skill(**_NOVICE),
        "competent": Skill(**_COMPETENT),
        "veteran": Skill(**_VETERAN),
        "expert": Skill(**_EXPERT),
    }
)
"""The scripted levels, weakest first."""
