"""Navigation from observations: to a point, around obstacles and other mechs, and out of dead ends.

A mech walks straight to its goal if the remembered terrain (`chart`) leaves the straight path free, else to the first
bend of the shortest path. It avoids moving mechs (`crowd`); paths lead around standing ones. Positions are in metres on
the map rotated to the own spawn, times in seconds.
"""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine import rng
from echelon_env.engine.geometry import clip, cosine_sine
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import Self
from echelon_env.opponents.chart import (
    BURNS,
    JUMP,
    SLOWS,
    at_least,
    build_moves,
    is_free,
    search,
    shift_window,
    store_terrain,
    trace_path,
)
from echelon_env.opponents.crowd import choose_direction, list_others, mark, turned
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.memory import SIDE, WALL, Scratch
from echelon_env.opponents.senses import own, value

ARRIVED = 0.1  # m
ROOM = 0.1  # m of clearance to walls on straight paths
SLACK = 0.01  # m of overlap with walls that is tolerated on the way to a bend
NEAR, SLIDE_SECONDS = 4.0, 1.0  # m, s: no path is searched to goals this near that moved this recently
NOTE_METRES, NOTE_SECONDS = 1.25, 0.5  # the chart is updated after this distance or time
STUCK_SHARE = 0.2  # share of the intended distance: a mech that moves less is stuck
CROWD_SECONDS = 0.5  # a mech stuck this long plans around all other mechs
BUMP_SECONDS = 0.75  # stuck this long with no mech near, it marks what is ahead as a wall
LOST_SECONDS, LOST_METRES = 5.0, 2.0  # this long within this distance, it clears the chart and walks randomly
WALK_SECONDS, WALK_INCREASE, MAX_TRIES = 1.0, 0.5, 6  # duration of the first random walk, increase per try, most tries
DIRECTIONS = 16
WALK = 2  # stream of the random numbers
JUMP_MARGIN = 0.25  # m of clearance of jumps above walls
JUMP_SECONDS = 2.0
NO_JUMP_SECONDS = 10.0  # after a jump that failed
COOL_ENOUGH, TOO_HOT = 0.85, 0.93  # share of the heat capacity: highest after a jump, and at which a jump is aborted
DETOUR_WORTH, DETOUR_METRES = (
    1.3,
    12.0,
)  # a jump is worth it if the path is longer than the distance by this factor and length
DENSE, STRIDE = 8, 3  # places of a path to try as its first bend: the first 8, then every third


@kernel
def steer(knowledge: Knowledge, observation: Any, memory: Row, scratch: Scratch, plan: Row, action: Any) -> None:
    """Write throttle, strafe and jet towards the plan's goal at the plan's speed, given the turn."""
    rules, mech_class = knowledge.rules[0], knowledge.classes[plan.mech_class]
    half = max(mech_class.half_length, mech_class.half_width)
    locate(knowledge, observation, memory, plan, half)
    top_speed = mech_class.top_speed * (rules.legged_speed if own(observation, Self.LEGS) <= 0.0 else 1.0)
    if top_speed * plan.speed <= 0.0 or math.sqrt(plan.goal_forward**2 + plan.goal_left**2) < ARRIVED:
        reset_stuck(memory)
        return
    count = list_others(knowledge, observation, memory, scratch, plan, half)
    update_chart(knowledge, observation, memory, scratch, half, count)
    note_progress(knowledge, observation, memory, half, count)
    aim_x, aim_y, trusted = choose_waypoint(knowledge, observation, memory, scratch, plan, half, top_speed)
    dx, dy = aim_x - memory.x, aim_y - memory.y
    distance = math.sqrt(dx * dx + dy * dy)
    if distance < SLACK:
        memory.pace_x = memory.pace_y = 0.0
        return
    stride = top_speed * rules.decision_seconds
    speed = min(plan.speed, distance / stride)
    if memory.jump > 0.0:
        jump(knowledge, observation, memory, action)
        dx, dy = dx / distance, dy / distance
    else:
        dx, dy = choose_direction(knowledge, memory, scratch, half, count, dx, dy, speed * top_speed, trusted)
    memory.pace_x, memory.pace_y = speed * stride * dx, speed * stride * dy
    cosine, sine = mean_heading(knowledge, observation, plan, action)
    action[Action.THROTTLE] = speed * (dx * cosine + dy * sine)
    action[Action.STRAFE] = speed * (dy * cosine - dx * sine)


