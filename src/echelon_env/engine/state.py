"""The state of B battles as NumPy record arrays; `allocation` makes them.

Axes: x east, y north, z up, in metres; yaw in radians, 0 along +x, counter-clockwise. Floats of the state are float64:
that makes compiled and uncompiled runs agree to the byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.kernels import integer
from echelon_env.layout.actions import COMM_DIM
from echelon_env.layout.measures import MEASURES
from echelon_env.layout.observations import CONTACT_ROWS, INTEL_ROWS, SQUAD_ROWS

NO_MECH = integer(-1)


BLUE, RED = 0, 1
"""The teams' numbers."""

DRAW = -1
"""The value of `winner` in BATTLE if neither team won."""

# How a mech sees another: not, by radar or heat only, or with a clear line between their centres.
UNSEEN, SEEN, IN_SIGHT = range(3)

# Why a battle is over (field `reason` of BATTLE).
RUNNING, ZONE_CONTROL, ELIMINATION, TIME_LIMIT = range(4)
REASONS = ("running", "zone_control", "elimination", "time_limit")
"""Names by code (field `reason` of BATTLE)."""

# How a homing projectile flies: straight at its target, straight up, or level at the cruising height.
DIRECT, CLIMB, CRUISE = range(3)

# What a mech's contact table is sorted by.
BY_DISTANCE, BY_DANGER, BY_DAMAGE = range(3)

# What a mech radiates.
SILENT, ECM, ECCM = range(3)

EVENT_MEANINGS = {
    "shot": ("shooter", "mech aimed at, or none", "-"),
    "hit": ("shooter", "mech hit", "hit points that its body lost"),
    "splash": ("shooter", "mech in the splash", "hit points that its body lost"),
    "impact": ("shooter", "-", "voxels destroyed; a projectile struck terrain, burst, or reached its aim point"),
    "smoke": ("shooter", "-", "-"),
    "hazard": ("-", "mech burnt", "hit points that its body lost"),
    "paint": ("painter", "mech painted", "-"),
    "interception": ("mech that shot a missile down", "shooter of the missile", "-"),
    "fall": ("mech that fell", "-", "-"),
    "rise": ("mech that stood up", "-", "-"),
    "legged": ("mech that lost its legs", "-", "-"),
    "shutdown": ("mech that shut down", "-", "-"),
    "restart": ("mech that restarted", "-", "-"),
    "death": ("mech that died", "-", "-"),
}
"""Kinds of events with the meanings of their actor, target and amount; "-" is NO_MECH or 0."""

EVENT_KINDS = tuple(EVENT_MEANINGS)
"""Names by code (field `kind` of EVENT)."""

(
    SHOT, HIT, SPLASH, IMPACT, SMOKE, HAZARD, PAINT, INTERCEPTION, FALL, RISE, LEGGED, SHUTDOWN, RESTART, DEATH
) = map(integer, range(len(EVENT_KINDS)))  # fmt: skip

# Values of each cell of an ego map (second axis of `ego`).
EGO_AT, EGO_INSIDE, EGO_SOLID = range(3)
EGO_LISTED = EGO_SOLID  # then in its place: indices of hazardous cells

LANES = 8
"""The number of other mechs that are handled at a time."""
OTHERS = -(CONTACT_ROWS + SQUAD_ROWS + INTEL_ROWS) // LANES * -LANES
"""Room for all others that a mech observes."""

# First entries of `others`: forward and left part of the direction to each other mech, height and distance in metres.
# The parts are offsets in metres before. Their places are constants, so that loops over them are vectorised.
FORWARD, LEFTWARD, UPWARD, DISTANCE = range(0, 4 * OTHERS, OTHERS)

# Pending effects on a mech in a tick (last axis of `pending`).
BODY, LEGS, HEAT, STABILITY = range(4)


def record_dtype(fields: list[tuple[Any, ...]]) -> np.dtype[Any]:
    """An aligned record type whose padding is named fields, because copies of a record skip unnamed padding."""
    aligned = np.dtype(fields, align=True)
    complete: list[tuple[Any, ...]] = []
    end = 0
    for field in [*fields, None]:
        start = aligned.itemsize if field is None else aligned.fields[field[0]][1]  # type: ignore[index]
        if start > end:
            complete.append((f"gap_{end}", "u1", (start - end,)))
        if field is not None:
            complete.append(field)
            end = start + aligned[field[0]].itemsize
    return np.dtype(complete, align=True)


