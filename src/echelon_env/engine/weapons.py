"""Firing: targets, arcs, ranges, hitscan hits and the launch of projectiles."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine._jit import Row, kernel
from echelon_env.engine.body import add_heat
from echelon_env.engine.events import record
from echelon_env.engine.geometry import TINY
from echelon_env.engine.raycast import line_of_sight
from echelon_env.engine.state import HIT, NO_MECH, SHOT, State
from echelon_env.engine.tables import Tables


@kernel
def centre_height(tables: Tables, mech: Row) -> float:
    """Height in metres of a mech's centre."""
    return float(mech.z + 0.5 * tables.classes[mech.mech_class].height)


@kernel
def squared_distance(tables: Tables, a: Row, b: Row) -> float:
    """Squared distance in m2 between the centres of two mechs."""
    dz = centre_height(tables, a) - centre_height(tables, b)
    return float((a.x - b.x) ** 2 + (a.y - b.y) ** 2 + dz**2)


@kernel
def mechs_see_each_other(tables: Tables, columns: Any, a: Row, b: Row) -> bool:
    """Whether the line between two mechs' centres is clear; cast from the lower spawn place: symmetric."""
    if b.place < a.place:
        a, b = b, a
    return line_of_sight(columns, a.x, a.y, centre_height(tables, a), b.x, b.y, centre_height(tables, b))


@kernel
def is_valid_target(tables: Tables, columns: Any, mech: Row, target: Row, weapon: Row) -> bool:
    """Whether a weapon can fire at a target: a living enemy in range, in the arc and in sight."""
    if not target.alive or target.team == mech.team:
        return False
    if squared_distance(tables, mech, target) > weapon.range**2:
        return False
    dx, dy = target.x - mech.x, target.y - mech.y
    if dx * mech.facing_x + dy * mech.facing_y < weapon.arc_cos * math.sqrt(dx * dx + dy * dy):
        return False
    return mechs_see_each_other(tables, columns, mech, target)


@kernel
def choose_target(tables: Tables, state: State, b: int, m: int, weapon: Row) -> int:
    """The target that the action chose if it is valid, else the nearest valid one, else NO_MECH."""
    mechs, order, columns = state.mechs[b], state.order[b], state.columns[b]
    mech = mechs[m]
    if mech.target != NO_MECH and is_valid_target(tables, columns, mech, mechs[mech.target], weapon):
        return int(mech.target)
    nearest, least = NO_MECH, weapon.range**2
    for place in range(order.shape[0]):
        other = mechs[order[place]]
        if other.team == mech.team or not other.alive:
            continue
        distance = squared_distance(tables, mech, other)
        closer = distance < least or (nearest == NO_MECH and distance == least)
        if closer and is_valid_target(tables, columns, mech, other, weapon):
            nearest, least = int(order[place]), distance
    return nearest


@kernel
def hit(
    tables: Tables, state: State, b: int, actor: int, target: int, weapon: int, x: float, y: float, z: float,
    dx: float, dy: float,
) -> None:  # fmt: skip
    """Send a hit with planar direction (dx, dy) on its way; damage and heat arrive at the tick's end."""
    rules, mech = tables.rules[0], state.mechs[b][target]
    damage = tables.weapons[weapon].damage
    length = math.sqrt(dx * dx + dy * dy)
    if length > TINY:
        dx, dy = dx / length, dy / length
        if dx * mech.facing_x + dy * mech.facing_y >= rules.rear_cos:
            damage *= rules.rear_damage
    state.pending[b, target, 0] += damage
    state.pending[b, target, 1] += tables.weapons[weapon].target_heat
    record(state, b, HIT, actor, target, weapon, x, y, z, dx, dy, damage)


@kernel
def launch(tables: Tables, state: State, b: int, m: int, w: int, target: int) -> None:
    """Put a projectile at the shooter's centre, on its way to the target's centre or straight ahead."""
    battle, mech, weapon = state.battles[b], state.mechs[b][m], tables.weapons[w]
    dx, dy, dz = mech.facing_x, mech.facing_y, 0.0
    z = centre_height(tables, mech)
    if target != NO_MECH:
        aim = state.mechs[b][target]
        dx, dy, dz = aim.x - mech.x, aim.y - mech.y, centre_height(tables, aim) - z
        length = math.sqrt(dx * dx + dy * dy + dz * dz)
        dx, dy, dz = dx / length, dy / length, dz / length
    projectile = state.projectiles[b][battle.num_projectiles]
    battle.num_projectiles += 1
    projectile.x, projectile.y, projectile.z = mech.x, mech.y, z
    projectile.vx, projectile.vy, projectile.vz = dx * weapon.speed, dy * weapon.speed, dz * weapon.speed
    projectile.reach, projectile.owner, projectile.weapon = weapon.range, m, w


@kernel
def fire(tables: Tables, state: State, b: int, m: int, mount: int) -> None:
    """Fire what is on a mount, if it can."""
    mech = state.mechs[b][m]
    mech_class = tables.classes[mech.mech_class]
    w = mech_class.weapon[mount]
    if w < 0 or not mech.trigger[mount] or mech.cooldown[mount] > 0:
        return
    weapon = tables.weapons[w]
    target = choose_target(tables, state, b, m, weapon)
    if weapon.hitscan and target == NO_MECH:
        return
    mech.cooldown[mount] = weapon.cooldown
    add_heat(tables.rules[0], mech_class, mech, weapon.heat)
    record(state, b, SHOT, m, target, w, mech.x, mech.y, centre_height(tables, mech), 0.0, 0.0, 0.0)
    if weapon.hitscan:
        aim = state.mechs[b][target]
        z = centre_height(tables, aim)
        hit(tables, state, b, m, target, w, aim.x, aim.y, z, aim.x - mech.x, aim.y - mech.y)
    else:
        launch(tables, state, b, m, w, target)


@kernel
def fire_all(tables: Tables, state: State, b: int) -> None:
    """All shots of a tick."""
    order = state.order[b]
    for place in range(order.shape[0]):
        m = order[place]
        mech = state.mechs[b][m]
        if mech.alive and not mech.shutdown and not mech.vent:
            for mount in range(mech.trigger.shape[0]):
                fire(tables, state, b, m, mount)
