"""What the rows of other mechs in an observation share: how each mech looks, and where the others are."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.body import radiation
from echelon_env.engine.geometry import clip, unit_in_plane
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import DISTANCE, FORWARD, LANES, LEFTWARD, NO_MECH, SILENT, UPWARD, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import centre_height
from echelon_env.engine.zone import is_inside
from echelon_env.layout.observations import CLASS_NAMES, CONTACT_CLASS, SQUAD_ROWS, Contact


@kernel
def forward_left(mech: Row, dx: float, dy: float) -> tuple[float, float]:
    """A planar vector in a mech's own frame."""
    return dx * mech.facing_x + dy * mech.facing_y, dy * mech.facing_x - dx * mech.facing_y


@kernel
def write_looks(tables: Tables, state: State, b: int) -> None:
    """Write how each living mech of a battle looks to all mechs, see `State.looks`."""
    rules, battle = tables.rules[0], state.battles[b]
    for m in range(state.mechs.shape[1]):
        mech, look = state.mechs[b, m], state.looks[b, m]
        if not mech.alive:
            continue
        mech_class = tables.classes[mech.mech_class]
        look[Contact.ARMOUR] = mech.armour / mech_class.armour
        look[Contact.HEAT] = mech.heat / mech_class.heat_capacity
        look[Contact.SHUTDOWN] = mech.shutdown
        look[Contact.FALLEN] = mech.fallen > 0
        look[Contact.LEGGED] = mech.legs <= 0.0
        look[Contact.RADIATING] = radiation(mech) != SILENT
        look[Contact.IN_ZONE] = is_inside(rules, battle, mech)
        for name in range(len(CLASS_NAMES)):
            look[CONTACT_CLASS + name] = mech_class.one_hot == name


@kernel
def _add(others: Any, count: int, dx: float, dy: float, dz: float) -> int:
    others[FORWARD + count], others[LEFTWARD + count], others[UPWARD + count] = dx, dy, dz
    return count + 1


@kernel
def _locate(facing_x: float, facing_y: float, others: Any, count: int) -> None:
    """Compute directions and distances from offsets. Some more columns are computed, too: so the loop is vectorised."""
    for i in range((count + LANES - 1) // LANES * LANES):
        dx, dy, dz = others[FORWARD + i], others[LEFTWARD + i], others[UPWARD + i]
        others[DISTANCE + i] = math.sqrt(dx * dx + dy * dy + dz * dz)
        east, north = unit_in_plane(dx, dy)
        others[FORWARD + i] = clip(east * facing_x + north * facing_y, -1.0, 1.0)
        others[LEFTWARD + i] = clip(north * facing_x - east * facing_y, -1.0, 1.0)


@kernel
def locate_others(tables: Tables, state: State, b: int, m: int) -> None:
    """Write where the mechs of mech m's contact, squad and intel rows are, one after the other, see `State.others`."""
    mechs, others = state.mechs[b], state.others[b]
    mech, z, count = mechs[m], centre_height(tables, mechs[m]), 0
    for slot in range(mech.contacts.shape[0]):
        o = integer(mech.contacts[slot])
        if o == NO_MECH:
            break
        count = _add(others, count, mechs[o].x - mech.x, mechs[o].y - mech.y, centre_height(tables, mechs[o]) - z)
    last = count + SQUAD_ROWS
    for i in range(tables.mates.shape[1]):
        o = integer(tables.mates[m, i])
        if o == NO_MECH or count == last:
            break
        if mechs[o].alive:
            count = _add(others, count, mechs[o].x - mech.x, mechs[o].y - mech.y, centre_height(tables, mechs[o]) - z)
    for slot in range(mech.intel.shape[0]):
        o = integer(mech.intel[slot])
        if o == NO_MECH:
            break
        sighting = state.sightings[b, mech.pack, o]
        count = _add(others, count, sighting.x - mech.x, sighting.y - mech.y, sighting.z - z)
    _locate(mech.facing_x, mech.facing_y, others, count)