@kernel
def mean_heading(knowledge: Knowledge, observation: Any, plan: Row, action: Any) -> tuple[float, float]:
    """Cosine and sine of the mean heading during the decision, given the action's turn."""
    rules = knowledge.rules[0]
    turn = value(action, integer(Action.TURN)) * knowledge.classes[plan.mech_class].turn_rate
    across, along = own(observation, Self.HEADING_SIN), own(observation, Self.HEADING_COS)
    cosine, sine = cosine_sine(0.5 * turn * (rules.decision_seconds + rules.dt))
    return along * cosine - across * sine, across * cosine + along * sine


@kernel
def locate(knowledge: Knowledge, observation: Any, memory: Row, plan: Row, half: float) -> None:
    """Store the positions of the mech and its goal, and the movement since the last decision."""
    size = knowledge.rules[0].map_size
    x = 0.5 * size * (1.0 + own(observation, Self.POSITION_X))
    y = 0.5 * size * (1.0 + own(observation, Self.POSITION_Y))
    memory.moved_x, memory.moved_y = x - memory.x, y - memory.y
    memory.x, memory.y = x, y
    cosine, sine = own(observation, Self.HEADING_COS), own(observation, Self.HEADING_SIN)
    memory.goal_x = clip(x + plan.goal_forward * cosine - plan.goal_left * sine, half, size - half)
    memory.goal_y = clip(y + plan.goal_forward * sine + plan.goal_left * cosine, half, size - half)


@kernel
def reset_stuck(memory: Row) -> None:
    """Reset the stuck detection of a mech that does not walk."""
    memory.pace_x = memory.pace_y = memory.stuck = 0.0
    memory.anchor, memory.anchor_x, memory.anchor_y = memory.clock, memory.x, memory.y


@kernel
def update_chart(
    knowledge: Knowledge, observation: Any, memory: Row, scratch: Scratch, half: float, count: int
) -> None:
    """Update the chart if due. Write the columns that are impassable from here, and those to avoid."""
    moved = abs(memory.x - memory.noted_x) + abs(memory.y - memory.noted_y)
    if moved >= NOTE_METRES or memory.clock - memory.noted >= NOTE_SECONDS:
        memory.noted, memory.noted_x, memory.noted_y = memory.clock, memory.x, memory.y
        shift_window(memory, integer(knowledge.rules[0].map_size))
        store_terrain(knowledge, observation, memory)
    mark(memory, scratch, half, count, memory.stuck >= CROWD_SECONDS)
    chart, level = memory.chart, min(ground_level(knowledge, observation) + 2, WALL)
    for row in range(SIDE):
        scratch.walls[row] = at_least(chart, row, level)
        scratch.rough[row] = scratch.walls[row] | scratch.bodies[row] | chart[row, BURNS] | chart[row, SLOWS]


@kernel
def ground_level(knowledge: Knowledge, observation: Any) -> int:
    """Height of the feet above the ground of the map, in whole metres."""
    level: int = math.floor(own(observation, Self.HEIGHT) * knowledge.rules[0].map_height + SLACK)
    return level


@kernel
def note_progress(knowledge: Knowledge, observation: Any, memory: Row, half: float, count: int) -> None:
    """Measure how long the mech has been stuck, and react to it."""
    pace = memory.pace_x**2 + memory.pace_y**2
    helpless = own(observation, Self.SHUTDOWN) > 0.0 or own(observation, Self.FALLEN) > 0.0
    progress = memory.moved_x * memory.pace_x + memory.moved_y * memory.pace_y
    if helpless or memory.jump > 0.0 or progress >= STUCK_SHARE * pace:
        memory.stuck = 0.0
    else:
        memory.stuck += knowledge.rules[0].decision_seconds
    if memory.stuck >= BUMP_SECONDS and count == 0:
        mark_walls(memory, half)
    if memory.walking_randomly and (helpless or memory.clock >= memory.until):
        memory.walking_randomly = 0
        memory.anchor = memory.clock
    away = max(abs(memory.x - memory.anchor_x), abs(memory.y - memory.anchor_y))
    left = max(abs(memory.goal_x - memory.x), abs(memory.goal_y - memory.y))
    if helpless or away > LOST_METRES or left < NEAR:
        memory.anchor, memory.anchor_x, memory.anchor_y = memory.clock, memory.x, memory.y
    elif memory.clock - memory.anchor > LOST_SECONDS:
        start_random_walk(memory)


