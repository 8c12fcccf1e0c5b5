"""Electronic warfare: what mechs radiate, and its effect on sensor quality."""

from __future__ import annotations

import math

from echelon_env.engine.state import ECCM, ECM, SILENT
from oracles.world import Mech, World


def carries_electronics(world: World, mech: Mech) -> bool:
    """Whether a mech has ECM and ECCM in this battle."""
    return mech.kind.electronics and world.config.abilities.electronics


def radiation(mech: Mech) -> int:
    """What a mech really radiates: SILENT, ECM or ECCM."""
    carries = mech.alive and not mech.shutdown and mech.kind.electronics
    return mech.radiates if carries else SILENT


def _strength(world: World, mech: Mech, sources: list[Mech]) -> float:
    """Strength of the nearest source at a mech."""
    nearest = min((math.dist(mech.centre, source.centre) for source in sources), default=math.inf)
    return max(0.0, 1 - nearest / world.config.sensors.electronics_range)


def measure_quality(world: World) -> None:
    """Compute the sensor quality and the jamming of every mech; destroyed ones have quality 1."""
    sensors = world.config.sensors
    for mech in world.mechs:
        mech.jam, mech.quality = 0.0, 1.0
    for mech in world.living():
        others = [other for other in world.living() if other is not mech]
        jammers = [other for other in others if other.team != mech.team and radiation(other) == ECM]
        helpers = [other for other in others if other.team == mech.team and radiation(other) == ECCM]
        mech.jam = _strength(world, mech, jammers)
        eccm = _strength(world, mech, helpers)
        quality = 1 - sensors.jamming * mech.jam + sensors.counter * eccm
        mech.quality = min(max(quality, sensors.min_quality), sensors.max_quality)
        if mech.shutdown:
            mech.quality = sensors.min_quality
        world.cases["jammed"] += mech.jam > 0
        world.cases["helped by ECCM"] += eccm > 0
        world.cases["jammed and helped"] += mech.jam > 0 and eccm > 0
        world.cases["lowest quality"] += quality <= sensors.min_quality
        world.cases["highest quality"] += quality >= sensors.max_quality
