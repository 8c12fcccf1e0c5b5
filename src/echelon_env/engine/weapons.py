"""Firing: hitscan hits and the launch of projectiles."""

from __future__ import annotations

import math

from echelon_env.engine import rng
from echelon_env.engine.body import add_heat, in_control
from echelon_env.engine.events import record
from echelon_env.engine.guidance import lead
from echelon_env.engine.hits import hit
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import CLIMB, DIRECT, NO_MECH, SHOT, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.targeting import centre_height, has_direct_lock, valid_target


@kernel
def random_aim(rules: Row, battle: Row, place: int, mount: int) -> float:
    """The height at which a shot aims, a random share of its target's height."""
    draw = rng.random_unit(battle.seed, integer(battle.tick), place, rng.AIM + mount)
    return float(rules.aim_low + (rules.aim_high - rules.aim_low) * draw)


@kernel
def launch(tables: Tables, state: State, b: int, m: int, w: int, target: int, aim: float) -> None:
    """Launch a projectile from the shooter's centre to the aim point, without a target level and straight ahead."""
    battle, mech, weapon = state.battles[b], state.mechs[b, m], tables.weapons[w]
    dx, dy, dz = mech.facing_x, mech.facing_y, 0.0
    x, y, z = mech.x, mech.y, centre_height(tables, mech)
    if target != NO_MECH:
        enemy = state.mechs[b, target]
        dx, dy = enemy.x - x, enemy.y - y
        dz = enemy.z + aim * tables.classes[enemy.mech_class].height - z
        dx, dy, dz = lead(tables.rules[0].gravity, weapon, dx, dy, dz, enemy.vx, enemy.vy)
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if battle.num_projectiles == state.projectiles.shape[1]:
        battle.lost_events += 1  # cannot happen in a battle that started with a reset
        return
    projectile = state.projectiles[b, battle.num_projectiles]
    battle.num_projectiles += 1
    projectile.x, projectile.y, projectile.z = x, y, z
    projectile.vx, projectile.vy, projectile.vz = (
        dx / length * weapon.speed,
        dy / length * weapon.speed,
        dz / length * weapon.speed,
    )
    projectile.reach, projectile.aim = weapon.reach, aim
    projectile.owner, projectile.target, projectile.weapon = m, target, w
    projectile.phase = DIRECT
    if weapon.guided and not has_direct_lock(tables, state, b, m, target, weapon):
        projectile.phase = CLIMB


@kernel
def has_shots(tables: Tables, mech: Row, mount: int) -> bool:
    """Whether a mount has a weapon with charges left or without a limit."""
    w = tables.classes[mech.mech_class].weapon[mount]
    return bool(w >= 0 and (tables.weapons[w].charges == 0 or mech.charges[mount] > 0))


@kernel
def fire(tables: Tables, state: State, b: int, m: int, mount: int) -> None:
    """Fire a mount that is ready at the mech's target, without a valid one ahead if its weapon fires blind."""
    mech = state.mechs[b, m]
    mech_class = tables.classes[mech.mech_class]
    w = integer(mech_class.weapon[mount])
    weapon = tables.weapons[w]
    target = valid_target(tables, state, b, m, weapon)
    if target == NO_MECH and not weapon.fires_blind:
        return
    mech.cooldown[mount] = weapon.cooldown
    if weapon.charges > 0:
        mech.charges[mount] -= 1
    add_heat(tables.rules[0], mech_class, mech, weapon.heat)
    state.shots[b, m, w] += 1
    record(state, b, SHOT, m, target, w, mech.x, mech.y, centre_height(tables, mech), 0.0, 0.0, 0.0)
    aim = random_aim(tables.rules[0], state.battles[b], integer(mech.place), mount)
    if weapon.projectile:
        launch(tables, state, b, m, w, target, aim)
    else:
        enemy = state.mechs[b, target]
        z = enemy.z + aim * tables.classes[enemy.mech_class].height
        hit(tables, state, b, m, target, w, enemy.x, enemy.y, z, enemy.x - mech.x, enemy.y - mech.y)


@kernel
def fire_all(tables: Tables, state: State, b: int) -> None:
    """Fire all shots of a tick."""
    order = state.order[b]
    for place in range(order.shape[0]):
        m = integer(order[place])
        mech = state.mechs[b, m]
        if in_control(mech) and not mech.vent:
            for mount in range(mech.trigger.shape[0]):
                if mech.trigger[mount] and mech.cooldown[mount] == 0 and has_shots(tables, mech, mount):
                    fire(tables, state, b, m, mount)
