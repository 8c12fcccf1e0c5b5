"""Paint: which pack has painted which mech."""

from __future__ import annotations

from oracles.world import Mech, World


def has_painted(world: World, pack: int, mech: Mech) -> bool:
    return (pack, mech.index) in world.paint


def knows_by_paint(world: World, mech: Mech, enemy: Mech) -> bool:
    """Whether a mech can use its pack's paint on an enemy, to see it or to lock on it."""
    sharp = mech.quality >= world.config.sensors.link_quality
    world.cases["paint without the quality for it"] += has_painted(world, mech.pack, enemy) and not sharp
    return sharp and has_painted(world, mech.pack, enemy)


def fade(world: World) -> None:
    """Age all marks by a tick."""
    for key, mark in list(world.paint.items()):
        mark.ticks -= 1
        if mark.ticks == 0:
            del world.paint[key]
            world.cases["paint faded"] += 1
