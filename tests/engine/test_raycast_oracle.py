import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from echelon_env.engine.kernels import entry_point
from echelon_env.engine.raycast import (
    BEDROCK,
    NEVER,
    OUTSIDE,
    first_obstacle,
    line_is_clear,
)
from echelon_env.engine.tables import build_tables
from echelon_env.engine.voxels import pack_blocks
from oracles import raycast as oracle
from oracles.configs import small_config
from oracles.situations import rough_voxels
from oracles.world import COLUMN, blocks_of, columns_of, material_mask

SIZE, HEIGHT = 20, 8
RULES = build_tables(small_config()).rules
RULES["map_size"], RULES["map_height"] = SIZE, HEIGHT


@entry_point
def _look(blocking, blocks, starts, ends, clear):
    for i in range(starts.shape[0]):
        x0, y0, z0 = starts[i, 0], starts[i, 1], starts[i, 2]
        x1, y1, z1 = ends[i, 0], ends[i, 1], ends[i, 2]
        clear[i] = line_is_clear(blocking, blocks, x0, y0, z0, x1, y1, z1)


@entry_point
def _cast(opaque, solid, rules, starts, ends, parameters, obstacles):
    for i in range(starts.shape[0]):
        x0, y0, z0 = starts[i, 0], starts[i, 1], starts[i, 2]
        x1, y1, z1 = ends[i, 0], ends[i, 1], ends[i, 2]
        parameters[i], obstacles[i] = first_obstacle(opaque, solid, rules[0], x0, y0, z0, x1, y1, z1)


@entry_point
def _pack(opaque, solid, hazard, blocks):
    pack_blocks(opaque, solid, hazard, blocks)


def sees(columns, starts, ends, by_sight=True):
    """Whether the lines are clear. The blocks, with which the kernel skips columns, change nothing."""
    clear, plain = np.zeros(len(starts), np.bool_), np.zeros(len(starts), np.bool_)
    blocking = columns["opaque" if by_sight else "solid"].copy()
    _look(blocking, blocks_of(columns), starts, ends, clear)
    full = np.full_like(blocks_of(columns), 2**32 - 1)  # every block may block: all columns are looked at
    _look(blocking, full, starts, ends, plain)
    np.testing.assert_array_equal(clear, plain)
    return clear


def strikes(columns, starts, ends):
    """Parameters (infinity if nothing is hit) and obstacles: a voxel's flat index, BEDROCK or OUTSIDE."""
    parameters, obstacles = np.zeros(len(starts)), np.zeros(len(starts), np.int64)
    _cast(columns["opaque"].copy(), columns["solid"].copy(), RULES, starts, ends, parameters, obstacles)
    return np.where(parameters < NEVER, parameters, math.inf), obstacles


def terrain(rng, density=0.12):
    voxels = rough_voxels(rng, SIZE, HEIGHT, density)
    return columns_of(voxels), material_mask(voxels, "blocks_sight"), material_mask(voxels, "blocks_movement")


def segments(rng, count, grid=None):
    """Starts and ends on the map, short and long; some parallel to an axis or a plane, optionally on a lattice."""
    extent = np.array([SIZE, SIZE, HEIGHT], float)
    starts = rng.uniform(0, 1, (count, 3)) * extent
    lengths = rng.choice([0.5, 2.0, 8.0, 20.0], (count, 1))
    ends = starts + rng.normal(0, 1, (count, 3)) * lengths
    ends = np.where(rng.random((count, 3)) < 0.15, starts, ends)
    ends = np.clip(ends, 0, np.nextafter(extent, 0))
    if grid:
        starts, ends = np.floor(starts * grid) / grid, np.floor(ends * grid) / grid
    apart = (starts != ends).any(axis=1)
    return starts[apart], ends[apart]


@pytest.mark.parametrize("by_sight", [False, True])
def test_clear_lines_in_general_position(by_sight):
    rng = np.random.default_rng(0)
    blocked = 0
    for _ in range(8):
        columns, opaque, solid = terrain(rng)
        starts, ends = segments(rng, 150)
        clear = sees(columns, starts, ends, by_sight)
        for start, end, got in zip(starts.tolist(), ends.tolist(), clear, strict=True):
            expected = oracle.line_of_sight(opaque if by_sight else solid, start, end, Fraction)
            assert got == expected, (start, end)
            blocked += not expected
    assert blocked > 200


