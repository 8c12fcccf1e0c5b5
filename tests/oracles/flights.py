"""Projectiles: steering, interception, flight and its end, bursts and smoke."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from echelon_env.engine.state import CLIMB, CRUISE, DIRECT, INTERCEPTION, SMOKE, SPLASH
from oracles.combat import aimed_point, damage_against, direct_hit, minus, planar_unit, times, unit
from oracles.raycast import (
    crosses_edges,
    distance_to_box,
    enters_box,
    first_blocked,
    leaves_map,
    line_of_sight,
    touches,
    voxel_entered,
)
from oracles.rng import INTERCEPTION as INTERCEPTION_DRAW
from oracles.rng import random_unit
from oracles.world import GRAZING, Burst, Cloud, Hit, Mech, Point, Projectile, Voxel, World

NOTHING = 1e-9
"""m; a remaining range below this comes from rounding."""

CRUISING_BELOW_TOP = 0.5
BURST_SETBACK = 0.05


class End(NamedTuple):
    """Where a projectile's flight ends."""

    what: Literal["enemy", "voxel", "bedrock", "aimed point", "edge", "spent"]
    at: Point
    enemy: Mech | None = None
    voxel: Voxel | None = None


def fly(world: World) -> tuple[list[Hit], list[Burst]]:
    """Move every projectile by one tick; returns hits and splash, and the bursts."""
    hits: list[Hit] = []
    bursts: list[Burst] = []
    flying: list[Projectile] = []
    for shot in world.projectiles:
        if shot.weapon.flight == "homing" and is_intercepted(world, shot):
            continue
        start = shot.position
        reaches_aim = advance(world, shot)
        end = find_end(world, shot, start, reaches_aim)
        if end is None:
            flying.append(shot)
            continue
        world.cases[f"{shot.weapon.flight} ended: {end.what}"] += 1
        finish(world, shot, start, end, hits, bursts)
    world.projectiles = flying
    return hits, bursts


def is_intercepted(world: World, shot: Projectile) -> bool:
    """Whether the team that a missile is aimed at shoots it down. One of its systems fires, if any can."""
    combat = world.config.combat
    team = world.mechs[shot.target].team
    ready = [
        mech
        for mech in world.living()
        if mech.team == team and mech.kind.anti_missile and not mech.shutdown and mech.anti_missile_cooldown == 0
    ]
    near = [mech for mech in ready if math.dist(mech.centre, shot.position) <= combat.anti_missile_range]
    if not near:
        return False
    mech = min(near, key=lambda mech: math.dist(mech.centre, shot.position))
    mech.anti_missile_cooldown = world.config.ticks(combat.anti_missile_cooldown)
    draw = random_unit(world.seed, world.tick, mech.place, INTERCEPTION_DRAW)
    if draw >= combat.anti_missile_probability:
        world.cases["interception failed"] += 1
        return False
    world.record(INTERCEPTION, mech, world.mechs[shot.owner], shot.weapon, place=shot.position)
    mech.statistics["interceptions"] += 1
    return True


def advance(world: World, shot: Projectile) -> bool:
    """Move a projectile to the end of its path in this tick; returns whether a missile reaches its aim point."""
    dt = world.config.dt
    if shot.weapon.flight == "homing":
        return advance_missile(world, shot)
    step = times(shot.velocity, dt)
    if shot.weapon.flight == "ballistic":
        gravity = world.config.physics.gravity
        vx, vy, vz = shot.velocity
        step = (step[0], step[1], step[2] - gravity * dt * dt / 2)
        shot.velocity = (vx, vy, vz - gravity * dt)
    length = math.hypot(*step)
    share = min(1.0, shot.reach / length)
    shot.position = plus(shot.position, times(step, share))
    shot.reach -= length * share
    return False


def advance_missile(world: World, shot: Projectile) -> bool:
    point = aimed_point(world.mechs[shot.target], shot.aim)
    cruising_height = world.size[2] - CRUISING_BELOW_TOP
    dx, dy, dz = minus(point, shot.position)
    if shot.phase == CLIMB and shot.position[2] >= cruising_height:
        shot.phase = CRUISE
    if shot.phase == CRUISE and math.hypot(dx, dy) <= world.config.combat.dive_distance:
        shot.phase = DIRECT
        world.cases["missile dives"] += 1
    budget = min(shot.weapon.speed * world.config.dt, shot.reach)
    reaches_aim = False
    if shot.phase == CLIMB:
        direction, leg = (0.0, 0.0, 1.0), cruising_height - shot.position[2]
    elif shot.phase == CRUISE:
        direction, leg = unit((dx, dy, 0.0)), math.hypot(dx, dy)
    else:
        direction, leg = unit((dx, dy, dz)), math.hypot(dx, dy, dz)
        reaches_aim = leg <= budget
        world.cases["missile homes on a dead mech"] += not world.mechs[shot.target].alive
    world.cases[f"missile in phase {shot.phase}"] += 1
    step = min(budget, leg)
    shot.velocity = times(direction, shot.weapon.speed)
    shot.position = plus(shot.position, times(direction, step))
    shot.reach -= budget  # all of it: the reach is a lifetime
    return reaches_aim


