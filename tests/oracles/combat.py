"""Shots of a tick: triggers, targets, aim, and the effects of a direct hit."""

from __future__ import annotations

import math

from echelon_env.config.catalog import Weapon
from echelon_env.engine.state import CLIMB, DIRECT, HIT, SHOT
from oracles.body import add_heat
from oracles.movement import wrap
from oracles.paint import knows_by_paint
from oracles.rng import AIM, random_unit
from oracles.sensing import is_line_clear
from oracles.world import Hit, Mech, Point, Projectile, World


def fire(world: World) -> list[Hit]:
    """Fire every weapon that can fire. Adds projectiles to the world and returns the hits of hitscan weapons."""
    hits = []
    for mech in world.living():
        for mount, weapon in enumerate(mech.weapons):
            if weapon is not None and is_ready(world, mech, mount, weapon):
                hits += shoot(world, mech, mount, weapon)
    return hits


def is_ready(world: World, mech: Mech, mount: int, weapon: Weapon) -> bool:
    if not mech.trigger[mount] or mech.cooldown[mount] > 0:
        return False
    holds = {
        "fallen": mech.fallen > 0,
        "shut down": mech.shutdown,
        "venting": mech.vent,
        "out of charges": weapon.charges > 0 and mech.charges[mount] == 0,
    }
    for reason, there in holds.items():
        world.cases[f"did not fire: {reason}"] += there
    return not any(holds.values())


def shoot(world: World, mech: Mech, mount: int, weapon: Weapon) -> list[Hit]:
    """Fire a shot at the mech's target, or ahead if the weapon fires blind."""
    target = valid_target(world, mech, weapon)
    if target is None and not weapon.fires_blind:
        world.cases["did not fire: no valid target"] += 1
        return []
    add_heat(world, mech, weapon.heat)
    mech.cooldown[mount] = world.config.ticks(weapon.cooldown)
    mech.charges[mount] -= weapon.charges > 0
    mech.shots[world.config.catalog.weapons.index(weapon)] += 1
    world.record(SHOT, mech, target, weapon, place=mech.centre)
    share = 0.0
    if target is not None:
        combat = world.config.combat
        draw = random_unit(world.seed, world.tick, mech.place, AIM + mount)
        share = combat.aim_low + (combat.aim_high - combat.aim_low) * draw
    if weapon.flight == "hitscan" and target is not None:
        aimed = aimed_point(target, share)
        return [direct_hit(world, mech, target, weapon, minus(aimed, mech.centre), aimed)]
    world.projectiles.append(launch(world, mech, weapon, target, share))
    return []


def launch(world: World, mech: Mech, weapon: Weapon, target: Mech | None, share: float) -> Projectile:
    """The projectile of a shot, at the muzzle."""
    muzzle = mech.centre
    if target is None:
        world.cases[f"{weapon.flight} without a target"] += 1
        ahead = (math.cos(mech.yaw), math.sin(mech.yaw), 0.0)
        return Projectile(muzzle, times(ahead, weapon.speed), weapon.range, mech.index, weapon)
    aimed = aimed_point(target, share)
    if weapon.flight in ("ballistic", "straight"):
        velocity = leading_velocity(world, muzzle, aimed, (target.vx, target.vy), weapon)
        return Projectile(muzzle, velocity, weapon.range, mech.index, weapon)
    direct = sees_unaided(world, mech, target, weapon)
    world.cases["homing fired directly" if direct else "homing fired by paint"] += 1
    reach = weapon.speed * weapon.lifetime
    phase = DIRECT if direct else CLIMB
    return Projectile(muzzle, (0.0, 0.0, 0.0), reach, mech.index, weapon, share, target.index, phase)


def leading_velocity(world: World, muzzle: Point, aimed: Point, target: tuple[float, float], weapon: Weapon) -> Point:
    """The muzzle velocity that leads a target with a planar velocity and compensates the drop."""
    gravity, slowest = (world.config.physics.gravity, 0.4) if weapon.flight == "ballistic" else (0.0, 1.0)
    speed = weapon.speed
    vx, vy = target
    dx, dy, dz = minus(aimed, muzzle)
    t = math.hypot(dx, dy, dz) / speed
    for _ in range(8):
        t = math.hypot(dx + vx * t, dy + vy * t, dz + gravity * t * t / 2) / speed
        t = min(t, weapon.range / (slowest * speed))
    w = (dx / t + vx, dy / t + vy, dz / t + gravity * t / 2)
    return times(unit(w), speed)