def walk(opaque, start, end):
    """The line of sight in floats, column by column. If it crosses both axes at once, y comes first."""
    (x0, y0, z0), (x1, y1, z1) = start, end
    cell, last, delta = [math.floor(x0), math.floor(y0)], [math.floor(x1), math.floor(y1)], (x1 - x0, y1 - y0)
    z_in = z0
    while True:
        out = [
            2.0 if cell[axis] == last[axis] else (cell[axis] + (delta[axis] > 0) - start[axis]) / delta[axis]
            for axis in range(2)
        ]
        z_out = z1 if cell == last else z0 + (z1 - z0) * min(out)
        for z in range(math.floor(min(z_in, z_out)), math.floor(max(z_in, z_out)) + 1):
            if opaque[z, cell[1], cell[0]] and (*cell, z) not in (
                (math.floor(x0), math.floor(y0), math.floor(z0)), (math.floor(x1), math.floor(y1), math.floor(z1)),
            ):  # fmt: skip
                return False
        if cell == last:
            return True
        axis = 0 if out[0] < out[1] else 1
        cell[axis] += 1 if delta[axis] > 0 else -1
        z_in = z_out


@pytest.mark.parametrize("ulps", [0, 1])
def test_line_of_sight_equals_a_column_by_column_walk_to_the_last_bit(ulps):
    """Also on borders and corners, and a rounding error beside them."""
    rng = np.random.default_rng(ulps)
    seen = Counter()
    for _ in range(6):
        columns, opaque, _ = terrain(rng)
        starts, ends = segments(rng, 400, 2)
        for points in (starts, ends):
            nudged = np.nextafter(points, points + rng.integers(-1, 2, points.shape)) if ulps else points
            points[...] = np.clip(nudged, 0, np.nextafter([SIZE, SIZE, HEIGHT], 0))
        for start, end, got in zip(starts.tolist(), ends.tolist(), sees(columns, starts, ends), strict=True):
            assert got == walk(opaque, start, end), (start, end)
            seen[bool(got)] += 1
    assert min(seen.values()) > 200


def test_a_line_that_rounds_to_beyond_its_end_hits_the_voxel_there():
    start, end = (5.5, 3.5, 0.7), (10.0, 3.5, 2.9999999999999996)
    assert start[2] + (end[2] - start[2]) == 3.0
    voxels = np.zeros((HEIGHT, SIZE, SIZE), np.uint8)
    voxels[3, 3, 9] = 2
    assert not walk(voxels > 0, start, end)
    assert not sees(columns_of(voxels), np.array([start]), np.array([end]))[0]


def test_the_voxels_of_the_ends_do_not_block():
    columns = columns_of(np.full((HEIGHT, SIZE, SIZE), 2, np.uint8))
    starts = np.array([[3.5, 3.5, 3.5], [3.5, 3.5, 3.5], [3.5, 3.5, 3.5]])
    ends = np.array([[3.9, 3.1, 3.9], [4.5, 3.5, 3.5], [5.5, 3.5, 3.5]])
    assert sees(columns, starts, ends).tolist() == [True, True, False]


def test_first_obstacle_in_general_position():
    rng = np.random.default_rng(1)
    seen = Counter()
    for _ in range(8):
        columns, opaque, solid = terrain(rng)
        starts, ends = segments(rng, 150)
        ends = ends + rng.choice([0, 0, 3.0], ends.shape) * rng.normal(0, 1, ends.shape)  # some leave the map
        cast = zip(starts.tolist(), ends.tolist(), *strikes(columns, starts, ends), strict=True)
        for start, end, parameter, obstacle in cast:
            blocked = oracle.first_blocked(opaque | solid, start, end, Fraction)
            leaves = oracle.leaves_map((SIZE, SIZE, HEIGHT), start, end)
            assert parameter == pytest.approx(min(blocked, leaves), abs=1e-12), (start, end)
            if blocked < leaves:
                x, y, z = oracle.voxel_entered(start, end, blocked)
                assert obstacle == (z * SIZE + y) * SIZE + x, (start, end)
                seen["voxel"] += 1
            elif leaves < math.inf:
                below = end[2] < 0 and start[2] + leaves * (end[2] - start[2]) < 1e-9
                assert obstacle == (BEDROCK if below else OUTSIDE), (start, end)
                seen["bedrock" if below else "edge"] += 1
    assert min(seen[what] for what in ("voxel", "bedrock", "edge")) > 30, seen


def test_the_highest_bit_of_a_column_blocks():
    columns = np.zeros((SIZE, SIZE), COLUMN)
    columns["opaque"][5, 5] = 2**31
    starts, ends = np.array([[2.5, 5.5, 31.5], [2.5, 5.5, 30.5]]), np.array([[8.5, 5.5, 31.5], [8.5, 5.5, 30.5]])
    assert sees(columns, starts, ends).tolist() == [False, True]


@pytest.mark.parametrize("size", [20, 21, 23])
def test_blocks_collect_the_bits_of_their_columns(size):
    rng = np.random.default_rng(4)
    columns = columns_of(rough_voxels(rng, size, HEIGHT, 0.12))
    packed = np.zeros_like(blocks_of(columns))
    _pack(*(columns[name].copy() for name in COLUMN.names), packed)
    np.testing.assert_array_equal(packed, blocks_of(columns))
