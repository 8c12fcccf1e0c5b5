"""What packs remember of their enemies, and which of it their mechs receive."""

from __future__ import annotations

import math
from collections.abc import Mapping

from echelon_env.engine.state import NO_MECH, UNSEEN
from echelon_env.layout.observations import INTEL_ROWS
from oracles.paint import has_painted
from oracles.world import Mech, Sighting, World


def share_intel(world: World, seen: Mapping[tuple[int, int], int]) -> None:
    """The end of a decision: what packs learn and forget, and every mech's intel table."""
    world.sightings = {
        (pack, enemy.index): sighting
        for pack, team in sorted({(mech.pack, mech.team) for mech in world.mechs})
        for enemy in world.mechs
        if enemy.team != team and (sighting := knowledge(world, pack, enemy, seen)) is not None
    }
    if not world.config.abilities.intel:
        world.cases["sightings that are not kept"] += bool(world.sightings)
        world.sightings = {}
    for mech in world.mechs:
        known = [enemy for enemy in world.by_place if (mech.pack, enemy.index) in world.sightings]
        hidden = [enemy for enemy in known if enemy.index not in mech.contacts]
        world.cases["seen beyond the slots"] += any(seen[mech.index, enemy.index] != UNSEEN for enemy in hidden)
        hidden.sort(key=lambda enemy: math.dist(mech.centre, world.sightings[mech.pack, enemy.index].centre))
        linked = mech.quality >= world.config.sensors.link_quality
        world.cases["no intel without the link"] += bool(hidden) and not linked and not mech.shutdown
        shown = [enemy.index for enemy in hidden[:INTEL_ROWS] if linked]
        mech.intel = shown + [NO_MECH] * (INTEL_ROWS - len(shown))
        if mech.alive:
            _count_cases(world, mech, hidden, seen)


def knowledge(world: World, pack: int, enemy: Mech, seen: Mapping[tuple[int, int], int]) -> Sighting | None:
    """What a pack knows of an enemy now, or None."""
    old = world.sightings.get((pack, enemy.index))
    if not enemy.alive:
        world.cases["dead enemies are forgotten"] += old is not None
        return None
    mates = [mech for mech in world.living() if mech.pack == pack]
    if has_painted(world, pack, enemy) or any(seen[mate.index, enemy.index] != UNSEEN for mate in mates):
        return Sighting(enemy.centre, (enemy.vx, enemy.vy), enemy.armour, 0)
    if old is None:
        return None
    age = old.age + world.config.decision_repeat
    if age > world.config.ticks(world.config.sensors.intel_memory):
        world.cases["forgotten"] += 1
        return None
    return Sighting(old.centre, old.velocity, old.armour, age)


def _count_cases(world: World, mech: Mech, hidden: list[Mech], seen: Mapping[tuple[int, int], int]) -> None:
    mates = [mate for mate in world.living() if mate.pack == mech.pack and mate is not mech]
    for enemy in hidden:
        by_sight = any(seen[mate.index, enemy.index] != UNSEEN for mate in mates)
        painted = has_painted(world, mech.pack, enemy)
        world.cases["intel by a mate's sight"] += by_sight and not painted
        world.cases["intel by paint"] += painted and not by_sight
        world.cases["aged intel"] += world.sightings[mech.pack, enemy.index].age > 0
    world.cases["more intel than rows"] += len(hidden) > INTEL_ROWS
