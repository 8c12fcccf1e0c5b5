"""The state of B battles as NumPy record arrays: dtypes, allocation, snapshot and restore.

Axes: x east, y north, z up, in metres; yaw in radians, 0 along +x, counter-clockwise. Floats of the state are float64:
that makes compiled and uncompiled runs agree to the byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.catalog import MOUNTS
from echelon_env.config import BattleConfig
from echelon_env.observations import CONTACT_ROWS

NO_MECH = -1
BLUE, RED = 0, 1
DRAW = -1

# How a mech sees another: not, by radar or heat only, or with a clear line between their centres.
UNSEEN, SEEN, IN_SIGHT = range(3)

# Why a battle is over (field `reason` of BATTLE).
RUNNING, ZONE_CONTROL, ELIMINATION, TIME_LIMIT = range(4)
REASONS = ("running", "zone_control", "elimination", "time_limit")

# Kinds of events (field `kind` of EVENT).
SHOT, HIT, IMPACT, DEATH, SHUTDOWN = range(5)
EVENT_KINDS = ("shot", "hit", "impact", "death", "shutdown")


def record_dtype(fields: list[tuple[Any, ...]]) -> np.dtype[Any]:
    """An aligned record whose gaps are fields: copies of a record skip its padding, and bytes must not differ."""
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
        ("heat", "f8"),  # heat points
        ("throttle", "f8"),  # command of this decision, -1..1 forward
        ("strafe", "f8"),  # -1..1 to the left
        ("jet", "f8"),  # 0..1
        ("turn", "f8"),  # -1..1 counter-clockwise
        ("potential", "f8"),  # approach potential at the last decision
        ("hurt_x", "f8"),  # world direction that this decision's damage came from, weighted by hit points
        ("hurt_y", "f8"),
        ("damage_dealt", "f8"),  # hit points, in this decision
        ("kills", "f8"),  # kills in this decision; shared kills count in parts
        ("shutdown_ticks", "i4"),  # ticks shut down in this decision
        ("bad_actions", "i4"),  # non-finite action entries in this decision
        ("cooldown", "i4", (len(MOUNTS),)),  # ticks until each mount is ready
        ("target", "i2"),  # mech chosen as target, or NO_MECH
        ("contacts", "i2", (CONTACT_ROWS,)),  # mechs in the contact rows of the last observation, then NO_MECH
        ("place", "i2"),  # spawn place: the mech's identity apart from its colour
        ("team", "i1"),  # BLUE or RED
        ("mech_class", "i1"),  # index into the catalogue's classes
        ("pack", "i1"),  # index of the pack within the team
        ("alive", "i1"),
        ("died", "i1"),  # in this decision
        ("shutdown", "i1"),  # overheated, until cool again
        ("on_ground", "i1"),  # stands on terrain or on another mech
        ("vent", "i1"),  # command of this decision
        ("trigger", "i1", (len(MOUNTS),)),  # command of this decision
        ("total_damage", "f8"),  # hit points dealt in this battle
        ("total_kills", "f8"),  # kills in this battle
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
        ("owner", "i2"),  # mech that fired it
        ("weapon", "i2"),  # index into the catalogue's weapons
    ]
)

TEAM = record_dtype(
    [
        ("score", "f8"),  # s of zone control
        ("share", "f8"),  # of the zone in the last decision, 0..1
        ("tonnage", "f8"),  # t inside the zone
        ("spawn_x", "f8"),  # m, centre of the spawn area
        ("spawn_y", "f8"),
        ("quarter_turns", "i4"),  # counter-clockwise turns of the map that bring the own spawn to the corner (0, 0)
        ("mechs_alive", "i4"),
    ]
)

BATTLE = record_dtype(
    [
        ("seed", "u8"),
        ("zone_x", "f8"),  # m
        ("zone_y", "f8"),
        ("zone_radius", "f8"),  # m
        ("step_count", "i4"),  # decisions taken
        ("tick", "i4"),  # physics ticks run
        ("num_projectiles", "i4"),
        ("num_events", "i4"),  # events of the last decision
        ("lost_events", "i4"),  # events that did not fit; capacities are such that it stays 0
        ("over", "i1"),
        ("winner", "i1"),  # BLUE, RED or DRAW, once over
        ("reason", "i1"),  # RUNNING, ZONE_CONTROL, ELIMINATION or TIME_LIMIT
        ("first_team", "i1"),  # the team that holds the first spawn area
    ]
)

EVENT = record_dtype(
    [
        ("amount", "f8"),  # hit points of a HIT, else 0
        ("x", "f4"),  # m, where it happened; the muzzle for a SHOT
        ("y", "f4"),
        ("z", "f4"),
        ("dx", "f4"),  # direction of travel (unit vector in the plane) of a HIT
        ("dy", "f4"),
        ("tick", "i4"),
        ("actor", "i2"),  # mech that did it
        ("target", "i2"),  # mech it was done to, or NO_MECH
        ("weapon", "i2"),  # index into the catalogue's weapons, or -1
        ("kind", "i2"),
    ]
)

COLUMN = record_dtype(
    [
        ("opaque", "u4"),  # bit z: the voxel at height z blocks sight
        ("solid", "u4"),  # bit z: the voxel at height z blocks movement
        ("top", "u1"),  # 1 + height of the highest solid voxel, 0 where there is none
    ]
)


class State(NamedTuple):
    """Arrays of B battles with M mechs each; what kernels read and write."""

    mechs: NDArray[Any]  # (B, M) MECH: team blue's mechs first, then red's
    teams: NDArray[Any]  # (B, 2) TEAM
    battles: NDArray[Any]  # (B,) BATTLE
    projectiles: NDArray[Any]  # (B, P) PROJECTILE: the first num_projectiles are in flight
    events: NDArray[Any]  # (B, E) EVENT: the first num_events happened in the last decision
    order: NDArray[np.int16]  # (B, M) mech index by spawn place
    move_order: NDArray[np.int16]  # (B, M) scratch: the order in which mechs move in a tick
    pending: NDArray[np.float64]  # (B, M, 2) scratch: hit points and heat on their way to each mech in a tick
    visible: NDArray[np.int8]  # (B, M, M) how the first mech sees the second: UNSEEN, SEEN or IN_SIGHT
    voxels: NDArray[np.uint8]  # (B, Z, Y, X) material of each voxel
    columns: NDArray[Any]  # (B, Y, X) COLUMN
    battle_maps: NDArray[np.float32]  # (B, 2, F) the battlefield map as each team sees it


def max_projectiles(config: BattleConfig) -> int:
    """Projectiles that can be in flight at once: every mount fires as often as it can and nothing is hit."""
    total = 0
    for weapon, mounts in _mounted(config):
        if weapon.flight == "straight":
            flight_ticks = np.ceil(weapon.range / (weapon.speed * config.dt)) + 1
            total += mounts * (int(flight_ticks) // config.ticks(weapon.cooldown) + 1)
    return max(1, total)


def max_events(config: BattleConfig) -> int:
    """Events that one decision can hold: every mount fires whenever it is ready and every projectile hits."""
    shots = sum(
        mounts * (config.decision_repeat // config.ticks(weapon.cooldown) + 1) for weapon, mounts in _mounted(config)
    )
    return 2 * shots + max_projectiles(config) + config.num_mechs * (2 + config.decision_repeat)


def _mounted(config: BattleConfig) -> list[tuple[Any, int]]:
    classes = [config.catalog.mech_classes[config.catalog.class_index(n)] for n in (*config.blue, *config.red)]
    return [
        (weapon, sum(getattr(mech_class, mount) == weapon.name for mech_class in classes for mount in MOUNTS))
        for weapon in config.catalog.weapons
    ]


def allocate(config: BattleConfig, num_battles: int, battle_map_width: int) -> State:
    """Zeroed state arrays for `num_battles` battles."""
    mechs, size, height = config.num_mechs, config.terrain.size, config.terrain.height
    return State(
        mechs=np.zeros((num_battles, mechs), MECH),
        teams=np.zeros((num_battles, 2), TEAM),
        battles=np.zeros(num_battles, BATTLE),
        projectiles=np.zeros((num_battles, max_projectiles(config)), PROJECTILE),
        events=np.zeros((num_battles, max_events(config)), EVENT),
        order=np.zeros((num_battles, mechs), np.int16),
        move_order=np.zeros((num_battles, mechs), np.int16),
        pending=np.zeros((num_battles, mechs, 2), np.float64),
        visible=np.zeros((num_battles, mechs, mechs), np.int8),
        voxels=np.zeros((num_battles, height, size, size), np.uint8),
        columns=np.zeros((num_battles, size, size), COLUMN),
        battle_maps=np.zeros((num_battles, 2, battle_map_width), np.float32),
    )