def aimed_point(target: Mech, share: float) -> Point:
    return target.x, target.y, target.z + share * target.kind.height


def minus(one: Point, two: Point) -> Point:
    return one[0] - two[0], one[1] - two[1], one[2] - two[2]


def times(vector: Point, factor: float) -> Point:
    return vector[0] * factor, vector[1] * factor, vector[2] * factor


def unit(vector: Point) -> Point:
    length = math.hypot(*vector)
    return times(vector, 1 / length) if length > 0 else (0.0, 0.0, 0.0)


def planar_unit(vector: Point) -> tuple[float, float]:
    length = math.hypot(vector[0], vector[1])
    return (vector[0] / length, vector[1] / length) if length > 0 else (0.0, 0.0)


def valid_target(world: World, mech: Mech, weapon: Weapon) -> Mech | None:
    """The mech's target if the weapon can fire at it."""
    valid = [enemy for enemy in world.enemies(mech) if is_valid_target(world, mech, enemy, weapon)]
    chosen = [enemy for enemy in valid if enemy.index == mech.target]
    world.cases["fired at one of several"] += bool(chosen) and len(valid) > 1
    world.cases["only others are valid"] += bool(valid) and not chosen
    return chosen[0] if chosen else None


def is_valid_target(world: World, mech: Mech, enemy: Mech, weapon: Weapon) -> bool:
    if math.dist(mech.centre, enemy.centre) > weapon.range:
        return False
    dx, dy, _ = minus(enemy.centre, mech.centre)
    bearing = math.atan2(dy, dx)
    if math.hypot(dx, dy) > 0 and abs(wrap(bearing - mech.yaw)) > math.radians(weapon.arc) / 2:
        return False
    if weapon.flight == "homing":
        return knows_by_paint(world, mech, enemy) or sees_unaided(world, mech, enemy, weapon)
    return is_line_clear(world, mech, enemy)


def sees_unaided(world: World, mech: Mech, enemy: Mech, weapon: Weapon) -> bool:
    """Whether a homing weapon needs no paint for an enemy."""
    near = math.dist(mech.centre, enemy.centre) <= weapon.unaided_range
    return near and is_line_clear(world, mech, enemy)


def damage_against(world: World, shooter: Mech, target: Mech, damage: float) -> float:
    """What a hit or splash does to a mech: less its plating, more if it is helpless or painted."""
    combat, through = world.config.combat, damage - target.kind.plating
    world.cases["stopped by plating"] += damage > 0 >= through
    factors = {
        "helpless": combat.helpless_damage if target.shutdown or target.fallen > 0 else 1.0,
        "painted": combat.paint_damage
        if shooter.team != target.team and knows_by_paint(world, shooter, target)
        else 1.0,
    }
    for name, factor in factors.items():
        world.cases[f"damage to a {name} mech"] += factor > 1 and through > 0
    return max(0.0, through) * math.prod(factors.values())


def direct_hit(world: World, shooter: Mech, target: Mech, weapon: Weapon, travel: Point, at: Point) -> Hit:
    """A hit that travels along a vector and strikes a point of the target's box."""
    combat = world.config.combat
    dx, dy = planar_unit(travel)
    damage = damage_against(world, shooter, target, weapon.damage)
    if (dx, dy) != (0.0, 0.0):
        angle = abs(wrap(math.atan2(dy, dx) - target.yaw))
        world.doubt(angle, math.radians(combat.rear_arc) / 2)
        if angle <= math.radians(combat.rear_arc) / 2:
            damage *= combat.rear_damage
            world.cases["hit the rear"] += 1
    height = min(1.0, max(0.0, (at[2] - target.z) / target.kind.height))
    world.doubt(height, combat.legs_height)
    on_legs = height < combat.legs_height
    world.cases["hit the legs"] += on_legs and damage > 0
    return Hit(
        target=target,
        kind=HIT,
        body=damage * (combat.legs_share if on_legs else 1.0),
        shooter=shooter,
        weapon=weapon,
        legs=damage if on_legs else 0.0,
        stability=weapon.stability,
        dx=dx,
        dy=dy,
        at=at,
    )
