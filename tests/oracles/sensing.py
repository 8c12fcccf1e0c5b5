"""Sight and the contact table."""

from __future__ import annotations

import math

from echelon_env.engine.state import BY_DAMAGE, BY_DANGER, BY_DISTANCE, ECCM, ECM, IN_SIGHT, NO_MECH, SEEN, UNSEEN
from echelon_env.layout.observations import CONTACT_ROWS
from oracles.electronics import measure_quality, radiation
from oracles.intel import share_intel
from oracles.paint import knows_by_paint
from oracles.raycast import crosses_edges, distance_to_segment, line_of_sight, touches
from oracles.world import GRAZING, Mech, World


def in_smoke(world: World, mech: Mech, other: Mech) -> bool:
    """Whether smoke of its enemy lies on the segment between a mech's centre and another's."""
    distances = [(distance_to_segment(cloud.centre, mech.centre, other.centre), cloud) for cloud in world.clouds]
    for distance, cloud in distances:
        world.doubt(distance, cloud.radius)
    teams = {cloud.team for distance, cloud in distances if distance <= cloud.radius}
    world.cases["own smoke in the line"] += mech.team in teams
    return 1 - mech.team in teams


def is_line_clear(world: World, mech: Mech, other: Mech) -> bool:
    """Whether a mech has line of sight to another.

    By the rules a line that only touches blocking voxels at an edge is clear. Arithmetic with rounding may differ, so
    it is counted as a grazing line.
    """
    if in_smoke(world, mech, other):
        world.cases["smoke in the line"] += 1
        return False
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
    smoke = in_smoke(world, mech, enemy)
    sensors = world.config.sensors
    radar = sensors.radar_range * mech.kind.sensor_range_factor * mech.quality
    reasons = {
        "paint": knows_by_paint(world, mech, enemy),
        "radar": not smoke and math.dist(mech.centre, enemy.centre) <= radar,
        "heat": not smoke and enemy.heat > sensors.bloom_heat * enemy.kind.heat_capacity,
        "radiation": not smoke and radiation(enemy) in (ECM, ECCM),
        "full observability": world.config.observability == "full",
    }
    found = [reason for reason, there in reasons.items() if there]
    if len(found) == 1:
        world.cases[f"seen by {found[0]} alone"] += 1
    world.cases["hidden by smoke"] += smoke and not found
    world.cases["hidden by terrain"] += not smoke and not found
    return SEEN if found else UNSEEN


def look_around(world: World) -> dict[tuple[int, int], int]:
    """Update sensors and every mech's tables; returns how each mech sees each enemy, by (mech, enemy)."""
    measure_quality(world)
    seen = {
        (mech.index, enemy.index): seeing(world, mech, enemy)
        for mech in world.mechs
        for enemy in world.mechs
        if mech.team != enemy.team
    }
    for mech in world.mechs:
        contacts = [enemy for enemy in world.enemies(mech) if seen[mech.index, enemy.index] != UNSEEN]
        shown = sort_contacts(world, mech, contacts)[: min(mech.kind.contact_slots, CONTACT_ROWS)]
        mech.contacts = [enemy.index for enemy in shown] + [NO_MECH] * (CONTACT_ROWS - len(shown))
        keep_target(world, mech, contacts)
    share_intel(world, seen)
    return seen


def keep_target(world: World, mech: Mech, visible: list[Mech]) -> None:
    """Keep a mech's target that the mech sees and could choose, else take the nearest visible enemy."""
    if mech.target in [enemy.index for enemy in visible] and world.config.abilities.target_choice:
        return
    world.cases["lost its target"] += mech.target != NO_MECH
    nearest = min(visible, key=lambda enemy: math.dist(mech.centre, enemy.centre), default=None)
    mech.target = NO_MECH if nearest is None else nearest.index


def sort_contacts(world: World, mech: Mech, contacts: list[Mech]) -> list[Mech]:
    """Visible enemies, given by spawn place, in the order that the mech's display selects."""
    nearest = sorted(contacts, key=lambda enemy: math.dist(mech.centre, enemy.centre))
    orders = {
        BY_DISTANCE: nearest,
        BY_DANGER: sorted(nearest, key=lambda enemy: -danger(world, mech, enemy)) if mech.display == BY_DANGER else [],
        BY_DAMAGE: sorted(nearest, key=lambda enemy: enemy.armour / enemy.kind.armour),
    }
    ordered = orders[mech.display]
    if ordered != nearest:
        world.cases[f"sorted by {'danger' if mech.display == BY_DANGER else 'damage'}, not by distance"] += 1
    return ordered


def danger(world: World, mech: Mech, enemy: Mech) -> float:
    """Hit points per second that an enemy's weapons can deal at its distance."""
    if enemy.shutdown or enemy.fallen > 0:
        world.cases["no danger from fallen or shut-down mechs"] += 1
        return 0.0
    distance, total = math.dist(mech.centre, enemy.centre), 0.0
    for weapon in enemy.weapons:
        if weapon is not None:
            world.doubt(distance, weapon.range)
            seconds = world.config.ticks(weapon.cooldown) * world.config.dt
            total += weapon.damage / seconds if distance <= weapon.range else 0.0
    return total
