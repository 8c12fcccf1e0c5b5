"""Collision avoidance: predicted collisions with other mechs, and passing them."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.geometry import TINY
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.layout.observations import CONTACT_ROWS, SQUAD_ROWS, Contact, Self, Squad
from echelon_env.opponents.chart import SEEN, STANDING, is_free, span
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.memory import SIDE, Scratch
from echelon_env.opponents.senses import (
    contact,
    contact_class,
    contact_place,
    is_contact,
    is_mate,
    mate_class,
    mate_place,
    own,
    squad,
)

BODY_METRES = 12.0  # farther mechs are ignored
TOUCH = 0.02  # m by which contact distances are reduced
STANDING_SECONDS = 2.0  # a mech that is still in the same column after this time counts as standing
AHEAD_SECONDS = 0.3  # look-ahead for predicted collisions
PASSING_SECONDS, PASSING_REACH = 0.75, 2.0  # duration and factor of a longer look-ahead after a sidestep
TURN_COSINE, TURN_SINE = 0.9238795325112867, 0.3826834323650898  # of 22.5 degrees, the angle between directions to try
SIDEWARDS = 4  # directions tried on either side


@kernel
def list_others(knowledge: Knowledge, observation: Any, memory: Row, scratch: Scratch, plan: Row, half: float) -> int:
    """Write the nearby living mechs with which the mech can collide; return their number."""
    rules, height = knowledge.rules[0], knowledge.classes[plan.mech_class].height
    cosine, sine = own(observation, Self.HEADING_COS), own(observation, Self.HEADING_SIN)
    mates = 0
    while mates < SQUAD_ROWS and is_mate(observation, mates):
        mates += 1
    since = memory.clock - memory.mates_seen
    same = mates == memory.num_mates and 0.0 < since < 1.5 * rules.decision_seconds  # rows shift when a team-mate dies
    memory.num_mates, memory.mates_seen = mates, memory.clock
    count = 0
    for i in range(mates + CONTACT_ROWS):
        speed_x = speed_y = 0.0
        row = i if i < mates else i - mates
        if i < mates:
            forward, left = mate_place(knowledge, observation, row)
            up = squad(observation, row, Squad.ELEVATION) * rules.map_height
            other = knowledge.classes[mate_class(observation, row)]
        elif is_contact(observation, row):
            forward, left = contact_place(knowledge, observation, row)
            up = contact(observation, row, Contact.ELEVATION) * rules.map_height
            other = knowledge.classes[contact_class(observation, row)]
        else:
            break
        x, y = forward * cosine - left * sine, forward * sine + left * cosine
        if i < mates:
            if same:
                speed_x = (memory.x + x - memory.mates[row, 0]) / since
                speed_y = (memory.y + y - memory.mates[row, 1]) / since
            memory.mates[row, 0], memory.mates[row, 1] = memory.x + x, memory.y + y
        if max(abs(x), abs(y)) < BODY_METRES and abs(up) < 0.5 * (height + other.height):
            body = scratch.others[count]
            body[0], body[1], body[2] = x, y, half + max(other.half_length, other.half_width)
            body[3], body[4] = speed_x, speed_y
            count += 1
    return count


@kernel
def mark(memory: Row, scratch: Scratch, half: float, count: int, all_of_them: bool) -> None:
    """Write the chart columns of `count` other mechs, all or only standing ones, without the mech's own columns."""
    bodies, chart = scratch.bodies, memory.chart
    bodies[:] = 0
    x, y = memory.x - memory.origin_x, memory.y - memory.origin_y
    for i in range(count):
        body = scratch.others[i, 2] - half - 0.5  # a column counts by its centre
        columns = span(x + scratch.others[i, 0] - body, x + scratch.others[i, 0] + body)
        middle = y + scratch.others[i, 1]
        for row in range(max(0, math.floor(middle - body)), min(SIDE - 1, math.floor(middle + body)) + 1):
            bodies[row] |= columns
    columns = span(x - half + TOUCH, x + half - TOUCH)
    for row in range(max(0, math.floor(y - half + TOUCH)), min(SIDE - 1, math.floor(y + half - TOUCH)) + 1):
        bodies[row] &= ~columns
    if memory.clock - memory.mechs_noted >= STANDING_SECONDS:
        memory.mechs_noted = memory.clock
        for row in range(SIDE):
            chart[row, STANDING] = bodies[row] & chart[row, SEEN]
            chart[row, SEEN] = bodies[row]
    if not all_of_them:
        for row in range(SIDE):
            bodies[row] &= chart[row, STANDING]


@kernel
def collides(scratch: Scratch, count: int, dx: float, dy: float, seconds: float) -> bool:
    """Whether moving by (dx, dy) in `seconds` collides with another mech, at constant velocities."""
    for i in range(count):
        other = scratch.others[i]
        enters, leaves = 0.0, 1.0
        to_x, to_y = dx - seconds * other[3], dy - seconds * other[4]
        for axis in range(2):
            start, length, gap = other[axis], to_x if axis == 0 else to_y, other[2] - TOUCH
            if abs(length) > TINY:
                one, two = (start - gap) / length, (start + gap) / length
                enters, leaves = max(enters, min(one, two)), min(leaves, max(one, two))
            elif abs(start) >= gap:
                leaves = -1.0
        if enters < leaves and other[0] * to_x + other[1] * to_y > 0.0:
            return True
    return False


@kernel
def turned(dx: float, dy: float, steps: int) -> tuple[float, float]:
    """A vector rotated by `steps` times 22.5 degrees, counter-clockwise if positive."""
    sine = TURN_SINE if steps > 0 else -TURN_SINE
    for _ in range(abs(steps)):
        dx, dy = TURN_COSINE * dx - sine * dy, sine * dx + TURN_COSINE * dy
    return dx, dy


@kernel
def choose_direction(
    knowledge: Knowledge,
    memory: Row,
    scratch: Scratch,
    half: float,
    count: int,
    dx: float,
    dy: float,
    speed: float,
    trusted: bool,
) -> tuple[float, float]:
    """The unit vector in which to walk to a point at (dx, dy): the free direction nearest to the straight one.

    `speed` is in m/s. If `trusted`, the straight path is known to be free of walls. If no direction is free, the
    straight one is returned: mechs slide along what they touch.
    """
    distance = math.sqrt(dx * dx + dy * dy)
    dx, dy = dx / distance, dy / distance
    reach = speed * max(AHEAD_SECONDS, knowledge.rules[0].decision_seconds)
    if memory.clock < memory.passing:
        reach *= PASSING_REACH
    reach = min(reach, distance)
    for i in range(2 * SIDEWARDS + 1):
        to_x, to_y = turned(dx, dy, integer((i if i <= SIDEWARDS else SIDEWARDS - i) * memory.side))
        if collides(scratch, count, reach * to_x, reach * to_y, reach / speed):
            continue
        if (i == 0 and trusted) or is_free(scratch.rough, memory, half, reach * to_x, reach * to_y):
            if i > 0:
                memory.passing = memory.clock + PASSING_SECONDS
            if i > SIDEWARDS:
                memory.side = -memory.side
            return to_x, to_y
    return dx, dy
