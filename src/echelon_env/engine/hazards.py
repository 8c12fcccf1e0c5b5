"""Hazardous materials in the voxels that a mech occupies: water, lava, debris."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from echelon_env.config.map import MAX_HEIGHT
from echelon_env.engine.events import record
from echelon_env.engine.footprint import body_mask, survey
from echelon_env.engine.geometry import CONTACT_TOLERANCE, covered_cells
from echelon_env.engine.intrinsics import bit_length
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import height_mask, surface_below
from echelon_env.engine.state import BODY, HAZARD, NO_MECH, State
from echelon_env.engine.tables import Tables


class Hazards(NamedTuple):
    """Effects of hazards on a mech in a tick."""

    speed_factor: float
    heating: float  # heat/s
    cooling: float  # heat/s


@kernel
def materials_touched(hazard: Any, voxels: Any, mech_class: Row, mech: Row) -> int:
    """The hazardous materials that a mech's box overlaps, as bits by material code."""
    mask = body_mask(mech_class, mech.z)
    first_x, stop_x = covered_cells(mech.x, mech_class.half_length)
    first_y, stop_y = covered_cells(mech.y, mech_class.half_width)
    touched = 0
    for iy in range(first_y, stop_y):
        for ix in range(first_x, stop_x):
            bits = np.int64(hazard[iy, ix]) & mask
            iz = 0
            while bits:
                if bits & 1:
                    touched |= 1 << int(voxels[iz, iy, ix])
                bits >>= 1
                iz += 1
    return touched


@kernel
def ground_harm(
    tables: Tables, voxels: Any, solid: int, hazard: int, ix: int, iy: int, feet: float, head: float
) -> float:  # fmt: skip
    """Harm (see MATERIAL's `harm`) of a column's worst hazard to a mech that walks there.

    `feet` and `head` are the heights of the mech's feet and head.
    """
    ground = surface_below(solid, min(MAX_HEIGHT, math.floor(feet + CONTACT_TOLERANCE) + 1))
    top = max(ground, min(MAX_HEIGHT, math.ceil(head - CONTACT_TOLERANCE)))
    bits = hazard & height_mask(ground, top - 1)
    burn, cooling = 0.0, 0.0
    while bits:
        harm = tables.materials[voxels[bit_length(bits & -bits) - 1, iy, ix]].harm
        burn, cooling = max(burn, harm), min(cooling, harm)
        bits &= bits - 1
    return burn if burn > 0.0 else cooling


@kernel
def apply_hazards(tables: Tables, state: State, b: int, m: int) -> Hazards:
    """Effects of hazards on a living mech in this tick. Their damage becomes pending."""
    mech, walk = state.mechs[b, m], state.walks[b, m]
    speed_factor, heating, cooling, damage = 1.0, 0.0, 0.0, 0.0
    if walk.harmless == state.battles[b].terrain_changes + 1:
        return Hazards(speed_factor, heating, cooling)
    mech_class = tables.classes[mech.mech_class]
    survey(state.battles[b], state.solid[b], state.hazard[b], mech_class, mech, walk)
    if walk.hazard != 0 and integer(walk.hazard) & body_mask(mech_class, mech.z):
        touched = materials_touched(state.hazard[b], state.voxels[b], mech_class, mech)
        for code in range(bit_length(touched)):
            if (touched >> code) & 1:
                material = tables.materials[code]
                speed_factor *= material.speed_factor
                heating += max(0.0, material.heat)
                cooling += max(0.0, -material.heat)
                damage += material.damage
    if damage > 0.0:
        hit_points = damage * tables.rules[0].dt
        state.pending[b, m, BODY] += hit_points
        record(state, b, HAZARD, NO_MECH, m, -1, mech.x, mech.y, mech.z, 0.0, 0.0, hit_points)
    return Hazards(speed_factor, heating, cooling)