MECH = record_dtype(
    [
        ("x", "f8"),  # m, centre of the body
        ("y", "f8"),  # m
        ("z", "f8"),  # m, the feet
        ("yaw", "f8"),  # rad in [-pi, pi)
        ("facing_x", "f8"),  # cosine of yaw
        ("facing_y", "f8"),  # sine of yaw
        ("vx", "f8"),  # m/s, the planar displacement of the last tick over dt
        ("vy", "f8"),  # m/s
        ("vz", "f8"),  # m/s, the vertical velocity that gravity and jets act on
        ("armour", "f8"),  # hit points left
        ("legs", "f8"),  # leg hit points left
        ("stability", "f8"),  # points left
        ("heat", "f8"),  # heat points
        ("speed_factor", "f8"),  # share of the top speed that the ground allows in this tick
        ("quality", "f8"),  # sensor quality at the last decision
        ("jam", "f8"),  # strength of the enemy's ECM at the last decision, 0..1
        ("throttle", "f8"),  # command of this decision, -1..1 forward
        ("strafe", "f8"),  # -1..1 to the left
        ("jet", "f8"),  # 0..1
        ("turn", "f8"),  # -1..1 counter-clockwise
        ("potential", "f8"),  # approach potential at the last decision
        ("hurt_x", "f8"),  # world direction that this decision's damage came from, weighted by hit points
        ("hurt_y", "f8"),
        ("message", "f8", (COMM_DIM,)),  # command of this decision, to the pack
        ("damage_dealt", "f8"),  # hit points taken from enemies' bodies in this decision
        ("friendly_damage", "f8"),  # hit points taken from team-mates' and the own body in this decision
        ("kills", "f8"),  # kills in this decision; shared kills count in parts, kills in a contested zone more
        ("assists", "f8"),  # kills by pack-mates of mechs that it had painted, in this decision, weighted as kills
        ("loss", "f8"),  # weight of its death in this decision; 0 if it did not die
        ("shutdown_ticks", "i4"),  # ticks shut down in this decision
        ("bad_actions", "i4"),  # non-finite action entries in this decision
        ("cooldown", "i4", (len(MOUNTS),)),  # ticks until each mount is ready
        ("charges", "i4", (len(MOUNTS),)),  # shots left on each mount; counts only where the weapon has charges
        ("anti_missile_cooldown", "i4"),  # ticks until the anti-missile system is ready
        ("suppressed", "i4"),  # ticks left
        ("fallen", "i4"),  # ticks until it stands up, 0 while standing
        ("wreck_ticks", "i4"),  # ticks until its hard wreck softens
        ("wreck_low", "i2"),  # heights that its wreck occupies: lowest voxel
        ("wreck_high", "i2"),  # and the one above the highest
        ("target", "i2"),  # mech that its weapons aim at, or NO_MECH
        ("contacts", "i2", (CONTACT_ROWS,)),  # mechs in the contact rows of the last observation, then NO_MECH
        ("intel", "i2", (INTEL_ROWS,)),  # enemies in the intel rows of the last observation, then NO_MECH
        ("place", "i2"),  # spawn place: the mech's identity apart from its colour
        ("team", "i1"),  # BLUE or RED
        ("mech_class", "i1"),  # index into the catalogue's classes
        ("pack", "i1"),  # index of the pack among both teams' packs, blue's first
        ("alive", "i1"),
        ("died", "i1"),  # in this decision
        ("shutdown", "i1"),  # overheated, until cool again
        ("on_ground", "i1"),  # stands on terrain or on another mech
        ("vent", "i1"),  # command of this decision
        ("radiates", "i1"),  # command of this decision: SILENT, ECM or ECCM; a shut-down mech radiates nothing
        ("trigger", "i1", (len(MOUNTS),)),  # command of this decision
        ("display", "i1"),  # command of this decision: BY_DISTANCE, BY_DANGER or BY_DAMAGE
        ("transmits", "i1"),  # whether the message of this decision was sent
    ]
)

WALK = record_dtype(
    [
        ("reach", "f8"),  # m, upper bound of its walk along an axis in this decision
        ("solid", "u4"),  # heights, as bits, at which columns under its footprint are solid
        ("hazard", "u4"),  # and at which they are hazardous
        ("surveyed", "i4"),  # terrain_changes + 1 of the battle at the lookup; 0: not looked up yet
        ("harmless", "i4"),  # terrain_changes + 1 of the battle when no column in its reach was hazardous; else 0
    ]
)

PROJECTILE = record_dtype(
    [
        ("x", "f8"),  # m
        ("y", "f8"),
        ("z", "f8"),
        ("vx", "f8"),  # m/s
        ("vy", "f8"),
        ("vz", "f8"),
        ("reach", "f8"),  # m left to fly
        ("aim", "f8"),  # homing: height that it aims at, as a share of the target's
        ("owner", "i2"),  # mech that fired it
        ("target", "i2"),  # homing: mech that it homes on
        ("weapon", "i2"),  # index into the catalogue's weapons
        ("phase", "i2"),  # homing: DIRECT, CLIMB or CRUISE
    ]
)

