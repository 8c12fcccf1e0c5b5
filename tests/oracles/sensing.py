"""Who sees whom, and the contact table."""

from __future__ import annotations

import math

from echelon_env.engine.state import IN_SIGHT, NO_MECH, SEEN, UNSEEN
from echelon_env.observations import CONTACT_ROWS
from oracles.raycast import crosses_edges, line_of_sight, touches
from oracles.world import Mech, World

GRAZING = "grazing line of sight"


def is_line_clear(world: World, mech: Mech, other: Mech) -> bool:
    """Whether there is line of sight between two mechs.

    A line that blocking voxels only touch at an edge is clear by the rules; arithmetic with rounding may see it
    otherwise, so it is counted as a grazing line.
    """
    clear = line_of_sight(world.blocks_sight, mech.centre, other.centre)
    if clear and crosses_edges(mech.centre, other.centre):
        world.cases[GRAZING] += touches(world.blocks_sight, mech.centre, other.centre)
    return clear


def seeing(world: World, mech: Mech, enemy: Mech) -> int:
    """How a mech sees an enemy: UNSEEN, SEEN or IN_SIGHT."""
    if not mech.alive or not enemy.alive or mech.shutdown:
        return UNSEEN
    if is_line_clear(world, mech, enemy):
        return IN_SIGHT
    sensors = world.config.sensors
    in_radar = math.dist(mech.centre, enemy.centre) <= sensors.radar_range * mech.kind.sensor_range_factor
    blooming = enemy.heat > sensors.bloom_heat * enemy.kind.heat_capacity
    full = world.config.observability == "full"
    return SEEN if full or in_radar or blooming else UNSEEN


def look_around(world: World) -> dict[tuple[int, int], int]:
    """Fill every living mech's contact table; returns how each mech sees each enemy, by (mech, enemy)."""
    seen = {
        (mech.index, enemy.index): seeing(world, mech, enemy)
        for mech in world.mechs
        for enemy in world.mechs
        if mech.team != enemy.team
    }
    for mech in world.mechs:
        mech.contacts = [NO_MECH] * CONTACT_ROWS
        contacts = [enemy for enemy in world.enemies(mech) if seen[mech.index, enemy.index] != UNSEEN]
        contacts.sort(key=lambda enemy: math.dist(mech.centre, enemy.centre))
        for row, enemy in enumerate(contacts[: min(mech.kind.contact_slots, CONTACT_ROWS)]):
            mech.contacts[row] = enemy.index
    return seen
