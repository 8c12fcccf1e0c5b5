"""Body, shots, projectiles, damage and deaths of one tick."""

from __future__ import annotations

import math

from echelon_env.catalog import Weapon
from echelon_env.engine.state import DEATH, HIT, NO_MECH, SHOT, SHUTDOWN
from oracles.movement import wrap
from oracles.raycast import enters_box, first_blocked, leaves_map
from oracles.sensing import is_line_clear
from oracles.world import Hit, Mech, Point, Projectile, World

NOTHING = 1e-9
"""m; what is left of a range by rounding alone."""


def update_bodies(world: World) -> None:
    """Cooldowns, heat dissipation, shutdown and restart."""
    physics = world.config.physics
    for mech in world.living():
        mech.cooldown = [max(0, ticks - 1) for ticks in mech.cooldown]
        factor = physics.vent_factor if mech.vent else 1.0
        mech.heat = max(0.0, mech.heat - mech.kind.heat_dissipation * world.config.dt * factor)
        if mech.heat > mech.kind.heat_capacity:
            if not mech.shutdown:
                world.log.append((SHUTDOWN, world.tick, mech.index, NO_MECH, -1, 0.0))
                world.cases["shut down"] += 1
            mech.shutdown = True
        elif mech.shutdown and mech.heat <= physics.restart_heat * mech.kind.heat_capacity:
            mech.shutdown = False
            world.cases["restarted"] += 1
        mech.shutdown_ticks += mech.shutdown


def fire(world: World) -> list[Hit]:
    """Fire every weapon that can; projectiles are added to the world, hits of hitscan weapons are returned."""
    hits = []
    for mech in world.living():
        if mech.shutdown or mech.vent:
            continue
        for mount, weapon in enumerate(mech.weapons):
            if weapon is None or not mech.trigger[mount] or mech.cooldown[mount] > 0:
                continue
            target = choose_target(world, mech, weapon)
            if weapon.flight == "hitscan":
                if target is None:
                    continue
                hits.append(make_hit(world, mech, target, weapon, unit(between(mech, target))))
            else:
                ahead = (math.cos(mech.yaw), math.sin(mech.yaw), 0.0)
                direction = ahead if target is None else unit(between(mech, target))
                world.projectiles.append(Projectile(mech.centre, direction, weapon.range, mech.index, weapon))
            mech.heat = min(mech.heat + weapon.heat, world.config.physics.max_heat * mech.kind.heat_capacity)
            mech.cooldown[mount] = world.config.ticks(weapon.cooldown)
            aimed_at = NO_MECH if target is None else target.index
            world.log.append((SHOT, world.tick, mech.index, aimed_at, weapon_index(world, weapon), 0.0))
    return hits


def weapon_index(world: World, weapon: Weapon) -> int:
    return world.config.catalog.weapons.index(weapon)


def between(mech: Mech, other: Mech) -> Point:
    """The vector from one mech's centre to another's."""
    dx, dy, dz = (b - a for a, b in zip(mech.centre, other.centre, strict=True))
    return dx, dy, dz


def unit(vector: Point) -> Point:
    length = math.sqrt(sum(part * part for part in vector))
    x, y, z = (part / length for part in vector)
    return x, y, z


def choose_target(world: World, mech: Mech, weapon: Weapon) -> Mech | None:
    """The chosen target where it is valid, else the nearest valid one (equal distances: the lower spawn place)."""
    valid = [enemy for enemy in world.enemies(mech) if is_valid_target(world, mech, enemy, weapon)]
    for enemy in valid:
        if enemy.index == mech.target:
            world.cases["fired at the chosen target"] += len(valid) > 1
            return enemy
    world.cases["fired at the nearest of several"] += len(valid) > 1
    return min(valid, key=lambda enemy: math.dist(mech.centre, enemy.centre), default=None)