CLOUD = record_dtype(
    [
        ("x", "f8"),  # m, centre
        ("y", "f8"),
        ("z", "f8"),
        ("radius", "f8"),  # m
        ("ticks", "i4"),  # until it is gone
        ("team", "i4"),  # that fired it, and sees through it
    ]
)

BURST = record_dtype(
    [
        ("x", "f8"),  # m, where a projectile ended in this tick
        ("y", "f8"),
        ("z", "f8"),
        ("voxel", "i8"),  # flat index of the voxel that it struck, or -1
        ("event", "i4"),  # index of its IMPACT event, or -1
        ("weapon", "i4"),
    ]
)

PAINT_MARK = record_dtype(
    [
        ("ticks", "i4"),  # until the paint is gone
        ("painter", "i4"),  # mech that painted it last
    ]
)

SIGHTING = record_dtype(
    [
        ("x", "f8"),  # m, where the enemy's centre was
        ("y", "f8"),
        ("z", "f8"),
        ("vx", "f8"),  # m/s
        ("vy", "f8"),
        ("armour", "f8"),  # hit points left
        ("age", "i4"),  # ticks since then
        ("known", "i1"),  # 1 while it is remembered
        ("seen", "i1"),  # scratch: 1 if one of the pack sees it now
    ]
)

_COUNTED = sorted((each for each in MEASURES if each.counted), key=lambda each: each.counted)  # f8 before i4
STATISTIC_NAMES = tuple(each.name for each in _COUNTED)
"""The measures that kernels count."""

STATISTICS = record_dtype([(each.name, each.counted) for each in _COUNTED])
"""The record type of a mech's statistics of a battle."""

_AMOUNTS = sum(each.counted == "f8" for each in _COUNTED)
COUNTERS = record_dtype([("amounts", "f8", (_AMOUNTS,)), ("counts", "i4", (len(_COUNTED) - _AMOUNTS,))])
"""STATISTICS with arrays of the fields of each type, for kernels that treat all alike."""

TEAM = record_dtype(
    [
        ("score", "f8"),  # s of zone control
        ("share", "f8"),  # of the zone in the last decision, 0..1
        ("inside", "i8"),  # mechs inside the zone
        ("spawn_x", "f8"),  # m, centre of the spawn area
        ("spawn_y", "f8"),
        ("quarter_turns", "i4"),  # counter-clockwise turns of the map that bring the own spawn to the corner (0, 0)
        ("mechs_alive", "i4"),
    ]
)

BATTLE = record_dtype(
    [
        ("seed", "u8"),
        ("map_seed", "u8"),  # of the generated map
        ("zone_x", "f8"),  # m
        ("zone_y", "f8"),
        ("zone_radius", "f8"),  # m
        ("step_count", "i4"),  # decisions taken
        ("tick", "i4"),  # physics ticks run
        ("num_projectiles", "i4"),
        ("num_clouds", "i4"),
        ("num_bursts", "i4"),  # of the tick
        ("num_hazards", "i4"),  # hazardous voxels on the map
        ("terrain_changes", "i4"),  # times that a voxel has changed
        ("num_events", "i4"),  # events of the last decision
        ("lost_events", "i4"),  # events, clouds and projectiles without room; capacities are large enough to keep it 0
        ("over", "i1"),
        ("winner", "i1"),  # BLUE, RED or DRAW, once over
        ("reason", "i1"),  # RUNNING, ZONE_CONTROL, ELIMINATION or TIME_LIMIT
        ("contested", "i1"),  # whether the zone was contested at the last death
        ("first_team", "i1"),  # the team that holds the first spawn area
    ]
)

EVENT = record_dtype(
    [
        ("amount", "f8"),  # see EVENT_MEANINGS
        ("x", "f8"),  # m, where it happened; the muzzle for a shot
        ("y", "f8"),
        ("z", "f8"),
        ("dx", "f8"),  # direction of travel (unit vector in the plane) of a hit or a splash
        ("dy", "f8"),
        ("tick", "i4"),
        ("actor", "i2"),  # see EVENT_MEANINGS
        ("target", "i2"),
        ("weapon", "i2"),  # index into the catalogue's weapons, or -1
        ("kind", "i2"),
    ]
)

BLOCK = record_dtype(
    [
        ("obstacle", "u4"),  # bit z: a voxel at height z blocks sight or movement
        ("hazard", "u4"),  # bit z: a voxel at height z slows, heats, cools or burns
    ]
)

