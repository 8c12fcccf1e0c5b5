"""The body phase of a tick: timers, standing up, hazards, heat, shutdown and restart."""

from __future__ import annotations

import math

from echelon_env.engine.state import ECCM, ECM, HAZARD, RESTART, RISE, SHUTDOWN
from oracles.electronics import radiation
from oracles.paint import fade
from oracles.voxels import hazards, soften_wreck
from oracles.world import Hit, Mech, World


def age_world(world: World) -> None:
    """A tick of paint, smoke and wrecks."""
    fade(world)
    for cloud in world.clouds:
        cloud.ticks -= 1
    world.cases["smoke ended"] += any(cloud.ticks == 0 for cloud in world.clouds)
    world.clouds = [cloud for cloud in world.clouds if cloud.ticks > 0]
    for mech in world.by_place:
        if mech.wreck_ticks > 0:
            mech.wreck_ticks -= 1
            if mech.wreck_ticks == 0:
                soften_wreck(world, mech)


def update_bodies(world: World) -> list[Hit]:
    """The body phase; returns the hazards' damage as pending hits."""
    age_world(world)
    burns = []
    for mech in world.living():
        mech.cooldown = [max(0, ticks - 1) for ticks in mech.cooldown]
        mech.anti_missile_cooldown = max(0, mech.anti_missile_cooldown - 1)
        mech.suppressed = max(0, mech.suppressed - 1)
        update_balance(world, mech)
        materials = hazards(world, mech)
        mech.speed_factor = math.prod(material.speed_factor for material in materials)
        world.cases["in several hazards"] += sum(m.heat != 0 or m.damage != 0 for m in materials) > 1
        damage = sum(material.damage for material in materials) * world.config.dt
        if damage > 0:
            burns.append(Hit(mech, HAZARD, damage))
        update_heat(world, mech, [material.heat * world.config.dt for material in materials])
    return burns


def update_balance(world: World, mech: Mech) -> None:
    """Stand up, or regain stability."""
    physics = world.config.physics
    if mech.fallen > 0:
        mech.fallen -= 1
        if mech.fallen == 0:
            mech.stability = physics.risen_stability
            world.record(RISE, mech)
        return
    share = 1.0
    if mech.legs <= 0 or math.hypot(mech.vx, mech.vy) > physics.moving_speed:
        share -= physics.moving_penalty
        world.cases["recovers slowly without legs"] += mech.legs <= 0
        world.cases["recovers slowly in motion"] += mech.legs > 0
    if mech.legs > 0:
        world.doubt(math.hypot(mech.vx, mech.vy), physics.moving_speed)
    if mech.suppressed > 0:
        share -= physics.suppression_penalty
        world.cases["recovers slowly under fire"] += 1
    recovery = physics.stability_recovery * max(physics.least_recovery, share) * world.config.dt
    mech.stability = min(physics.max_stability, mech.stability + recovery)


def update_heat(world: World, mech: Mech, ground: list[float]) -> None:
    """Dissipation, heat of the ground and of electronics, shutdown and restart."""
    physics, sensors, dt = world.config.physics, world.config.sensors, world.config.dt
    taken = mech.kind.heat_dissipation * dt * (physics.vent_factor if mech.vent else 1.0)
    taken -= sum(heat for heat in ground if heat < 0)
    brought = 0.0 if mech.shutdown else sum(heat for heat in ground if heat > 0)
    brought += {ECM: sensors.ecm_heat, ECCM: sensors.eccm_heat}.get(radiation(mech), 0.0) * dt
    world.cases["vented while shut down"] += mech.vent and mech.shutdown
    world.cases["cooled by the ground"] += any(heat < 0 for heat in ground)
    world.cases["heated by the ground"] += any(heat > 0 for heat in ground) and not mech.shutdown
    world.cases["not heated by the ground while shut down"] += any(heat > 0 for heat in ground) and mech.shutdown
    world.cases["heated by electronics"] += radiation(mech) in (ECM, ECCM)
    add_heat(world, mech, max(0.0, mech.heat - taken) + brought - mech.heat)
    capacity = mech.kind.heat_capacity
    world.doubt(mech.heat, capacity)
    if mech.heat > capacity:
        if not mech.shutdown:
            world.record(SHUTDOWN, mech)
            mech.statistics["shutdowns"] += 1
        mech.shutdown = True
    elif mech.shutdown and mech.heat <= physics.restart_heat * capacity:
        mech.shutdown = False
        world.record(RESTART, mech)
    mech.shutdown_ticks += mech.shutdown


def add_heat(world: World, mech: Mech, heat: float) -> None:
    """Add heat from a mech's own actions and from the ground."""
    limit = world.config.physics.max_heat * mech.kind.heat_capacity
    world.cases["at the maximum heat"] += mech.heat + heat > limit
    mech.heat = min(mech.heat + heat, limit)