def is_valid_target(world: World, mech: Mech, enemy: Mech, weapon: Weapon) -> bool:
    if math.dist(mech.centre, enemy.centre) > weapon.range:
        return False
    dx, dy, _ = between(mech, enemy)
    bearing = math.atan2(dy, dx)
    if math.hypot(dx, dy) > 0 and abs(wrap(bearing - mech.yaw)) > math.radians(weapon.arc) / 2:
        return False
    return is_line_clear(world, mech, enemy)


def make_hit(world: World, shooter: Mech, target: Mech, weapon: Weapon, direction: Point) -> Hit:
    """A hit with the rear armour's factor; `direction` is the attack's direction of travel."""
    physics = world.config.physics
    planar = math.hypot(direction[0], direction[1])
    dx, dy = (direction[0] / planar, direction[1] / planar) if planar > 0 else (0.0, 0.0)
    damage = weapon.damage
    if planar > 0 and abs(wrap(math.atan2(dy, dx) - target.yaw)) <= math.radians(physics.rear_arc) / 2:
        damage *= physics.rear_damage
        world.cases["hit the rear"] += 1
    return Hit(shooter, target, weapon, damage, weapon.target_heat, dx, dy)


def fly(world: World) -> list[Hit]:
    """Move every projectile by one tick; those that hit, leave, strike terrain or end their range are gone."""
    hits: list[Hit] = []
    flying: list[Projectile] = []
    blocking = world.blocks_movement | world.blocks_sight
    for shot in world.projectiles:
        step = min(shot.weapon.speed * world.config.dt, shot.reach)
        end = (
            shot.position[0] + shot.direction[0] * step,
            shot.position[1] + shot.direction[1] * step,
            shot.position[2] + shot.direction[2] * step,
        )
        owner = world.mechs[shot.owner]
        stopped = min(first_blocked(blocking, shot.position, end), leaves_map(world.size, shot.position, end))
        entries = [(enters_box(*enemy.box, shot.position, end), enemy) for enemy in world.enemies(owner)]
        entry, struck = min(entries, key=lambda pair: pair[0], default=(math.inf, None))
        if struck is not None and entry < math.inf and entry <= stopped:
            hits.append(make_hit(world, owner, struck, shot.weapon, shot.direction))
            world.cases["projectile hit"] += 1
            world.cases["projectile of the dead hit"] += not owner.alive
        elif stopped == math.inf and shot.reach - step > NOTHING:
            shot.position, shot.reach = end, shot.reach - step
            flying.append(shot)
        else:
            world.cases["projectile spent" if stopped == math.inf else "projectile stopped"] += 1
    world.projectiles = flying
    return hits


def apply_hits(world: World, hits: list[Hit]) -> None:
    """Take the tick's hit points from armour, add the heat, share what was dealt among the shooters, let mechs die."""
    physics = world.config.physics
    for mech in world.living():
        received = [hit for hit in hits if hit.target is mech]
        if not received:
            continue
        arrived = sum(hit.damage for hit in received)
        dealt = min(1.0, mech.armour / arrived) if arrived > 0 else 0.0
        killed = arrived > 0 and arrived >= mech.armour
        for hit in received:
            amount = hit.damage * dealt
            hit.shooter.damage_dealt += amount
            hit.shooter.total_damage += amount
            mech.hurt_x -= hit.dx * amount
            mech.hurt_y -= hit.dy * amount
            if killed:
                hit.shooter.kills += hit.damage / arrived
                hit.shooter.total_kills += hit.damage / arrived
            weapon = weapon_index(world, hit.weapon)
            world.log.append((HIT, world.tick, hit.shooter.index, mech.index, weapon, amount))
        limit = physics.max_heat_from_enemies * mech.kind.heat_capacity
        mech.heat = max(mech.heat, min(limit, mech.heat + sum(hit.heat for hit in received)))
        mech.armour = 0.0 if killed else mech.armour - arrived
        world.cases["shared kill"] += killed and len({hit.shooter for hit in received}) > 1
        world.cases["overkill"] += killed and dealt < 1
        if killed:
            mech.alive, mech.died = False, True
            world.log.append((DEATH, world.tick, mech.index, NO_MECH, -1, 0.0))
