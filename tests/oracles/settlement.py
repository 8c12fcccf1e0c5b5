"""The end of a tick: damage, paint, deaths, falls, destroyed voxels, wrecks."""

from __future__ import annotations

from echelon_env.engine.state import DEATH, FALL, HIT, IMPACT, LEGGED, PAINT
from oracles.voxels import damage_voxels, leave_wreck
from oracles.world import Burst, Hit, Mark, Mech, World
from oracles.zone import contestants


def settle(world: World, hits: list[Hit], bursts: list[Burst]) -> None:
    """Apply all pending effects at the end of a tick."""
    painters = {
        key: mark.painter for key, mark in world.paint.items()
    }  # marks of this tick count from the next tick on
    contest = contestants(world)  # before any mech of this tick is dead
    dead = [mech for mech in world.living() if strike(world, mech, [hit for hit in hits if hit.target is mech])]
    for mech in dead:
        mech.loss = world.config.rewards.contested_death if mech in contest else 1.0
        world.cases["death in a contested zone"] += mech in contest
        share_kill(world, mech, [hit for hit in hits if hit.target is mech], painters, contest)
    set_paint(world, hits)
    for mech in world.living():
        if mech.fallen == 0 and mech.stability <= 0:
            mech.fallen = world.config.ticks(world.config.physics.fall_duration)
            mech.statistics["falls"] += 1
            world.record(FALL, mech)
    damage_voxels(world, bursts)
    for burst in bursts:
        world.record(IMPACT, burst.shooter, weapon=burst.weapon, amount=float(burst.destroyed), place=burst.at)
    for mech in dead:
        leave_wreck(world, mech)


def strike(world: World, mech: Mech, received: list[Hit]) -> bool:
    """Apply a mech's pending hits; returns whether it dies."""
    arrived = sum(hit.body for hit in received)
    dealt = min(1.0, mech.armour / arrived) if arrived > 0 else 0.0
    killed = arrived > 0 and arrived >= mech.armour
    for hit in received:
        credit(world, mech, hit, hit.body * dealt)
    heat_limit = world.config.physics.max_heat * mech.kind.heat_capacity
    heat = sum(hit.weapon.target_heat for hit in received if hit.kind == HIT and hit.weapon)
    world.cases["heat from enemies at its limit"] += heat > 0 and mech.heat + heat > heat_limit
    mech.heat = min(heat_limit, mech.heat + heat)
    if mech.fallen == 0:
        mech.stability = max(0.0, mech.stability - sum(hit.stability for hit in received))
    else:
        world.cases["loses no stability on the ground"] += any(hit.stability > 0 for hit in received)
    suppressing = [world.config.ticks(hit.weapon.suppression) for hit in received if suppresses(hit)]
    world.cases["a longer suppression stays"] += bool(suppressing) and mech.suppressed > max(suppressing)
    mech.suppressed = max([mech.suppressed, *suppressing])
    had_legs = mech.legs > 0
    mech.legs = max(0.0, mech.legs - sum(hit.legs for hit in received))
    mech.armour = 0.0 if killed else mech.armour - arrived
    if killed:
        mech.alive, mech.died = False, True
        mech.statistics["deaths"] += 1
        world.record(DEATH, mech)
    elif had_legs and mech.legs == 0:
        world.record(LEGGED, mech)
    world.cases["shared kill"] += killed and len({hit.shooter for hit in received}) > 1
    world.cases["overkill"] += killed and dealt < 1
    return killed


def suppresses(hit: Hit) -> bool:
    return hit.kind == HIT and hit.weapon is not None and hit.weapon.suppression > 0


def credit(world: World, mech: Mech, hit: Hit, amount: float) -> None:
    """Record the armour that a mech lost by a hit."""
    mech.hurt_x -= hit.dx * amount
    mech.hurt_y -= hit.dy * amount
    mech.statistics["damage_taken"] += amount
    shooter = hit.shooter
    world.record(hit.kind, shooter, mech, hit.weapon, amount, hit.at, (hit.dx, hit.dy))
    if shooter is None:
        return
    if shooter.team == mech.team:
        shooter.friendly_damage += amount
        shooter.statistics["friendly_damage"] += amount
    else:
        shooter.damage_dealt += amount
        shooter.statistics["damage_dealt"] += amount
    if hit.kind == HIT and hit.weapon is not None:
        shooter.hits[world.config.catalog.weapons.index(hit.weapon)] += 1


def share_kill(
    world: World, mech: Mech, received: list[Hit], painters: dict[tuple[int, int], int], contest: list[Mech]
) -> None:
    """Kills and assists, by each mech's share of all pending hits."""
    arrived = sum(hit.body for hit in received)
    for hit in received:
        shooter = hit.shooter
        if shooter is None or shooter.team == mech.team:
            world.cases["a share of a kill earns no credit"] += 1
            continue
        part = hit.body / arrived
        shooter.kills += part * contested_factor(world, shooter, contest)
        world.cases["kill in a contested zone"] += shooter in contest
        world.cases["kill from outside a contested zone"] += bool(contest) and shooter not in contest
        shooter.statistics["kills"] += part
        painter = painters.get((shooter.pack, mech.index))
        if painter is not None and painter != shooter.index:
            world.mechs[painter].assists += part * contested_factor(world, world.mechs[painter], contest)
            world.cases["assist in a contested zone"] += world.mechs[painter] in contest
            world.mechs[painter].statistics["assists"] += part
            world.cases["assist"] += part > 0
            world.cases["assist of a dead mech"] += not world.mechs[painter].alive
        world.cases["no assist for the own kill"] += painter == shooter.index


def contested_factor(world: World, mech: Mech, contest: list[Mech]) -> float:
    return world.config.rewards.contested_kill if mech in contest else 1.0


def set_paint(world: World, hits: list[Hit]) -> None:
    """Set the marks of this tick's painters."""
    fresh: dict[tuple[int, int], Mech] = {}
    for hit in hits:
        if hit.kind == HIT and hit.shooter and hit.weapon and hit.weapon.paint > 0:
            key = (hit.shooter.pack, hit.target.index)
            world.record(PAINT, hit.shooter, hit.target, hit.weapon)
            hit.shooter.statistics["paints"] += 1
            world.cases["painted again"] += key in world.paint
            world.cases["painted by two of a pack"] += fresh.get(key, hit.shooter) is not hit.shooter
            fresh[key] = hit.shooter
            world.paint[key] = Mark(world.config.ticks(hit.weapon.paint), hit.shooter.index)
