"""The terrain that a mech remembers, and shortest paths through it.

The chart is a window of SIDE x SIDE columns of 1 m, on the map rotated to the own spawn. A column is a bit in the words
of its row, so that the search handles all columns of a row at once. Unseen terrain counts as open ground, as in D*
(Stentz, "Optimal and Efficient Path Planning for Partially-Known Environments", ICRA 1994): the mech finds out when it
walks there.

The place of a mech with a footprint of n x n columns is its column of lowest x and y, as in `terrain.connectivity`.
"""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.ego_map import EGO_CELL_WIDTH, EGO_MAP_AT
from echelon_env.engine.geometry import TINY
from echelon_env.engine.kernels import Row, kernel
from echelon_env.layout.observations import EGO_SIDE, EgoCell, Self
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.memory import HIGHEST, LONGEST_PATH, SIDE, WALL, WAVES, Scratch
from echelon_env.opponents.senses import own, value

BURNS, SLOWS, SEEN, STANDING = range(3, 7)  # planes of the chart after the three of the heights' bits
KEPT = 8  # m, greatest distance of the mech from the window's centre
IDLE_WAVES = 9  # after this many waves without growth a search passes through obstacles
BLIND_WAVES = 12  # at most this often
JUMP = 3  # m, height of jumps
JUMP_PERIOD = 6  # waves: cost of a jump in metres; even, so that jumps are not diagonal
BURN_PERIOD = 8  # waves: cost of a metre of burning ground


@kernel
def shift_window(memory: Row, map_size: int) -> None:
    """Move the window within the map when the mech is too far from its centre."""
    last = max(0, map_size - SIDE)
    to_x, to_y = math.floor(memory.x) - SIDE // 2, math.floor(memory.y) - SIDE // 2
    x, y = memory.origin_x, memory.origin_y
    if abs(to_x - x) > KEPT:
        x = min(max(to_x, 0), last)
    if abs(to_y - y) > KEPT:
        y = min(max(to_y, 0), last)
    right, up = x - memory.origin_x, y - memory.origin_y
    if right == 0 and up == 0:
        return
    chart = memory.chart
    for i in range(SIDE):
        row = i if up >= 0 else SIDE - 1 - i
        for plane in range(chart.shape[1]):
            word = 0
            if 0 <= row + up < SIDE and abs(right) < SIDE:
                word = chart[row + up, plane]
            chart[row, plane] = word >> right if right >= 0 else (word << -right) & ((1 << SIDE) - 1)
    memory.origin_x, memory.origin_y = x, y


@kernel
def store_terrain(knowledge: Knowledge, observation: Any, memory: Row) -> None:
    """Store the ego map in the chart."""
    rules, chart = knowledge.rules[0], memory.chart
    feet = own(observation, Self.HEIGHT) * rules.map_height
    step_x = rules.terrain_cell * own(observation, Self.HEADING_COS)
    step_y = rules.terrain_cell * own(observation, Self.HEADING_SIN)
    x, y = memory.x - memory.origin_x, memory.y - memory.origin_y
    columns, rows = min(SIDE, rules.map_size - memory.origin_x), min(SIDE, rules.map_size - memory.origin_y)
    half = EGO_SIDE // 2
    at = EGO_MAP_AT
    for forward in range(-half, half + 1):
        for left in range(-half, half + 1):
            column = math.floor(x + forward * step_x - left * step_y)
            row = math.floor(y + forward * step_y + left * step_x)
            if 0 <= column < columns and 0 <= row < rows:
                obstacle, hazard = value(observation, at + EgoCell.OBSTACLE), value(observation, at + EgoCell.HAZARD)
                level = HIGHEST
                if obstacle < 1.0:
                    level = min(max(math.floor(feet + obstacle * rules.height_scale + 0.5), 0), HIGHEST)
                enter(chart, column, row, level, hazard)
            at += EGO_CELL_WIDTH


