"""Effects of voxels on mechs, and changes of voxels: hazards, destruction, wrecks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from echelon_env.config.catalog import AIR, DEBRIS, DIRT, FOLIAGE, WRECK, Material
from oracles.movement import overlap, voxels_near
from oracles.rng import RUBBLE, WRECKAGE, random_unit, random_unit_of_voxel
from oracles.world import TOLERANCE, Burst, Mech, Voxel, World

REPLACEABLE = (AIR, DIRT, FOLIAGE, DEBRIS)


def hazards(world: World, mech: Mech) -> list[Material]:
    """The materials of all voxels that overlap a mech, each once."""
    found = {int(world.voxels[z, y, x]) for x, y, z in voxels_near(world, mech.box)}
    return [world.config.catalog.materials[index] for index in sorted(found)]


def set_material(world: World, voxel: Voxel, index: int) -> None:
    """Replace a voxel by an undamaged one of a material."""
    x, y, z = voxel
    material = world.config.catalog.materials[index]
    world.voxels[z, y, x] = index
    world.voxel_damage[z, y, x] = 0
    world.blocks_movement[z, y, x] = material.blocks_movement
    world.blocks_sight[z, y, x] = material.blocks_sight


def damage_voxels(world: World, bursts: list[Burst]) -> None:
    """Apply all damage of the tick to voxels. Voxels without hit points left become debris or air."""
    reached: dict[Voxel, Burst] = {}  # a destroyed voxel is credited to the first burst that reached it
    for burst in bursts:
        for voxel, loss in burst_damage(world, burst):
            x, y, z = voxel
            if world.config.catalog.materials[world.voxels[z, y, x]].hit_points > 0:
                world.voxel_damage[z, y, x] += loss
                world.cases["voxel damaged"] += loss > 0
                world.cases["voxel damaged by several bursts"] += voxel in reached
                reached.setdefault(voxel, burst)
    for voxel, burst in reached.items():
        _break(world, burst, voxel)


def whole(hit_points: float) -> int:
    """Rounded to an integer, halves up."""
    return math.floor(hit_points + 0.5)


def burst_damage(world: World, burst: Burst) -> Iterator[tuple[Voxel, int]]:
    """Voxels that a burst damages, with their loss of hit points."""
    weapon = burst.weapon
    if burst.voxel is not None:
        yield burst.voxel, whole(weapon.damage)
    if weapon.splash_radius == 0:
        return
    ranges = [
        range(max(0, math.floor(part - weapon.splash_radius)), min(extent, math.ceil(part + weapon.splash_radius)))
        for part, extent in zip(burst.at, world.size, strict=True)
    ]
    for x in ranges[0]:
        for y in ranges[1]:
            for z in ranges[2]:
                distance = math.dist((x + 0.5, y + 0.5, z + 0.5), burst.at)
                world.doubt(distance, weapon.splash_radius)
                if (x, y, z) != burst.voxel and distance <= weapon.splash_radius:
                    yield (x, y, z), whole(weapon.damage * weapon.splash_share)


def _break(world: World, burst: Burst, voxel: Voxel) -> None:
    x, y, z = voxel
    material = world.config.catalog.materials[world.voxels[z, y, x]]
    if world.voxel_damage[z, y, x] < material.hit_points:
        return
    width, depth, _ = world.size
    flat = (z * depth + y) * width + x
    rubble = random_unit_of_voxel(world.seed, world.tick, flat, RUBBLE) < material.rubble
    set_material(world, voxel, DEBRIS if rubble else AIR)
    burst.destroyed += 1
    world.cases["voxel became debris" if rubble else "voxel became air"] += 1
    world.cases["destroyed by splash"] += voxel != burst.voxel
    world.cases[f"destroyed {material.name}"] += 1


def covered(low: float, high: float, middle: float, extent: int) -> range:
    """Voxels that an interval of an axis covers completely; the one that contains its middle if there are none."""
    first, last = math.ceil(low - TOLERANCE), math.floor(high + TOLERANCE)
    if first < last:
        return range(max(0, first), min(extent, last))
    return range(math.floor(middle), math.floor(middle) + 1)


def footprint(world: World, mech: Mech) -> list[tuple[int, int]]:
    """The columns (x, y) of a mech's wreck."""
    low, high = mech.box
    xs = covered(low[0], high[0], mech.x, world.size[0])
    ys = covered(low[1], high[1], mech.y, world.size[1])
    return [(x, y) for x in xs for y in ys]


def leave_wreck(world: World, mech: Mech) -> None:
    """Add the wreck or the debris of a mech that died in this tick."""
    config = world.config
    hard = random_unit(world.seed, world.tick, mech.place, WRECKAGE) < mech.kind.wreck_probability
    world.cases["hard wreck" if hard else "debris of a dead mech"] += 1
    height = max(1, math.floor(config.combat.wreck_height * mech.kind.height)) if hard else 1
    low, high = world.size[2], 0
    for x, y in footprint(world, mech):
        solid = np.flatnonzero(world.blocks_movement[:, y, x])
        surface = max([0, *(int(z) + 1 for z in solid if z + 1 <= mech.z + TOLERANCE)])
        world.cases["wreck above the ground"] += surface > 0
        low, high = min(low, surface), max(high, min(surface + height, world.size[2]))
        for z in range(surface, min(surface + height, world.size[2])):
            taken = any(overlap(other.box, ((x, y, z), (x + 1, y + 1, z + 1))) for other in world.living())
            world.cases["no wreck inside a mech"] += taken
            if world.voxels[z, y, x] in REPLACEABLE and not taken:
                set_material(world, (x, y, z), WRECK if hard else DEBRIS)
    if hard:
        mech.wreck_ticks = config.ticks(config.combat.wreck_duration)
        mech.wreck_low, mech.wreck_high = low, high


def soften_wreck(world: World, mech: Mech) -> None:
    """Replace the remaining voxels of a mech's wreck by debris."""
    for x, y in footprint(world, mech):
        for z in range(mech.wreck_low, mech.wreck_high):
            if world.voxels[z, y, x] == WRECK:
                set_material(world, (x, y, z), DEBRIS)
                world.cases["wreck softened"] += 1
