"""Movement of one tick: turning, walking with steps up, jumping, falling and stopping at obstacles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from oracles.world import TOLERANCE, Mech, Point, Voxel, World

Box = tuple[Point, Point]
X, Y = 0, 1


def move_all(world: World, order: Sequence[int]) -> None:
    """Move every living mech once, in the given order of indices."""
    for index in order:
        if world.mechs[index].alive:
            move(world, world.mechs[index])


def move(world: World, mech: Mech) -> None:
    dt = world.config.dt
    before_x, before_y = mech.x, mech.y
    turn, throttle, strafe, jet = mech.turn, mech.throttle, mech.strafe, mech.jet
    if not mech.in_control:
        turn = throttle = strafe = jet = 0.0
    speed_factor = mech.speed_factor * (world.config.physics.legged_speed if mech.legs <= 0 else 1.0)
    if mech.kind.jet_acceleration > 0:
        speed_factor *= 1 + world.config.physics.jet_boost * jet
        world.cases["carried by jets"] += jet > 0 and throttle != 0
    world.cases["walked legged"] += mech.legs <= 0 and throttle != 0
    world.cases["walked through a slowing voxel"] += mech.speed_factor < 1 and throttle != 0
    mech.yaw = wrap(mech.yaw + turn * mech.kind.turn_rate * dt)
    length = max(1.0, math.hypot(throttle, strafe))
    forward = (math.cos(mech.yaw), math.sin(mech.yaw))
    left = (-math.sin(mech.yaw), math.cos(mech.yaw))
    for axis in (X, Y):
        speed = mech.kind.top_speed * speed_factor * (throttle * forward[axis] + strafe * left[axis]) / length
        walk(world, mech, axis, speed * dt)
    rise_or_fall(world, mech, jet)
    mech.vx = (mech.x - before_x) / dt
    mech.vy = (mech.y - before_y) / dt
    if mech.kind.jet_acceleration > 0:
        physics = world.config.physics
        mech.heat = min(mech.heat + physics.jet_heat * jet * dt, physics.max_heat * mech.kind.heat_capacity)


def wrap(angle: float) -> float:
    """The same angle in [-pi, pi)."""
    wrapped = (angle + math.pi) % (2 * math.pi) - math.pi
    return -math.pi if wrapped >= math.pi else wrapped


def walk(world: World, mech: Mech, axis: int, distance: float) -> None:
    """Move along x or y, stepping up or stopping at obstacles."""
    if distance == 0:
        return
    half = (mech.kind.length, mech.kind.width)[axis] / 2
    present = (mech.x, mech.y)[axis]
    wanted = min(max(present + distance, half), world.size[axis] - half)
    there = (wanted, mech.y) if axis == X else (mech.x, wanted)
    voxels = list(solid_overlaps(world, mech.box_at(*there, mech.z)))
    if voxels and mech.on_ground:
        raised = math.floor(mech.z) + 1.0
        obstacle = step_obstacle(world, mech, *there, raised)
        world.cases[f"step: {obstacle}"] += 1
        if obstacle is None:
            world.cases["stepped up by less than a metre"] += raised - mech.z < 1
            mech.x, mech.y = there
            mech.z = raised
            return
    world.cases["stopped at terrain"] += bool(voxels)
    world.cases["stopped at the map's edge"] += wanted != present + distance
    stops = [voxel[axis] - half if distance > 0 else voxel[axis] + 1 + half for voxel in voxels]
    for other in mech_overlaps(world, mech, mech.box_at(*there, mech.z)):
        low, high = other.box
        world.cases["stopped at a mech"] += 1
        stops.append(low[axis] - half if distance > 0 else high[axis] + half)
    stop = min([wanted, *stops]) if distance > 0 else max([wanted, *stops])
    place = max(present, stop) if distance > 0 else min(present, stop)
    if axis == X:
        mech.x = place
    else:
        mech.y = place


def step_obstacle(world: World, mech: Mech, x: float, y: float, raised: float) -> str | None:
    """What prevents a standing mech from stepping up to (x, y, raised), or None."""
    above, ledge = mech.box_at(mech.x, mech.y, raised), mech.box_at(x, y, raised)
    obstacles = {
        "the map's height": raised + mech.kind.height > world.size[2] + TOLERANCE,
        "terrain on the ledge": any(solid_overlaps(world, ledge)),
        "terrain above": any(solid_overlaps(world, above)),
        "a mech on the ledge": bool(mech_overlaps(world, mech, ledge)),
        "a mech above": bool(mech_overlaps(world, mech, above)),
    }
    found = [obstacle for obstacle, there in obstacles.items() if there]
    return " and ".join(found) or None


def rise_or_fall(world: World, mech: Mech, jet: float) -> None:
    """Move along z under gravity and jets."""
    config = world.config
    lift = jet * mech.kind.jet_acceleration - config.physics.gravity
    mech.vz = (mech.vz + lift * config.dt) * (1 - config.physics.vertical_damping)
    wanted = mech.z + mech.vz * config.dt
    if mech.vz > 0:
        highest = lowest_ceiling(world, mech) - mech.kind.height
        mech.on_ground = False
        if wanted >= highest:
            wanted, mech.vz = max(mech.z, highest), 0.0
            world.cases["stopped at a ceiling"] += 1
    else:
        floor = highest_floor(world, mech)
        falling = not mech.on_ground
        mech.on_ground = wanted <= floor
        if mech.on_ground:
            world.cases["landed"] += falling
            world.cases["stands above the ground"] += floor > 0
            world.cases["stands on a mech"] += floor != math.floor(floor)
            wanted, mech.vz = floor, 0.0
    mech.z = wanted


def highest_floor(world: World, mech: Mech) -> float:
    """Height of the highest surface below the mech's feet: bedrock, solid voxels, other mechs."""
    floors = [0.0]
    (low_x, low_y, _), (high_x, high_y, _) = mech.box
    shaft = (low_x, low_y, 0.0), (high_x, high_y, mech.z)
    floors += [voxel[2] + 1.0 for voxel in solid_overlaps(world, shaft) if voxel[2] + 1 <= mech.z + TOLERANCE]
    for other in mech_overlaps(world, mech, ((low_x, low_y, -math.inf), (high_x, high_y, math.inf))):
        top = other.box[1][2]
        if top <= mech.z + TOLERANCE:
            floors.append(top)
    return max(floors)


