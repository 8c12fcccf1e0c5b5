"""Aim and motion of projectiles by kind of flight: straight, ballistic or homing."""

from __future__ import annotations

import math

from echelon_env.config.flights import FLIGHTS
from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.state import CLIMB, CRUISE, DIRECT, State
from echelon_env.engine.tables import Tables

BALLISTIC, HOMING = (list(FLIGHTS).index(flight) for flight in ("ballistic", "homing"))

AIM_ROUNDS = 8  # iterations that refine a shell's flight time


@kernel
def ballistic_aim(
    gravity: float, speed: float, longest: float, dx: float, dy: float, dz: float, vx: float, vy: float
) -> tuple[float, float, float]:
    """Direction, a vector of any length, in which a shell hits a point at (dx, dy, dz) that moves with (vx, vy).

    The flight takes at most `longest` seconds. For a point out of reach, the direction is the one for `longest`
    seconds.
    """
    t = math.sqrt(dx * dx + dy * dy + dz * dz) / speed
    for _ in range(AIM_ROUNDS):
        ahead_x, ahead_y, up = dx + vx * t, dy + vy * t, dz + 0.5 * gravity * t * t
        t = min(longest, math.sqrt(ahead_x * ahead_x + ahead_y * ahead_y + up * up) / speed)
    return dx + vx * t, dy + vy * t, dz + 0.5 * gravity * t * t


@kernel
def lead(
    gravity: float, weapon: Row, dx: float, dy: float, dz: float, vx: float, vy: float
) -> tuple[float, float, float]:
    """Direction, a vector of any length, in which to fire at a point at (dx, dy, dz) that moves with (vx, vy)."""
    if weapon.guided:
        return dx, dy, dz
    drop = gravity if weapon.flight == BALLISTIC else 0.0
    return ballistic_aim(drop, weapon.speed, weapon.longest_flight, dx, dy, dz, vx, vy)


@kernel
def _turn_to(projectile: Row, speed: float, dx: float, dy: float, dz: float) -> float:
    """Turn a projectile's velocity along a vector; return the vector's length."""
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length > 0.0:
        projectile.vx, projectile.vy, projectile.vz = speed * dx / length, speed * dy / length, speed * dz / length
    return length


@kernel
def _home(tables: Tables, state: State, b: int, projectile: Row) -> tuple[float, float, float, bool]:
    """A homing projectile's displacement (climb, cruise, or straight to the aim point), and whether it arrives."""
    rules, target = tables.rules[0], state.mechs[b, projectile.target]
    speed = tables.weapons[projectile.weapon].speed
    step = min(speed * rules.dt, projectile.reach)
    projectile.reach -= step  # its lifetime: a shortened step costs a whole tick
    dx, dy = target.x - projectile.x, target.y - projectile.y
    dz = target.z + projectile.aim * tables.classes[target.mech_class].height - projectile.z
    if projectile.phase == CLIMB:
        rise = rules.cruise_height - projectile.z
        if rise > 0.0:
            _turn_to(projectile, speed, 0.0, 0.0, rise)
            return 0.0, 0.0, min(step, rise), False
        projectile.phase = CRUISE
    if projectile.phase == CRUISE:
        distance = math.sqrt(dx * dx + dy * dy)
        if distance > rules.dive_distance:
            _turn_to(projectile, speed, dx, dy, 0.0)
            share = min(1.0, step / distance)
            return dx * share, dy * share, 0.0, False
        projectile.phase = DIRECT
    distance = _turn_to(projectile, speed, dx, dy, dz)
    if distance <= step:
        return dx, dy, dz, True
    share = step / distance
    return dx * share, dy * share, dz * share, False


@kernel
def next_step(tables: Tables, state: State, b: int, projectile: Row) -> tuple[float, float, float, bool]:
    """A projectile's displacement in this tick, and whether it then is at its aim point.

    Updates its velocity and subtracts the step from its reach.
    """
    dt, flight = tables.rules[0].dt, tables.weapons[projectile.weapon].flight
    if flight == HOMING:
        return _home(tables, state, b, projectile)
    dx, dy, dz = projectile.vx * dt, projectile.vy * dt, projectile.vz * dt
    if flight == BALLISTIC:
        dz -= 0.5 * tables.rules[0].gravity * dt * dt
        projectile.vz -= tables.rules[0].gravity * dt
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length > projectile.reach:
        share = projectile.reach / length
        dx, dy, dz, length = dx * share, dy * share, dz * share, projectile.reach
    projectile.reach -= length
    return dx, dy, dz, False


@kernel
def is_homed_on(tables: Tables, state: State, b: int, m: int) -> bool:
    """Whether a missile homes on a mech."""
    found = False
    for p in range(state.battles[b].num_projectiles):
        projectile = state.projectiles[b, p]
        found |= bool(projectile.target == m and tables.weapons[projectile.weapon].guided)
    return found