@kernel
def enter(chart: Any, column: int, row: int, level: int, hazard: float) -> None:
    """Store a column's height in metres and hazard: above 0 it burns, below 0 it cools and slows."""
    bit = 1 << column
    ones, twos, fours = chart[row, 0], chart[row, 1], chart[row, 2]
    if ones & twos & fours & bit:
        return  # marked as a wall by `mark_walls`, and it looks the same
    code = level | (1 << BURNS if hazard > 0.0 else 0) | (1 << SLOWS if hazard < 0.0 else 0)
    if code == 0 and not (ones | twos | fours | chart[row, BURNS] | chart[row, SLOWS]) & bit:
        return  # the most frequent case: open ground, already stored
    for plane in range(SEEN):
        chart[row, plane] = (chart[row, plane] & ~bit) | (((code >> plane) & 1) << column)


@kernel
def at_least(chart: Any, row: int, level: int) -> int:
    """The columns of a row with a height of at least `level` metres, from 1 to WALL."""
    ones, twos, fours = chart[row, 0], chart[row, 1], chart[row, 2]
    low = ones & twos
    if level & 3 == 1:
        low = ones | twos
    elif level & 3 == 2:
        low = twos
    if level < 4:
        return int(low | fours)
    return int(fours & low if level > 4 else fours)


@kernel
def span(low: float, high: float) -> int:
    """The columns of the chart that an interval overlaps."""
    first, last = max(0, math.floor(low)), min(SIDE - 1, math.floor(high))
    return ((1 << (last - first + 1)) - 1) << first if first <= last else 0


@kernel
def is_free(blocked: Any, memory: Row, half: float, dx: float, dy: float) -> bool:
    """Whether a box of half edge `half` can move from the mech's position by (dx, dy) past all blocked columns."""
    x, y = memory.x - memory.origin_x, memory.y - memory.origin_y
    first, last = max(0, math.floor(min(y, y + dy) - half)), min(SIDE - 1, math.floor(max(y, y + dy) + half))
    for row in range(first, last + 1):
        enters, leaves = 0.0, 1.0  # shares of the way at which the box is in the row
        if abs(dy) > TINY:
            one, other = (row - half - y) / dy, (row + 1 + half - y) / dy
            enters, leaves = max(0.0, min(one, other)), min(1.0, max(one, other))
        one, other = x + enters * dx, x + leaves * dx
        if blocked[row] & span(min(one, other) - half, max(one, other) + half):
            return False
    return True


@kernel
def dilate_footprint(rows: Any, size: int) -> None:
    """Replace columns (SIDE + 2,) by the places whose size x size footprint contains one of them."""
    for row in range(1, SIDE + 1):
        word = rows[row]
        for _ in range(size - 1):
            word |= word >> 1
        rows[row] = word
    for _ in range(size - 1):
        for row in range(1, SIDE + 1):
            rows[row] |= rows[row + 1]


@kernel
def build_moves(memory: Row, scratch: Scratch, map_size: int, size: int, climbs: bool) -> int:
    """Write which moves between places are possible and which are slow; return the number of kinds of moves.

    A move of kind k leads from a place at least k m high to one at most k + 1 m high. Without `climbs` all places are
    below 2 m. The kind after the last is a jump, onto places at most 3 m high.
    """
    chart, planes = memory.chart, scratch.planes
    columns, rows = min(SIDE, map_size - memory.origin_x), min(SIDE, map_size - memory.origin_y)
    inside = (1 << (columns - size + 1)) - 1
    for level in range(1 if climbs else 2, WALL + 1 if climbs else 3):
        for row in range(SIDE):
            planes[level, row + 1] = at_least(chart, row, level) | scratch.bodies[row]
        dilate_footprint(planes[level], size)
    for row in range(SIDE):
        scratch.held[1, row + 1] = chart[row, BURNS]
        scratch.held[2, row + 1] = chart[row, BURNS] | chart[row, SLOWS]
    for kind in range(1, 3):
        dilate_footprint(scratch.held[kind], size)
    kinds = WALL - 1 if climbs else 1
    for row in range(1, SIDE + 1):
        within = inside if row <= rows - size + 1 else 0
        for kind in range(kinds):
            scratch.enter[kind, row] = ~planes[kind + 2, row] & within
            scratch.leave[kind, row] = planes[kind, row] & within
        scratch.leave[0, row] = within if climbs else scratch.enter[0, row]
        scratch.enter[kinds, row], scratch.leave[kinds, row] = ~planes[JUMP + 1, row] & within, within
    return kinds


