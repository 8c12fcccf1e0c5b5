"""Observations: one function per stream, each of which writes into a row (D,) float32 of zeros."""

from __future__ import annotations

from typing import Any

from echelon_env.engine.body import radiation
from echelon_env.engine.ego_map import EGO_MAP_AT, write_ego_map
from echelon_env.engine.geometry import clip, unit_in_plane
from echelon_env.engine.guidance import is_homed_on
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.others import forward_left, locate_others, write_looks
from echelon_env.engine.paint import is_painted, is_painted_by_enemies
from echelon_env.engine.state import DISTANCE, ECCM, ECM, FORWARD, IN_SIGHT, LEFTWARD, NO_MECH, UPWARD, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.weapons import has_shots
from echelon_env.engine.zone import distance_to_centre, is_inside, is_shown
from echelon_env.layout.observations import (
    CLASS_NAMES,
    COMM_CLASS,
    COMM_ROWS,
    CONTACT_CLASS,
    CONTACT_ROWS,
    INTEL_CLASS,
    SELF_CLASS,
    SQUAD_CLASS,
    SQUAD_ROWS,
    STREAMS,
    Comm,
    Contact,
    Intel,
    Objective,
    Self,
    Squad,
)

SELF_AT = STREAMS["self"].start
OBJECTIVE_AT = STREAMS["objective"].start
CONTACTS_AT, CONTACT_WIDTH = STREAMS["contacts"].start, STREAMS["contacts"].row_width
BODY_AT = int(Contact.ARMOUR)  # the first feature of a contact that does not depend on the observer, see `looks`
CONTACTS_MASK_AT = STREAMS["contacts_mask"].start
SQUAD_AT, SQUAD_WIDTH = STREAMS["squad"].start, STREAMS["squad"].row_width
SQUAD_MASK_AT = STREAMS["squad_mask"].start
INTEL_AT, INTEL_WIDTH = STREAMS["intel"].start, STREAMS["intel"].row_width
INTEL_MASK_AT = STREAMS["intel_mask"].start
COMM_AT, COMM_WIDTH = STREAMS["comm"].start, STREAMS["comm"].row_width
COMM_MASK_AT = STREAMS["comm_mask"].start


@kernel
def turn(x: float, y: float, quarter_turns: int) -> tuple[float, float]:
    """A planar vector, turned counter-clockwise."""
    for _ in range(quarter_turns):
        x, y = -y, x
    return x, y


@kernel
def write_self(tables: Tables, state: State, b: int, m: int, row: Any) -> None:
    """The mech's own body, weapons, motion and position."""
    rules, mech = tables.rules[0], state.mechs[b, m]
    mech_class = tables.classes[mech.mech_class]
    at = SELF_AT
    row[at + Self.ALIVE] = 1.0
    row[at + Self.ARMOUR] = mech.armour / mech_class.armour
    row[at + Self.LEGS] = mech.legs / mech_class.legs
    row[at + Self.STABILITY] = mech.stability / rules.max_stability
    row[at + Self.FALLEN] = mech.fallen / rules.fall_ticks
    row[at + Self.SUPPRESSED] = mech.suppressed > 0
    row[at + Self.HEAT] = mech.heat / mech_class.heat_capacity
    row[at + Self.SHUTDOWN] = mech.shutdown
    row[at + Self.ON_GROUND] = mech.on_ground
    for mount in range(mech.cooldown.shape[0]):
        weapon = mech_class.weapon[mount]
        if weapon >= 0:
            row[at + Self.HAS_PRIMARY + mount] = has_shots(tables, mech, mount)
            row[at + Self.COOLDOWN_PRIMARY + mount] = mech.cooldown[mount] / tables.weapons[weapon].cooldown
    if not mech.shutdown:
        forward, left = forward_left(mech, mech.vx, mech.vy)
        row[at + Self.VELOCITY_FORWARD] = clip(forward / rules.speed_scale, -1.0, 1.0)
        row[at + Self.VELOCITY_LEFT] = clip(left / rules.speed_scale, -1.0, 1.0)
        row[at + Self.VELOCITY_UP] = clip(mech.vz / rules.speed_scale, -1.0, 1.0)
    row[at + Self.HEIGHT] = mech.z / rules.map_height
    half = 0.5 * rules.map_size
    turns = state.teams[b, mech.team].quarter_turns
    x, y = turn((mech.x - half) / half, (mech.y - half) / half, turns)
    row[at + Self.POSITION_X], row[at + Self.POSITION_Y] = x, y
    heading_x, heading_y = turn(mech.facing_x, mech.facing_y, turns)
    row[at + Self.HEADING_COS], row[at + Self.HEADING_SIN] = clip(heading_x, -1.0, 1.0), clip(heading_y, -1.0, 1.0)
    forward, left = forward_left(mech, mech.hurt_x, mech.hurt_y)
    row[at + Self.HURT_FORWARD] = clip(forward / mech_class.armour, -1.0, 1.0)
    row[at + Self.HURT_LEFT] = clip(left / mech_class.armour, -1.0, 1.0)
    if mech_class.one_hot >= 0:
        row[at + SELF_CLASS + mech_class.one_hot] = 1.0
    _write_senses(tables, state, b, m, row)


