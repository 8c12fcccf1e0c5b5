"""What mechs may be able to do in the coming decision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.kernels import entry_point, integer
from echelon_env.engine.state import NO_MECH, State
from echelon_env.engine.tables import Tables
from echelon_env.layout.actions import TARGET_CHOICES

HEAT_TOLERANCE = 1e-6
"""Heat points by which a sum over ticks may differ from the product."""


class Possibilities(NamedTuple):
    """What mechs may be able to do in the coming decision. False only where it is certain that they cannot."""

    present: NDArray[np.bool_]  # (B, M) alive, in a battle that is not over
    awake: NDArray[np.bool_]  # (B, M) present, and not shut down for the whole decision
    able: NDArray[np.bool_]  # (B, M) awake, and not fallen for the whole decision
    walks: NDArray[np.bool_]  # (B, M) has legs that move it
    turns: NDArray[np.bool_]  # (B, M) can turn at all
    jets: NDArray[np.bool_]  # (B, M) has jump jets
    electronics: NDArray[np.bool_]  # (B, M) carries ECM and ECCM
    mounted: NDArray[np.bool_]  # (B, M, mounts) has a weapon there
    loaded: NDArray[np.bool_]  # (B, M, mounts) has charges left or needs none
    ready: NDArray[np.bool_]  # (B, M, mounts) will have cooled down
    contacts: NDArray[np.bool_]  # (B, M, TARGET_CHOICES) the contact row is filled

    @property
    def fires(self) -> NDArray[np.bool_]:
        """(B, M, mounts): may fire."""
        return self.able[..., None] & self.mounted & self.loaded & self.ready


def allocate_possibilities(battles: int, mechs: int) -> Possibilities:
    """Arrays of False."""
    widths = {
        "mounted": (len(MOUNTS),),
        "loaded": (len(MOUNTS),),
        "ready": (len(MOUNTS),),
        "contacts": (TARGET_CHOICES,),
    }
    return Possibilities(
        *(np.zeros((battles, mechs, *widths.get(name, ())), np.bool_) for name in Possibilities._fields)
    )


@entry_point
def find_possibilities(tables: Tables, state: State, can: Possibilities, first: int, last: int) -> None:
    """Write what the mechs of the battles from `first` to `last` - 1 may be able to do."""
    rules = tables.rules[0]
    ticks = rules.decision_repeat
    # An upper bound of the cooling: where a shut-down mech falls and how the terrain changes is not simulated, so
    # every cooling material counts.
    by_ground = 0.0
    for code in range(tables.materials.shape[0]):
        by_ground += max(0.0, -tables.materials[code].heat)
    for b in range(first, last):
        for m in range(state.mechs.shape[1]):
            mech = state.mechs[b, m]
            mech_class = tables.classes[mech.mech_class]
            cooling = mech_class.heat_dissipation * rules.vent_factor + by_ground
            coolest = mech.heat - ticks * rules.dt * cooling
            restarts = coolest <= rules.restart_heat * mech_class.heat_capacity + HEAT_TOLERANCE
            can.present[b, m] = mech.alive != 0 and state.battles[b].over == 0
            can.awake[b, m] = can.present[b, m] and (mech.shutdown == 0 or restarts)
            can.able[b, m] = can.awake[b, m] and mech.fallen <= ticks
            can.walks[b, m] = mech_class.top_speed > 0.0 and (mech.legs > 0.0 or rules.legged_speed > 0.0)
            can.turns[b, m] = mech_class.turn_rate > 0.0
            can.jets[b, m] = mech_class.jet_acceleration > 0.0
            can.electronics[b, m] = mech_class.electronics != 0
            for mount in range(can.mounted.shape[2]):
                w = integer(mech_class.weapon[mount])
                can.mounted[b, m, mount] = w >= 0
                can.loaded[b, m, mount] = w < 0 or tables.weapons[w].charges == 0 or mech.charges[mount] > 0
                can.ready[b, m, mount] = mech.cooldown[mount] <= ticks
            for row in range(can.contacts.shape[2]):
                can.contacts[b, m, row] = mech.contacts[row] != NO_MECH
