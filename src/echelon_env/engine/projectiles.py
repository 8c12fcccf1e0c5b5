"""The flight of projectiles and what they hit."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine._jit import Row, kernel
from echelon_env.engine.events import record
from echelon_env.engine.geometry import TINY
from echelon_env.engine.raycast import NEVER, first_obstacle
from echelon_env.engine.state import IMPACT, NO_MECH, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.weapons import hit


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
    """Parameter in [0, 1] at which the segment from (x, y, z) by (dx, dy, dz) enters a mech's box; else NEVER."""
    mech_class = tables.classes[mech.mech_class]
    in_x, out_x = _slab(x, dx, mech.x - mech_class.half_length, mech.x + mech_class.half_length)
    in_y, out_y = _slab(y, dy, mech.y - mech_class.half_width, mech.y + mech_class.half_width)
    in_z, out_z = _slab(z, dz, mech.z, mech.z + mech_class.height)
    enter, leave = max(0.0, in_x, in_y, in_z), min(1.0, out_x, out_y, out_z)
    return enter if enter <= leave else NEVER


@kernel
def first_enemy(
    tables: Tables, mechs: Any, order: Any, team: int, x: float, y: float, z: float, dx: float, dy: float, dz: float
) -> tuple[int, float]:
    """The first living mech of another team whose box the segment enters, and where; (NO_MECH, NEVER) for none."""
    first, least = NO_MECH, NEVER
    for place in range(order.shape[0]):
        mech = mechs[order[place]]
        if mech.alive and mech.team != team:
            t = enters_box(tables, mech, x, y, z, dx, dy, dz)
            if t < least:
                first, least = int(order[place]), t
    return first, least


@kernel
def fly(tables: Tables, state: State, b: int, projectile: Row) -> bool:
    """Move a projectile by one tick; say whether it flies on."""
    rules, mechs = tables.rules[0], state.mechs[b]
    speed = math.sqrt(projectile.vx**2 + projectile.vy**2 + projectile.vz**2)
    share = min(1.0, projectile.reach / (speed * rules.dt))
    dx, dy, dz = projectile.vx * rules.dt * share, projectile.vy * rules.dt * share, projectile.vz * rules.dt * share
    x, y, z = projectile.x, projectile.y, projectile.z
    owner = int(projectile.owner)
    target, t_mech = first_enemy(tables, mechs, state.order[b], mechs[owner].team, x, y, z, dx, dy, dz)
    t_terrain = first_obstacle(state.columns[b], rules, x, y, z, x + dx, y + dy, z + dz)
    t = min(t_mech, t_terrain)
    if t < NEVER:
        weapon = int(projectile.weapon)
        if t_mech <= t_terrain:
            hit(tables, state, b, owner, target, weapon, x + dx * t, y + dy * t, z + dz * t, dx, dy)
        else:
            record(state, b, IMPACT, owner, NO_MECH, weapon, x + dx * t, y + dy * t, z + dz * t, 0.0, 0.0, 0.0)
        return False
    projectile.x, projectile.y, projectile.z = x + dx, y + dy, z + dz
    projectile.reach -= speed * rules.dt * share
    return bool(projectile.reach > TINY)


@kernel
def fly_all(tables: Tables, state: State, b: int) -> None:
    """One tick of all projectiles of a battle; those that fly on keep their order."""
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
    target.reach, target.owner, target.weapon = source.reach, source.owner, source.weapon