@kernel
def _write_senses(tables: Tables, state: State, b: int, m: int, row: Any) -> None:
    """Sensors, electronics and warnings of the mech, the display and the message that its last action chose."""
    rules, mech = tables.rules[0], state.mechs[b, m]
    mech_class = tables.classes[mech.mech_class]
    at = SELF_AT
    row[at + Self.SENSOR_QUALITY] = mech.quality / rules.max_quality
    row[at + Self.JAMMED] = mech.jam
    row[at + Self.CONTACT_SLOTS] = min(mech_class.contact_slots, CONTACT_ROWS) / CONTACT_ROWS
    if rules.radar_span > 0.0:
        row[at + Self.SENSOR_RANGE] = (mech_class.radar_factor - rules.least_radar) / rules.radar_span
    row[at + Self.HAS_ELECTRONICS] = mech_class.electronics
    row[at + Self.ECM] = radiation(mech) == ECM
    row[at + Self.ECCM] = radiation(mech) == ECCM
    row[at + Self.PAINTED] = is_painted_by_enemies(state, b, m)
    row[at + Self.MISSILE] = is_homed_on(tables, state, b, m)
    row[at + Self.BY_DISTANCE + mech.display] = 1.0
    row[at + Self.HAS_TARGET] = mech.target != NO_MECH


@kernel
def write_objective(tables: Tables, state: State, b: int, m: int, row: Any) -> None:
    """The clock and, if the mech observes it, the zone relative to the mech, and the scores."""
    rules, battle, mech = tables.rules[0], state.battles[b], state.mechs[b, m]
    own, enemy = state.teams[b, mech.team], state.teams[b, 1 - mech.team]
    at = OBJECTIVE_AT
    row[at + Objective.TIME_LEFT] = max(0.0, 1.0 - battle.step_count / rules.max_steps)
    if not is_shown(tables, battle, mech):
        return
    distance = distance_to_centre(battle, mech)
    dx, dy = unit_in_plane(battle.zone_x - mech.x, battle.zone_y - mech.y)
    forward, left = forward_left(mech, dx, dy)
    row[at + Objective.IN_ZONE] = is_inside(rules, battle, mech)
    row[at + Objective.DIRECTION_FORWARD] = clip(forward, -1.0, 1.0)
    row[at + Objective.DIRECTION_LEFT] = clip(left, -1.0, 1.0)
    row[at + Objective.DISTANCE] = max(0.0, distance - battle.zone_radius) / rules.map_diagonal
    row[at + Objective.DISTANCE_NEAR] = min(1.0, distance / rules.zone_scale)
    row[at + Objective.RADIUS] = battle.zone_radius / rules.zone_scale
    row[at + Objective.OWN_SHARE] = own.share
    row[at + Objective.ENEMY_SHARE] = enemy.share
    row[at + Objective.OWN_SCORE] = min(1.0, own.score / rules.score_to_win)
    row[at + Objective.ENEMY_SCORE] = min(1.0, enemy.score / rules.score_to_win)