def lowest_ceiling(world: World, mech: Mech) -> float:
    """Height of the lowest surface above the mech's head: solid voxels, other mechs, the map's height."""
    head = mech.box[1][2]
    ceilings = [float(world.size[2])]
    (low_x, low_y, _), (high_x, high_y, _) = mech.box
    shaft = (low_x, low_y, head), (high_x, high_y, float(world.size[2]))
    ceilings += [float(voxel[2]) for voxel in solid_overlaps(world, shaft) if voxel[2] >= head - TOLERANCE]
    for other in mech_overlaps(world, mech, ((low_x, low_y, -math.inf), (high_x, high_y, math.inf))):
        if other.z >= head - TOLERANCE:
            ceilings.append(other.z)
    return min(ceilings)


def overlap(one: Box, two: Box) -> bool:
    """Whether two boxes overlap by more than the tolerance along every axis."""
    depths = [
        min(high_1, high_2) - max(low_1, low_2)
        for low_1, high_1, low_2, high_2 in zip(one[0], one[1], two[0], two[1], strict=True)
    ]
    return min(depths) > TOLERANCE


def voxels_near(world: World, box: Box) -> Iterator[Voxel]:
    """Voxels of the map that overlap a box."""
    ranges = [
        range(max(0, math.floor(low)), min(extent, math.floor(high) + 1))
        for low, high, extent in zip(*box, world.size, strict=True)
    ]
    for x in ranges[0]:
        for y in ranges[1]:
            for z in ranges[2]:
                if overlap(box, ((x, y, z), (x + 1, y + 1, z + 1))):
                    yield x, y, z


def solid_overlaps(world: World, box: Box) -> Iterator[Voxel]:
    """Voxels that block movement and overlap a box."""
    return (voxel for voxel in voxels_near(world, box) if world.blocks_movement[voxel[::-1]])


def mech_overlaps(world: World, mech: Mech, box: Box) -> list[Mech]:
    """Other living mechs whose box overlaps a box."""
    return [other for other in world.living() if other is not mech and overlap(box, other.box)]


def is_free(world: World, mech: Mech, box: Box) -> bool:
    """Whether no solid voxel and no other mech overlaps a box."""
    return not any(solid_overlaps(world, box)) and not mech_overlaps(world, mech, box)
