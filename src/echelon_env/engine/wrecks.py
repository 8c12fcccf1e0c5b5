"""Wrecks of dead mechs."""

from __future__ import annotations

import math

from echelon_env.config.catalog import AIR, DEBRIS, DIRT, FOLIAGE, WRECK
from echelon_env.engine import rng
from echelon_env.engine.geometry import CONTACT_TOLERANCE
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import surface_below
from echelon_env.engine.state import State
from echelon_env.engine.tables import Tables
from echelon_env.engine.voxels import set_voxel


@kernel
def inner_cells(centre: float, half: float) -> tuple[int, int]:
    """The cells that a box covers completely along an axis: the first, and the one after the last.

    If there are none, the cell of the box's centre.
    """
    first = math.ceil(centre - half - CONTACT_TOLERANCE)
    stop = math.floor(centre + half + CONTACT_TOLERANCE)
    if first >= stop:
        first = math.floor(centre)
        stop = first + 1
    return first, stop


@kernel
def _overlaps_mech(tables: Tables, state: State, b: int, ix: int, iy: int, iz: int) -> bool:
    """Whether a voxel overlaps a living mech's box."""
    mechs = state.mechs[b]
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        if not mech.alive:
            continue
        mech_class = tables.classes[mech.mech_class]
        if (
            ix + 1 > mech.x - mech_class.half_length + CONTACT_TOLERANCE
            and ix < mech.x + mech_class.half_length - CONTACT_TOLERANCE
            and iy + 1 > mech.y - mech_class.half_width + CONTACT_TOLERANCE
            and iy < mech.y + mech_class.half_width - CONTACT_TOLERANCE
            and iz + 1 > mech.z + CONTACT_TOLERANCE
            and iz < mech.z + mech_class.height - CONTACT_TOLERANCE
        ):
            return True
    return False


@kernel
def _fill_column(tables: Tables, state: State, b: int, ix: int, iy: int, low: int, high: int, code: int) -> None:
    """Fill a column from `low` to `high` - 1 where there is room."""
    for iz in range(low, high):
        present = state.voxels[b, iz, iy, ix]
        if present in (AIR, DIRT, FOLIAGE, DEBRIS) and not _overlaps_mech(tables, state, b, ix, iy, iz):
            set_voxel(tables, state, b, ix, iy, iz, code)


@kernel
def place_wreck(tables: Tables, state: State, b: int, m: int) -> None:
    """Put the wreck of a mech that has just died into the terrain."""
    rules, battle, mech = tables.rules[0], state.battles[b], state.mechs[b, m]
    mech_class = tables.classes[mech.mech_class]
    hard = (
        rng.random_unit(battle.seed, integer(battle.tick), integer(mech.place), rng.WRECKAGE)
        < mech_class.wreck_probability
    )
    height = max(1, math.floor(rules.wreck_height * mech_class.height)) if hard else 1
    mech.wreck_ticks = rules.wreck_ticks if hard else 0
    mech.wreck_low, mech.wreck_high = rules.map_height, 0
    first_x, stop_x = inner_cells(mech.x, mech_class.half_length)
    first_y, stop_y = inner_cells(mech.y, mech_class.half_width)
    level = math.floor(mech.z + CONTACT_TOLERANCE)
    for iy in range(first_y, stop_y):
        for ix in range(first_x, stop_x):
            low = surface_below(integer(state.solid[b, iy, ix]), level)
            high = min(low + height, rules.map_height)
            _fill_column(tables, state, b, ix, iy, low, high, WRECK if hard else DEBRIS)
            mech.wreck_low, mech.wreck_high = min(mech.wreck_low, low), max(mech.wreck_high, high)


@kernel
def age_wreck(tables: Tables, state: State, b: int, m: int) -> None:
    """One tick of a dead mech's hard wreck, which turns to debris at its end."""
    mech = state.mechs[b, m]
    if mech.wreck_ticks == 0:
        return
    mech.wreck_ticks -= 1
    if mech.wreck_ticks == 0:
        _soften(tables, state, b, mech)


@kernel
def _soften(tables: Tables, state: State, b: int, mech: Row) -> None:
    mech_class = tables.classes[mech.mech_class]
    first_x, stop_x = inner_cells(mech.x, mech_class.half_length)
    first_y, stop_y = inner_cells(mech.y, mech_class.half_width)
    for iy in range(first_y, stop_y):
        for ix in range(first_x, stop_x):
            for iz in range(mech.wreck_low, mech.wreck_high):
                if state.voxels[b, iz, iy, ix] == WRECK:
                    set_voxel(tables, state, b, ix, iy, iz, DEBRIS)
