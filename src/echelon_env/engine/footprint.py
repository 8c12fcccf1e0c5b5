"""The terrain under a mech's footprint, looked up again only when the covered cells or the terrain change."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.config.map import MAX_HEIGHT
from echelon_env.engine.geometry import CONTACT_TOLERANCE, covered_cells
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import height_mask


@kernel
def body_mask(mech_class: Row, z: float) -> int:
    """Heights, as bits, that a mech of a class with its feet at z occupies."""
    return height_mask(
        math.floor(z + CONTACT_TOLERANCE),
        min(MAX_HEIGHT - 1, math.floor(z + mech_class.height - CONTACT_TOLERANCE)),
    )


@kernel
def covers_same_cells(mech_class: Row, mech: Row, x: float, y: float) -> bool:
    """Whether a mech at (x, y) would cover the same cells as it does now."""
    return bool(
        (x == mech.x or covered_cells(x, mech_class.half_length) == covered_cells(mech.x, mech_class.half_length))
        and (y == mech.y or covered_cells(y, mech_class.half_width) == covered_cells(mech.y, mech_class.half_width))
    )


@kernel
def solid_under(solid: Any, mech_class: Row, x: float, y: float) -> int:
    """Heights, as bits, at which any column (`solid`) under a footprint is solid. It must be inside the map."""
    first_x, stop_x = covered_cells(x, mech_class.half_length)
    first_y, stop_y = covered_cells(y, mech_class.half_width)
    bits = 0
    for iy in range(first_y, stop_y):
        for ix in range(first_x, stop_x):
            bits |= integer(solid[iy, ix])
    return bits


@kernel
def survey(battle: Row, solid: Any, hazard: Any, mech_class: Row, mech: Row, walk: Row) -> None:
    """Update the solid and the hazardous heights under a mech if they are out of date."""
    if walk.surveyed == battle.terrain_changes + 1:
        return
    first_x, stop_x = covered_cells(mech.x, mech_class.half_length)
    first_y, stop_y = covered_cells(mech.y, mech_class.half_width)
    bits, harmful = 0, 0
    for iy in range(first_y, stop_y):
        for ix in range(first_x, stop_x):
            bits |= integer(solid[iy, ix])
            harmful |= integer(hazard[iy, ix])
    walk.solid, walk.hazard = bits, harmful
    walk.surveyed = battle.terrain_changes + 1