@kernel
def write_contacts(tables: Tables, state: State, b: int, m: int, row: Any) -> int:
    """The visible enemies, in the order of the contact table. Returns how many they are."""
    rules, mechs, others = tables.rules[0], state.mechs[b], state.others[b]
    mech = mechs[m]
    shown = is_shown(tables, state.battles[b], mech)
    for slot in range(mech.contacts.shape[0]):
        o = integer(mech.contacts[slot])
        if o == NO_MECH:
            return slot
        other, look = mechs[o], state.looks[b, o]
        at = CONTACTS_AT + slot * CONTACT_WIDTH
        row[CONTACTS_MASK_AT + slot] = 1.0
        for feature in range(BODY_AT, CONTACT_WIDTH):
            row[at + feature] = look[feature]
        row[at + Contact.DIRECTION_FORWARD] = others[FORWARD + slot]
        row[at + Contact.DIRECTION_LEFT] = others[LEFTWARD + slot]
        row[at + Contact.DISTANCE] = min(1.0, others[DISTANCE + slot] / rules.map_diagonal)
        row[at + Contact.RANGE] = min(1.0, others[DISTANCE + slot] / rules.range_scale)
        row[at + Contact.ELEVATION] = others[UPWARD + slot] / rules.map_height
        row[at + Contact.LINE_OF_SIGHT] = state.visible[b, m, o] == IN_SIGHT
        forward, left = forward_left(mech, other.vx - mech.vx, other.vy - mech.vy)
        row[at + Contact.VELOCITY_FORWARD] = clip(0.5 * forward / rules.speed_scale, -1.0, 1.0)
        row[at + Contact.VELOCITY_LEFT] = clip(0.5 * left / rules.speed_scale, -1.0, 1.0)
        forward, left = forward_left(mech, other.facing_x, other.facing_y)
        row[at + Contact.FACING_FORWARD] = clip(forward, -1.0, 1.0)
        row[at + Contact.FACING_LEFT] = clip(left, -1.0, 1.0)
        row[at + Contact.PAINTED] = is_painted(state, b, integer(mech.pack), o)
        row[at + Contact.IN_ZONE] = shown and look[Contact.IN_ZONE] > 0.0
        row[at + Contact.IS_TARGET] = o == mech.target
    return int(mech.contacts.shape[0])


@kernel
def _write_mate(tables: Tables, state: State, b: int, m: int, o: int, slot: int, which: int, row: Any) -> None:
    rules, others, look = tables.rules[0], state.others[b], state.looks[b, o]
    at = SQUAD_AT + slot * SQUAD_WIDTH
    row[SQUAD_MASK_AT + slot] = 1.0
    row[at + Squad.DIRECTION_FORWARD] = others[FORWARD + which]
    row[at + Squad.DIRECTION_LEFT] = others[LEFTWARD + which]
    row[at + Squad.DISTANCE] = min(1.0, others[DISTANCE + which] / rules.map_diagonal)
    row[at + Squad.ELEVATION] = others[UPWARD + which] / rules.map_height
    row[at + Squad.ARMOUR] = look[Contact.ARMOUR]
    row[at + Squad.HEAT] = look[Contact.HEAT]
    row[at + Squad.SHUTDOWN] = look[Contact.SHUTDOWN]
    row[at + Squad.FALLEN] = look[Contact.FALLEN]
    row[at + Squad.IN_ZONE] = is_shown(tables, state.battles[b], state.mechs[b, m]) and look[Contact.IN_ZONE] > 0.0
    row[at + Squad.SAME_PACK] = state.mechs[b, o].pack == state.mechs[b, m].pack
    for name in range(len(CLASS_NAMES)):
        row[at + SQUAD_CLASS + name] = look[CONTACT_CLASS + name]


@kernel
def write_squad(tables: Tables, state: State, b: int, m: int, first: int, row: Any) -> int:
    """Living team-mates: those of the own pack, then those of the other packs, each in roster order.

    `first` is the first one's column in `State.others`; returns the one after the last.
    """
    slot = 0
    for i in range(tables.mates.shape[1]):
        o = integer(tables.mates[m, i])
        if o == NO_MECH or slot == SQUAD_ROWS:
            break
        if state.mechs[b, o].alive:
            _write_mate(tables, state, b, m, o, slot, first + slot, row)
            slot += 1
    return first + slot


