"""Which mechs are inside the zone, whether it is contested, and the score."""

from __future__ import annotations

import math

from echelon_env.engine.state import BLUE, RED
from oracles.world import Mech, World


def is_inside_zone(world: World, mech: Mech) -> bool:
    near = math.hypot(mech.x - world.zone_x, mech.y - world.zone_y) <= world.zone_radius
    there = mech.alive and near and mech.z < world.config.zone.max_feet_height
    world.cases["fallen in the zone"] += there and mech.fallen > 0
    return there and mech.fallen == 0


def contestants(world: World) -> list[Mech]:
    """The mechs inside the zone if it is contested, else none."""
    inside = [mech for mech in world.living() if is_inside_zone(world, mech)]
    return inside if {mech.team for mech in inside} == {BLUE, RED} else []


def score_zone(world: World) -> None:
    """Update each team's share of the zone and its score."""
    inside = [[mech for mech in world.living() if mech.team == team and is_inside_zone(world, mech)] for team in (0, 1)]
    count = [len(mechs) for mechs in inside]
    for team, own, enemy in ((BLUE, *count), (RED, *reversed(count))):
        share = max(0.0, own - enemy) / max(1, own + enemy)
        world.teams[team].inside = own
        world.teams[team].share = share
        world.teams[team].score += share * world.config.decision_seconds
