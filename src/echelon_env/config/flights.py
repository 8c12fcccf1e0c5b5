"""How the shots of weapons fly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Flight = Literal["hitscan", "straight", "ballistic", "homing"]


@dataclass(frozen=True, kw_only=True)
class FlightRules:
    """What the rules make of a flight. How its projectiles are aimed and move is in `engine.guidance`."""

    projectile: bool = True  # False: it hits in the tick in which it is fired
    needs_target: bool = False  # without a target it is not fired
    guided: bool = False  # it locks on by sight or paint, homes for a lifetime, and anti-missile systems shoot it down
    slowest: float = 1.0  # least mean speed of an unguided flight, as a share of the speed at the muzzle


FLIGHTS: dict[Flight, FlightRules] = {
    "hitscan": FlightRules(projectile=False, needs_target=True),
    "straight": FlightRules(),
    "ballistic": FlightRules(slowest=0.4),  # 0.414 straight upwards
    "homing": FlightRules(needs_target=True, guided=True),
}
"""The flights that weapons can have; the place of one is its code in kernels."""
