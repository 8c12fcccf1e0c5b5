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
    """Abilities of a scripted level. Levels differ only in these; no level is weakened by hidden noise."""

    aims: bool = False  # turns to its target and fires weapons that reach it; without: fires 0.5 s in 8
    range_share: float = 0.0  # distance to visible enemies, of its best weapon's range; 0: it keeps walking
    cools: bool = False  # no shots that would shut it down, most damage per heat first; vents
    paints: bool = False  # paints only enemies that are not painted
    dodges: bool = False  # sidesteps while it fights
    leaves_at: float = 0.0  # share of armour below which it retreats, unless it is alone or winning
    screens: bool = False  # fires smoke at its target when it is hit
    yields: bool = False  # retreats from stronger enemies nearby, unless its team is stronger than all known ones
    guards: bool = False  # stays near the zone, and holds it when the enemy could win by it
    scouts: bool = False  # if unarmed, paints enemies one after the other and keeps its distance in between
    jams: bool = False  # radiates ECCM when jammed, else ECM while it sees enemies
    focuses: bool = False  # prefers targets that its weapons kill soon, by their class and armour
    jets: bool = False  # uses its jets when it retreats or has far to go, and does not fire
    talks: bool = False  # sends its target to its pack, and prefers targets of pack-mates

    def record(self) -> NDArray[Any]:
        """The skill as an array (1,) of one record, for kernels."""
        return np.array([astuple(self)], np.dtype([(field.name, "f8") for field in fields(self)]))


_NOVICE: dict[str, Any] = {"aims": True}
_COMPETENT: dict[str, Any] = {**_NOVICE, "range_share": 0.6, "cools": True, "paints": True, "guards": True}
_VETERAN = {**_COMPETENT, "range_share": 0.85, "dodges": True, "leaves_at": 0.15, "focuses": True}
_EXPERT = {**_VETERAN, "range_share": 1.0, "leaves_at": 0.45, "yields": True}
_EXPERT |= {"screens": True, "scouts": True, "jams": True, "jets": True, "talks": True}

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
