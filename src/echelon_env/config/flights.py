"""The flights of weapons: how their shots travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Flight = Literal["hitscan", "straight", "ballistic", "homing"]


@dataclass(frozen=True, kw_only=True)
class FlightRules:
    """The rules of a flight. `engine.guidance` aims and moves its projectiles."""

    projectile: bool = True  # False: the shot hits in the tick in which it is fired
    guided: bool = False  # True: it locks on by sight or paint and homes; anti-missile systems can shoot it down
    slowest: float = 1.0  # minimum mean speed of an unguided flight, as a share of the muzzle speed


FLIGHTS: dict[Flight, FlightRules] = {
    "hitscan": FlightRules(projectile=False),
    "straight": FlightRules(),
    "ballistic": FlightRules(slowest=0.4),  # 0.414 straight upwards
    "homing": FlightRules(guided=True),
}
"""The rules of every flight. The position of a flight in this dict is its code in kernels."""