@kernel
def held_index(wave: int) -> int:
    """Index in `Scratch.held` of the places that a wave does not expand, because slow and burning ones cost more."""
    if wave % BURN_PERIOD == 0:
        return 0
    return 2 if wave % 5 == 1 or wave % 5 == 3 else 1


@kernel
def expand_wave(scratch: Scratch, wave: int, kinds: int, first: int, last: int) -> bool:
    """Expand the places within wave - 1 metres of the goal by one metre; return whether there are new ones.

    They lie in the rows from `first` to `last`. Odd waves expand to all eight neighbours, by steps along x and then y,
    even waves to four. So the length of diagonal paths is correct within 6 %.
    """
    rows = last - first + 1
    old, new = scratch.waves[wave - 1, first : last + 1], scratch.waves[wave, first : last + 1]
    held, across = scratch.held[held_index(wave), first : last + 1], scratch.across[first : last + 1]
    active = scratch.active[first - 1 : last + 2]
    active[0] = active[rows + 1] = 0
    for i in range(rows):
        active[i + 1] = old[i] & ~held[i]
        across[i] = 0
    for kind in range(kinds):
        enter, leave = scratch.enter[kind, first : last + 1], scratch.leave[kind, first : last + 1]
        for i in range(rows):
            word = active[i + 1] & enter[i]
            across[i] |= ((word << 1) | (word >> 1)) & leave[i]
    for i in range(rows):
        new[i] = old[i] | across[i]
        if wave & 1:
            active[i + 1] |= across[i] & ~held[i]
    for kind in range(kinds):
        enter, leave = scratch.enter[kind, first - 1 : last + 2], scratch.leave[kind, first : last + 1]
        for i in range(rows):
            new[i] |= ((active[i] & enter[i]) | (active[i + 2] & enter[i + 2])) & leave[i]
    grown = 0
    for i in range(rows):
        grown |= new[i] ^ old[i]
    return bool(grown != 0)


@kernel
def dilate(old: Any, new: Any, first: int, last: int) -> None:
    """Write the places of rows and their four neighbours, regardless of obstacles."""
    for row in range(first, last + 1):
        new[row] = (old[row] | (old[row] << 1) | (old[row] >> 1) | old[row + 1] | old[row - 1]) & ((1 << SIDE) - 1)


@kernel
def seed_search(scratch: Scratch, column: int, row: int, kinds: int) -> int:
    """Start a search at the enterable places nearest to (column, row); return their distance in metres."""
    seed = scratch.waves[0]
    seed[:] = 0
    seed[row + 1] = 1 << column
    metres = 0
    while metres < SIDE:
        found = 0
        for r in range(1, SIDE + 1):
            found |= seed[r] & scratch.enter[kinds - 1, r]
        if found:
            break
        for r in range(1, SIDE + 1):
            scratch.across[r] = seed[r]
        dilate(scratch.across, seed, 1, SIDE)
        metres += 1
    for r in range(1, SIDE + 1):
        seed[r] &= scratch.enter[kinds - 1, r]
    return metres


