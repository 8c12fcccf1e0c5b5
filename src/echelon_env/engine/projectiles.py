"""Flight, hits and interception of projectiles."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine import rng
from echelon_env.engine.events import record
from echelon_env.engine.geometry import CONTACT_TOLERANCE, TINY, clip
from echelon_env.engine.guidance import next_step
from echelon_env.engine.hits import hit, splash
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.raycast import BEDROCK, NEVER, OUTSIDE, first_obstacle
from echelon_env.engine.rosters import places_of
from echelon_env.engine.smoke import release_smoke
from echelon_env.engine.state import IMPACT, INTERCEPTION, NO_MECH, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import centre_height

BURST_SETBACK = 0.05
"""m; a projectile bursts this far before the terrain that it strikes."""


@kernel
def _slab(start: float, delta: float, low: float, high: float) -> tuple[float, float]:
    """Parameters at which a segment enters and leaves the range [low, high] of one axis."""
    if delta == 0.0:
        return (0.0, 1.0) if low <= start <= high else (NEVER, -1.0)
    t_low, t_high = (low - start) / delta, (high - start) / delta
    return min(t_low, t_high), max(t_low, t_high)


@kernel
def enters_box(
    tables: Tables, mech: Row, x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> float:  # fmt: skip
    """Parameter in [0, 1] at which the segment from (x, y, z) by (dx, dy, dz) enters a mech's box, or NEVER."""
    mech_class = tables.classes[mech.mech_class]
    if (
        abs(x + 0.5 * dx - mech.x) > 0.5 * abs(dx) + mech_class.half_length + CONTACT_TOLERANCE
        or abs(y + 0.5 * dy - mech.y) > 0.5 * abs(dy) + mech_class.half_width + CONTACT_TOLERANCE
    ):
        return NEVER  # not even near: without a division
    in_x, out_x = _slab(x, dx, mech.x - mech_class.half_length, mech.x + mech_class.half_length)
    in_y, out_y = _slab(y, dy, mech.y - mech_class.half_width, mech.y + mech_class.half_width)
    in_z, out_z = _slab(z, dz, mech.z, mech.z + mech_class.height)
    enter, leave = max(0.0, in_x, in_y, in_z), min(1.0, out_x, out_y, out_z)
    return enter if enter <= leave else NEVER


@kernel
def first_enemy(
    tables: Tables, battle: Row, mechs: Any, order: Any, team: int,
    x: float, y: float, z: float, dx: float, dy: float, dz: float,
) -> tuple[int, float]:  # fmt: skip
    """The first living mech of another team whose box the segment enters, and the parameter; else (NO_MECH, NEVER)."""
    first, least = NO_MECH, NEVER
    first_place, stop = places_of(tables.rules[0], battle, order.shape[0], 1 - team)
    for place in range(first_place, stop):
        mech = mechs[order[place]]
        if mech.alive:
            t = enters_box(tables, mech, x, y, z, dx, dy, dz)
            if t < least:
                first, least = integer(order[place]), t
    return first, least


@kernel
def burst(
    tables: Tables, state: State, b: int, projectile: Row, struck: int, voxel: int, x: float, y: float, z: float
) -> None:  # fmt: skip
    """End a projectile at (x, y, z), on a mech (`struck`, else NO_MECH) or a voxel (its index, else BEDROCK)."""
    rules, battle, w = tables.rules[0], state.battles[b], integer(projectile.weapon)
    weapon, owner = tables.weapons[w], integer(projectile.owner)
    x = clip(x, 0.0, rules.map_size - CONTACT_TOLERANCE)
    y = clip(y, 0.0, rules.map_size - CONTACT_TOLERANCE)
    z = clip(z, 0.0, rules.map_height - CONTACT_TOLERANCE)
    if weapon.splash_radius > 0.0:
        splash(tables, state, b, owner, struck, w, x, y, z)
    elif struck != NO_MECH:
        return
    row = state.bursts[b, battle.num_bursts]
    battle.num_bursts += 1
    row.x, row.y, row.z, row.voxel, row.weapon = x, y, z, voxel, w
    row.event = record(state, b, IMPACT, owner, NO_MECH, w, x, y, z, 0.0, 0.0, 0.0)