def plus(one: Point, two: Point) -> Point:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


def find_end(world: World, shot: Projectile, start: Point, reaches_aim: bool) -> End | None:
    """Where a flight from `start` to the projectile's current position ends, or None if it continues."""
    end, owner = shot.position, world.mechs[shot.owner]
    blocking = world.blocks_movement | world.blocks_sight
    blocked, leaves = first_blocked(blocking, start, end), leaves_map(world.size, start, end)
    if crosses_edges(start, end):
        world.cases[GRAZING] += touches(blocking, start, end)
    entries = [(enters_box(*enemy.box, start, end), enemy) for enemy in world.enemies(owner)]
    entry, struck = min(entries, key=lambda pair: pair[0], default=(math.inf, None))
    if entry < math.inf:
        world.doubt(entry, blocked)  # a mech beside a voxel of its height
    if struck is not None and entry < math.inf and entry <= min(blocked, leaves):
        world.cases["projectile of a dead mech hit"] += not owner.alive
        world.cases["missile hit a mech other than its target"] += shot.weapon.flight == "homing" and (
            struck.index != shot.target
        )
        return End("enemy", between(start, end, entry), enemy=struck)
    if blocked <= leaves and blocked < math.inf:
        return End("voxel", between(start, end, blocked), voxel=voxel_entered(start, end, blocked))
    if leaves < math.inf:
        at = between(start, end, leaves)
        return End("bedrock" if end[2] < 0 and abs(at[2]) < NOTHING else "edge", at)
    if reaches_aim:
        return End("aimed point", end)
    return End("spent", end) if shot.reach <= NOTHING else None


def between(start: Point, end: Point, share: float) -> Point:
    return plus(start, times(minus(end, start), share))


def finish(world: World, shot: Projectile, start: Point, end: End, hits: list[Hit], bursts: list[Burst]) -> None:
    """Effects of the end of a flight: a hit, a burst with its splash, smoke."""
    owner, weapon = world.mechs[shot.owner], shot.weapon
    if end.enemy is not None:
        hits.append(direct_hit(world, owner, end.enemy, weapon, minus(shot.position, start), end.at))
    at = end.at
    if end.what in ("voxel", "bedrock"):
        at = set_back(start, end.at)
    if end.what not in ("edge", "spent"):
        burst = Burst(at, owner, weapon, end.voxel)
        if end.what != "enemy" or weapon.splash_radius > 0:
            bursts.append(burst)
        if weapon.splash_radius > 0:
            hits += splash(world, burst, end.enemy)
    if weapon.smoke_radius > 0:
        world.clouds.append(Cloud(at, weapon.smoke_radius, world.config.ticks(weapon.smoke_duration), owner.team))
        world.record(SMOKE, owner, weapon=weapon, place=at)


def set_back(start: Point, end: Point) -> Point:
    """A point slightly before the end of a path, but not before its start."""
    length = math.dist(start, end)
    return between(start, end, max(0.0, length - BURST_SETBACK) / length) if length > 0 else start


def splash(world: World, burst: Burst, struck: Mech | None) -> Iterator[Hit]:
    """Splash of a burst on all mechs in reach except the one that was hit."""
    weapon, shooter = burst.weapon, burst.shooter
    for mech in world.living():
        friend = mech.team == shooter.team
        distance = distance_to_box(burst.at, *mech.box)
        world.doubt(distance, weapon.splash_radius)
        if mech is struck or distance > weapon.splash_radius:
            continue
        if friend and not world.config.combat.friendly_fire:
            world.cases["no splash on a team-mate"] += 1
            continue
        if not line_of_sight(world.blocks_movement, burst.at, mech.centre):
            world.cases["splash shielded"] += 1
            continue
        if crosses_edges(burst.at, mech.centre):
            world.cases[GRAZING] += touches(world.blocks_movement, burst.at, mech.centre)
        damage = weapon.damage * weapon.splash_share
        body = damage_against(world, shooter, mech, damage)
        world.cases["more splash on a mech"] += body > damage
        world.cases["splash on the shooter"] += mech is shooter
        world.cases["splash on a team-mate"] += friend and mech is not shooter
        dx, dy = planar_unit(minus(mech.centre, burst.at))
        yield Hit(
            target=mech,
            kind=SPLASH,
            body=body,
            shooter=shooter,
            weapon=weapon,
            stability=weapon.stability * weapon.splash_share,
            dx=dx,
            dy=dy,
        )