@kernel
def search(
    scratch: Scratch, column: int, row: int, to_column: int, to_row: int, kinds: int, jumps: bool
) -> tuple[int, int]:
    """Length in metres of the shortest path from one place to another, and how many of them lead through obstacles.

    If the goal is unreachable, the path leads to the nearest reachable place. The length is 0 if there is no path.
    `scratch.waves` holds the search: the rows that each wave can have reached, and two empty rows on either side.
    """
    metres = seed_search(scratch, to_column, to_row, kinds)
    first, last = to_row + 1 - metres, to_row + 1 + metres
    idle = blind = 0
    for wave in range(1, WAVES):
        first, last = max(1, first - 1), min(SIDE, last + 1)
        new = scratch.waves[wave]
        new[first - 1] = new[last + 1] = new[max(0, first - 2)] = new[min(SIDE + 1, last + 2)] = 0
        scratch.blind[wave] = idle > IDLE_WAVES
        if idle > IDLE_WAVES:
            dilate(scratch.waves[wave - 1], new, first, last)
            blind += 1
            idle = IDLE_WAVES - 2
        elif expand_wave(scratch, wave, kinds + 1 if jumps and wave % JUMP_PERIOD == 0 else kinds, first, last):
            idle = 0
        else:
            idle += 1
        if first <= row + 1 <= last and (new[row + 1] >> column) & 1:
            return wave, blind
        if blind > BLIND_WAVES:
            break
    return 0, blind


@kernel
def is_move(scratch: Scratch, column: int, row: int, to_column: int, to_row: int, kinds: int) -> bool:
    """Whether a move of one of the first `kinds` kinds leads from a place to its neighbour."""
    for kind in range(kinds):
        if (scratch.leave[kind, row + 1] >> column) & (scratch.enter[kind, to_row + 1] >> to_column) & 1:
            return True
    return False


@kernel
def step_along(scratch: Scratch, wave: int, column: int, row: int, kinds: int, to_column: int, to_row: int) -> int:
    """The step (0 to 8) to a place one metre nearer to the goal by moves of the first `kinds` kinds; 4 if none.

    Of several steps it is the one nearest to (to_column, to_row) in a straight line.
    """
    best, chosen = 4 * SIDE * SIDE, 4
    for step in range(9):
        right, up = step % 3 - 1, step // 3 - 1
        x, y = column + right, row + up
        slants = right != 0 and up != 0
        if step == 4 or (slants and not wave & 1) or not 0 <= x < SIDE or not 0 <= y < SIDE:
            continue
        distance = (x - to_column) ** 2 + (y - to_row) ** 2
        reached = scratch.waves[wave - 1, y + 1] >> x
        if not scratch.blind[wave]:
            reached &= ~scratch.held[held_index(wave), y + 1] >> x
        if distance >= best or not reached & 1:
            continue
        if slants:
            free = not (scratch.held[held_index(wave), y + 1] >> column) & 1
            free = free and is_move(scratch, column, row, column, y, kinds) and is_move(scratch, column, y, x, y, kinds)
        else:
            free = is_move(scratch, column, row, x, y, kinds)
        if free or (scratch.blind[wave] and not slants):
            best, chosen = distance, step
    return chosen


@kernel
def trace_path(
    scratch: Scratch, wave: int, column: int, row: int, to_column: int, to_row: int, kinds: int, jumps: bool
) -> tuple[int, bool]:
    """Write the first places of a search's path; return their number, and whether a jump leads to the last one."""
    count = 0
    while wave > 0 and count < LONGEST_PATH:
        if not (scratch.waves[wave - 1, row + 1] >> column) & 1:
            step = step_along(scratch, wave, column, row, kinds, to_column, to_row)
            jumped = step == 4 and jumps
            if jumped:
                step = step_along(scratch, wave, column, row, kinds + 1, to_column, to_row)
            if step == 4:
                break
            column, row = column + step % 3 - 1, row + step // 3 - 1
            scratch.path[count, 0], scratch.path[count, 1] = column, row
            count += 1
            if jumped:
                return count, True
        wave -= 1
    return count, False