@kernel
def try_interception(tables: Tables, state: State, b: int, projectile: Row) -> bool:
    """Let the nearest ready anti-missile system in reach fire; return whether it shot the projectile down."""
    rules, battle, mechs, order = tables.rules[0], state.battles[b], state.mechs[b], state.order[b]
    team = integer(mechs[projectile.target].team)
    nearest, least = NO_MECH, rules.anti_missile_range**2
    first, stop = places_of(rules, battle, order.shape[0], team)
    for place in range(first, stop):
        mech = mechs[order[place]]
        if not mech.alive or mech.shutdown or mech.anti_missile_cooldown > 0:
            continue
        if not tables.classes[mech.mech_class].anti_missile:
            continue
        dz = projectile.z - centre_height(tables, mech)
        distance = (projectile.x - mech.x) ** 2 + (projectile.y - mech.y) ** 2 + dz**2
        if distance < least or (nearest == NO_MECH and distance == least):
            nearest, least = integer(order[place]), distance
    if nearest == NO_MECH:
        return False
    defender = mechs[nearest]
    draw = rng.random_unit(battle.seed, integer(battle.tick), integer(defender.place), rng.INTERCEPTION)
    defender.anti_missile_cooldown = rules.anti_missile_cooldown
    if draw >= rules.anti_missile_probability:
        return False
    state.statistics[b, nearest].interceptions += 1
    x, y, z = projectile.x, projectile.y, projectile.z
    record(
        state, b, INTERCEPTION, nearest, integer(projectile.owner), integer(projectile.weapon), x, y, z, 0.0, 0.0, 0.0
    )
    return True


@kernel
def fly(tables: Tables, state: State, b: int, projectile: Row) -> bool:
    """Move a projectile by one tick; return whether it is still in flight."""
    rules, mechs = tables.rules[0], state.mechs[b]
    if tables.weapons[projectile.weapon].guided and try_interception(tables, state, b, projectile):
        return False
    dx, dy, dz, arrives = next_step(tables, state, b, projectile)
    x, y, z = projectile.x, projectile.y, projectile.z
    team = mechs[projectile.owner].team
    target, t_mech = first_enemy(tables, state.battles[b], mechs, state.order[b], team, x, y, z, dx, dy, dz)
    t_terrain, struck = first_obstacle(state.opaque[b], state.solid[b], rules, x, y, z, x + dx, y + dy, z + dz)
    t = min(t_mech, t_terrain, 1.0)
    if t_mech <= t_terrain and t_mech < NEVER:
        at_x, at_y, at_z = x + dx * t, y + dy * t, z + dz * t
        hit(tables, state, b, integer(projectile.owner), target, integer(projectile.weapon), at_x, at_y, at_z, dx, dy)
        burst(tables, state, b, projectile, target, BEDROCK, at_x, at_y, at_z)
    elif t_terrain < NEVER:
        if struck != OUTSIDE:
            t = max(0.0, t - BURST_SETBACK / math.sqrt(dx * dx + dy * dy + dz * dz))
            burst(tables, state, b, projectile, NO_MECH, struck, x + dx * t, y + dy * t, z + dz * t)
    elif arrives:
        burst(tables, state, b, projectile, NO_MECH, BEDROCK, x + dx, y + dy, z + dz)
    elif projectile.reach > TINY:
        projectile.x, projectile.y, projectile.z = x + dx, y + dy, z + dz
        return True
    release_smoke(tables, state, b, projectile, x + dx * t, y + dy * t, z + dz * t)
    return False


@kernel
def fly_all(tables: Tables, state: State, b: int) -> None:
    """One tick of all projectiles of a battle. Those still in flight keep their order."""
    battle, projectiles = state.battles[b], state.projectiles[b]
    kept = 0
    for p in range(battle.num_projectiles):
        if fly(tables, state, b, projectiles[p]):
            if kept != p:
                _copy(projectiles[p], projectiles[kept])
            kept += 1
    battle.num_projectiles = kept


@kernel
def _copy(source: Row, target: Row) -> None:
    target.x, target.y, target.z = source.x, source.y, source.z
    target.vx, target.vy, target.vz = source.vx, source.vy, source.vz
    target.reach, target.aim, target.phase = source.reach, source.aim, source.phase
    target.owner, target.target, target.weapon = source.owner, source.target, source.weapon