@kernel
def write_intel(tables: Tables, state: State, b: int, m: int, first: int, row: Any) -> None:
    """Enemies that the pack remembers and that are in no contact row. `first`: see `write_squad`."""
    rules, mech, others = tables.rules[0], state.mechs[b, m], state.others[b]
    pack = integer(mech.pack)
    for slot in range(mech.intel.shape[0]):
        o = integer(mech.intel[slot])
        if o == NO_MECH:
            return
        sighting, other_class = state.sightings[b, pack, o], tables.classes[state.mechs[b, o].mech_class]
        at = INTEL_AT + slot * INTEL_WIDTH
        row[INTEL_MASK_AT + slot] = 1.0
        row[at + Intel.DIRECTION_FORWARD] = others[FORWARD + first + slot]
        row[at + Intel.DIRECTION_LEFT] = others[LEFTWARD + first + slot]
        row[at + Intel.DISTANCE] = min(1.0, others[DISTANCE + first + slot] / rules.map_diagonal)
        row[at + Intel.ELEVATION] = others[UPWARD + first + slot] / rules.map_height
        forward, left = forward_left(mech, sighting.vx, sighting.vy)
        row[at + Intel.VELOCITY_FORWARD] = clip(forward / rules.speed_scale, -1.0, 1.0)
        row[at + Intel.VELOCITY_LEFT] = clip(left / rules.speed_scale, -1.0, 1.0)
        row[at + Intel.ARMOUR] = sighting.armour / other_class.armour
        row[at + Intel.AGE] = sighting.age / rules.intel_ticks
        row[at + Intel.PAINTED] = is_painted(state, b, pack, o)
        if other_class.one_hot >= 0:
            row[at + INTEL_CLASS + other_class.one_hot] = 1.0


@kernel
def _write_message(tables: Tables, sender: Row, slot: int, row: Any) -> None:
    at = COMM_AT + slot * COMM_WIDTH
    row[COMM_MASK_AT + slot] = 1.0
    for i in range(sender.message.shape[0]):
        row[at + Comm.MESSAGE_0 + i] = sender.message[i]
    row[at + Comm.IS_OWN] = slot == 0
    sender_class = tables.classes[sender.mech_class]
    if sender_class.one_hot >= 0:
        row[at + COMM_CLASS + sender_class.one_hot] = 1.0


@kernel
def write_comm(tables: Tables, state: State, b: int, m: int, row: Any) -> None:
    """The pack's messages of the last decision: the own one, then the others in roster order."""
    mechs = state.mechs[b]
    if mechs[m].transmits:
        _write_message(tables, mechs[m], 0, row)
    for slot in range(1, COMM_ROWS):
        o = integer(tables.mates[m, slot - 1])
        if o == NO_MECH or mechs[o].pack != mechs[m].pack:
            return
        if mechs[o].alive and mechs[o].transmits:
            _write_message(tables, mechs[o], slot, row)


@kernel
def observe_all(tables: Tables, state: State, b: int, places: Any, observations: Any) -> None:
    """Write the observations of a battle's mechs. Dead mechs observe only the objective.

    `places` (M,) are rows of `observations` (R, D).
    """
    write_looks(tables, state, b)
    for m in range(state.mechs.shape[1]):
        row = observations[places[m]]
        row[: EGO_MAP_AT if state.mechs[b, m].alive else row.shape[0]] = 0.0
        write_objective(tables, state, b, m, row)
        if state.mechs[b, m].alive:
            write_self(tables, state, b, m, row)
            locate_others(tables, state, b, m)
            mates = write_contacts(tables, state, b, m, row)
            enemies = write_squad(tables, state, b, m, mates, row)
            write_intel(tables, state, b, m, enemies, row)
            write_comm(tables, state, b, m, row)
            write_ego_map(tables, state, b, m, row)