@kernel
def start_random_walk(memory: Row) -> None:
    """Clear the chart and start to walk in a random direction."""
    memory.tries += 1
    steps = integer(rng.random_below(memory.seed, memory.tries, 0, WALK, DIRECTIONS))
    memory.random_x, memory.random_y = turned(1.0, 0.0, steps)
    memory.walking_randomly = 1
    memory.until = memory.clock + WALK_SECONDS + WALK_INCREASE * min(memory.tries, MAX_TRIES)
    memory.has_bend, memory.jump = 0, 0.0
    memory.anchor = memory.clock
    memory.chart[:, :] = 0
    memory.noted = -NOTE_SECONDS


@kernel
def mark_walls(memory: Row, half: float) -> None:
    """Mark as walls the columns that blocked the mech."""
    x, y = memory.x - memory.origin_x, memory.y - memory.origin_y
    for axis in range(2):
        ahead, aside = (x, y) if axis == 0 else (y, x)
        pace, moved = (memory.pace_x, memory.moved_x) if axis == 0 else (memory.pace_y, memory.moved_y)
        if abs(pace) < ROOM or abs(moved) > SLACK:
            continue
        front = math.floor(ahead + half + ROOM) if pace > 0.0 else math.floor(ahead - half - ROOM)
        if not 0 <= front < SIDE:
            continue
        first, last = math.floor(aside - half + SLACK), math.floor(aside + half - SLACK)
        for k in range(max(0, first), min(SIDE - 1, last) + 1):
            row, column = (k, front) if axis == 0 else (front, k)
            for plane in range(BURNS):
                memory.chart[row, plane] |= 1 << column


@kernel
def choose_waypoint(
    knowledge: Knowledge, observation: Any, memory: Row, scratch: Scratch, plan: Row, half: float, top_speed: float
) -> tuple[float, float, bool]:
    """The point to walk straight to, and whether the path there is known to be free of walls."""
    if memory.jump > 0.0 and continue_jump(knowledge, observation, memory):
        return memory.bend_x, memory.bend_y, True
    if memory.walking_randomly:
        return memory.x + NEAR * memory.random_x, memory.y + NEAR * memory.random_y, False
    dx, dy = memory.goal_x - memory.x, memory.goal_y - memory.y
    distance = math.sqrt(dx * dx + dy * dy)
    if math.sqrt((memory.goal_x - memory.end_x) ** 2 + (memory.goal_y - memory.end_y) ** 2) > 1.0 + 0.25 * distance:
        memory.end_x, memory.end_y, memory.settled = memory.goal_x, memory.goal_y, memory.clock
        memory.has_bend = 0
    if is_free(scratch.rough, memory, half + ROOM, dx, dy):
        memory.has_bend = 0
        return memory.goal_x, memory.goal_y, True
    if memory.has_bend and memory.stuck < CROWD_SECONDS:
        to_x, to_y = memory.bend_x - memory.x, memory.bend_y - memory.y
        left = math.sqrt(to_x * to_x + to_y * to_y)
        if left > max(2.0 * ARRIVED, 0.5 * top_speed * knowledge.rules[0].decision_seconds) and is_free(
            scratch.walls, memory, half - SLACK, to_x, to_y
        ):
            return memory.bend_x, memory.bend_y, True
    memory.has_bend = 0
    if distance >= NEAR or memory.clock - memory.settled >= SLIDE_SECONDS:
        find_path(knowledge, observation, memory, scratch, plan, half)
    if memory.has_bend:
        return memory.bend_x, memory.bend_y, True
    return memory.goal_x, memory.goal_y, False


@kernel
def find_path(knowledge: Knowledge, observation: Any, memory: Row, scratch: Scratch, plan: Row, half: float) -> None:
    """Find a path to the goal, or to the nearest reachable place, and store its first bend."""
    size = integer(math.ceil(2.0 * half - SLACK))
    column, row = place(memory.x - memory.origin_x, half, size), place(memory.y - memory.origin_y, half, size)
    to_x, to_y = goal_in_chart(memory, half)
    to_column, to_row = place(to_x, half, size), place(to_y, half, size)
    straight = math.sqrt((column - to_column) ** 2 + (row - to_row) ** 2)
    jumps = can_jump(knowledge, observation, memory, plan)
    climbs = ground_level(knowledge, observation) > 1
    metres = kinds = 0
    for _ in range(2):
        kinds = build_moves(memory, scratch, integer(knowledge.rules[0].map_size), size, climbs)
        scratch.leave[0, row + 1] |= 1 << column
        metres, blind = search(scratch, column, row, to_column, to_row, kinds, jumps and climbs)
        found = metres > 0 and blind == 0
        if climbs or (found and not (jumps and metres > DETOUR_WORTH * straight + DETOUR_METRES)):
            break
        climbs = True
    if metres > 0:
        length, jumped = trace_path(scratch, metres, column, row, to_column, to_row, kinds, jumps and climbs)
        store_bend(memory, scratch, half, size, length, jumped)