USED = record_dtype(
    [
        ("heights", "u4"),  # bit z: a voxel at height z has been damaged
        ("events", "i4"),  # most events of a decision
    ]
)

BLOCK_BITS = integer(2)
BLOCK_SIDE = integer(1 << 2)
"""Columns along each side of a block."""


class State(NamedTuple):
    """Arrays of B battles with M mechs each. Kernels read and write them."""

    mechs: NDArray[Any]  # (B, M) MECH: team blue's mechs first, then red's
    teams: NDArray[Any]  # (B, 2) TEAM
    battles: NDArray[Any]  # (B,) BATTLE
    projectiles: NDArray[Any]  # (B, P) PROJECTILE: the first num_projectiles are in flight
    clouds: NDArray[Any]  # (B, C) CLOUD: the first num_clouds hang in the air
    paint: NDArray[Any]  # (B, packs of both teams, M) PAINT_MARK: what each pack has painted
    sightings: NDArray[Any]  # (B, packs of both teams, M) SIGHTING: what each pack remembers of its enemies
    statistics: NDArray[Any]  # (B, M) STATISTICS of the battle
    shots: NDArray[np.int32]  # (B, M, W) shots of each mech with each of the catalogue's weapons in the battle
    hits: NDArray[np.int32]  # (B, M, W) direct hits
    events: NDArray[Any]  # (B, E) EVENT: the first num_events happened in the last decision
    order: NDArray[np.int16]  # (B, M) mech index by spawn place
    visible: NDArray[np.int8]  # (B, M, M) how the first mech sees the second: UNSEEN, SEEN or IN_SIGHT
    voxels: NDArray[np.uint8]  # (B, Z, Y, X) material of each voxel
    voxel_damage: NDArray[np.uint16]  # (B, Z, Y, X) hit points that each voxel has lost
    # Scratch arrays, which are no part of a snapshot: see SCRATCH.
    opaque: NDArray[np.uint32]  # (B, Y, X) bit z of a column: the voxel at height z blocks sight
    solid: NDArray[np.uint32]  # (B, Y, X) bit z: it blocks movement
    hazard: NDArray[np.uint32]  # (B, Y, X) bit z: it slows, heats, cools or burns
    bursts: NDArray[Any]  # (B, P) BURST: the first num_bursts ended in this tick
    move_order: NDArray[np.int16]  # (B, M) the order in which mechs move in a tick
    walks: NDArray[Any]  # (B, M) WALK: the ground under a mech and how far it may walk
    near: NDArray[np.int16]  # (B, M, M) number of mechs that each may touch in this decision, then their indices
    pending: NDArray[np.float64]  # (B, M, 4) BODY, LEGS, HEAT, STABILITY pending for each mech in a tick
    blocks: NDArray[Any]  # (B, ceil(Y / 4), ceil(X / 4)) BLOCK: the bits that any of a block's columns has
    ego: NDArray[np.uint32]  # (B, 3, cells) EGO_AT (flat index of the column), EGO_INSIDE, EGO_SOLID of an ego map
    looks: NDArray[np.float32]  # (B, M, F) the contact row of each living mech without what depends on its observer
    others: NDArray[np.float64]  # (B, 4 * OTHERS) from FORWARD on, ...: where the others are that a mech observes
    ranks: NDArray[np.float64]  # (B, 2, rows) what a table that is being sorted is sorted by, first and second
    blockers: NDArray[np.int16]  # (B, M, M, 2) column (iy, ix) that last blocked the line between two mechs
    used: NDArray[Any]  # (B,) USED: all that may not be zero in `voxel_damage` and `events`


SCRATCH = (
    "bursts", "move_order", "walks", "near", "pending", "ego", "looks", "others", "ranks", "blockers", "used",
    "opaque", "solid", "hazard", "blocks",
)  # fmt: skip
"""Arrays of the state of which every decision writes what its result depends on, with exceptions. `list_near`
initializes `walks` and `near`; no kernel may survey the ground before. `looks` has rows of living mechs only, and no
result depends on what `others` has beyond its last row. Exceptions: `pending` is all zeros between decisions,
`blockers` holds columns that are only guesses and are tested again, `used` tells the next reset what it has to clear,
and the columns and blocks follow from `voxels` (`tick.pack_terrain`)."""


class Outputs(NamedTuple):
    """What a step returns beside observations, for B battles with M mechs."""

    rewards: NDArray[np.float32]  # (B, M)
    components: NDArray[np.float32]  # (B, M, K) in the order of REWARD_COMPONENTS
    terminated: NDArray[np.bool_]  # (B, M)
    truncated: NDArray[np.bool_]  # (B, M)