@kernel
def place(low: float, half: float, size: int) -> int:
    """The place in the chart, along an axis, of a box centred at `low`; the nearer one if it overlaps two."""
    first = math.floor(low - half + 0.1 * SLACK)
    if math.floor(low + half - 0.1 * SLACK) - size + 1 > first and low - 0.5 * size - first > 0.5:
        first += 1
    return int(min(max(first, 0), SIDE - size))


@kernel
def goal_in_chart(memory: Row, half: float) -> tuple[float, float]:
    """The goal in chart coordinates, or the point where the straight line to it leaves the chart."""
    x, y = memory.x - memory.origin_x, memory.y - memory.origin_y
    dx, dy = memory.goal_x - memory.x, memory.goal_y - memory.y
    share = 1.0
    for axis in range(2):
        start, length = (x, dx) if axis == 0 else (y, dy)
        if start + length > SIDE - half:
            share = min(share, (SIDE - half - start) / length)
        elif start + length < half:
            share = min(share, (half - start) / length)
    return x + share * dx, y + share * dy


@kernel
def store_bend(memory: Row, scratch: Scratch, half: float, size: int, length: int, jumped: bool) -> None:
    """Store the farthest place of a path that is reachable in a straight line; start a jump that begins the path."""
    memory.has_bend, memory.bend_x, memory.bend_y = 1, memory.x, memory.y
    i = 0
    while i < length:
        x = memory.origin_x + scratch.path[i, 0] + 0.5 * size
        y = memory.origin_y + scratch.path[i, 1] + 0.5 * size
        if i > 1 and not is_free(scratch.rough, memory, half + ROOM, x - memory.x, y - memory.y):
            break
        if i == 1 and not is_free(scratch.walls, memory, half - SLACK, x - memory.x, y - memory.y):
            break
        memory.bend_x, memory.bend_y = x, y
        i += 1 if i < DENSE else STRIDE
    if jumped and length == 1:
        top = 0
        for level in range(1, WALL):
            top += (scratch.planes[level, scratch.path[0, 1] + 1] >> scratch.path[0, 0]) & 1
        memory.jump = float(top)
        memory.until = memory.clock + JUMP_SECONDS


@kernel
def can_jump(knowledge: Knowledge, observation: Any, memory: Row, plan: Row) -> bool:
    """Whether the mech can jump JUMP metres high now without overheating."""
    rules, mech_class = knowledge.rules[0], knowledge.classes[plan.mech_class]
    rise = mech_class.jet_acceleration - rules.gravity
    if rise <= 0.0 or memory.clock < memory.no_jump_until or own(observation, Self.ON_GROUND) <= 0.0:
        return False
    heat = rules.jet_heat * math.sqrt(2.0 * (JUMP + JUMP_MARGIN) / rise)
    return bool(own(observation, Self.HEAT) + heat / mech_class.heat_capacity < COOL_ENOUGH)


@kernel
def continue_jump(knowledge: Knowledge, observation: Any, memory: Row) -> bool:
    """Whether a jump is still in progress. One that has landed or failed is ended."""
    feet = own(observation, Self.HEIGHT) * knowledge.rules[0].map_height
    landed = own(observation, Self.ON_GROUND) > 0.0 and feet > memory.jump - 0.5
    if not landed and memory.clock < memory.until and own(observation, Self.HEAT) < TOO_HOT:
        return True
    if not landed:
        memory.no_jump_until = memory.clock + NO_JUMP_SECONDS
    memory.jump = 0.0
    memory.has_bend = 0
    return False


@kernel
def jump(knowledge: Knowledge, observation: Any, memory: Row, action: Any) -> None:
    """Fire the jets until the feet are above the target height."""
    if own(observation, Self.HEIGHT) * knowledge.rules[0].map_height < memory.jump + JUMP_MARGIN:
        action[Action.JET] = 1.0
