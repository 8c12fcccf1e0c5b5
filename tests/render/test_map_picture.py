from dataclasses import replace

import numpy as np
import pytest

from echelon_env.config.catalog import CONCRETE, DIRT, GLASS, LAVA, WATER
from echelon_env.config.scenario import make_config
from echelon_env.render.canvas import DARK, LIGHT
from echelon_env.render.map_picture import LANE_COLOURS, map_picture
from echelon_env.terrain import Lane, Terrain, generate
from render.pictures import count
from support.handmade import SIZE, fill, flat_map

SCALE = 10  # pixels per metre


def picture_of(terrain: Terrain) -> np.ndarray:
    return np.array(map_picture(terrain, SIZE * SCALE)).astype(int)


def around(picture: np.ndarray, x: float, y: float, metres: float) -> np.ndarray:
    row, column, reach = round((SIZE - y) * SCALE), round(x * SCALE), max(1, round(metres * SCALE))
    return picture[row - reach : row + reach, column - reach : column + reach]


def test_hazards_show_where_they_are_with_north_on_top() -> None:
    terrain = flat_map()
    fill(terrain, LAVA, (4, 10), (34, 40))  # north-west
    fill(terrain, WATER, (34, 40), (4, 10))  # south-east
    picture = picture_of(terrain)
    red, _, blue = around(picture, 7, 37, 2).reshape(-1, 3).mean(axis=0)
    assert red > 3 * blue
    red, _, blue = around(picture, 37, 7, 2).reshape(-1, 3).mean(axis=0)
    assert blue > 2 * red


def test_the_zones_ring_is_where_the_zone_is() -> None:
    picture = picture_of(flat_map())
    for dx, dy in ((5, 0), (-5, 0), (0, 5), (0, -5), (3.54, 3.54)):
        assert count(around(picture, 24 + dx, 24 + dy, 0.3), LIGHT) > 0
    for radius in (3.5, 6.5):
        assert count(around(picture, 24 + radius, 24, 0.3), LIGHT) == 0
    assert around(picture, 24, 24, 1).mean() > around(picture, 24, 36, 1).mean() + 10


def test_spawn_places_are_discs_in_one_area_and_squares_in_the_other() -> None:
    picture = picture_of(flat_map())
    for x, y in flat_map().spawns.reshape(-1, 2):
        assert count(around(picture, x, y, 0.3), LIGHT) == 36
    disc, square = (count(around(picture, place, place, 0.95), LIGHT) for place in (4, 44))
    assert square == 20**2
    assert 0.7 * square < disc < 0.85 * square
    for middle in (6, 42):  # the letters
        assert count(around(picture, middle, middle, 1), LIGHT) > 10
        assert count(around(picture, middle, middle, 1), DARK) > 10


def test_the_letter_of_an_area_with_one_place_stands_beside_it() -> None:
    terrain = replace(flat_map(), spawns=np.array([[[6.0, 6.0]], [[42.0, 42.0]]]))
    picture = picture_of(terrain)
    for middle, beside in ((6, 8.5), (42, 39.5)):
        assert count(around(picture, middle, middle, 0.5), LIGHT) == 100
        assert 10 < count(around(picture, beside, beside, 1), LIGHT) < 300


def test_lanes_are_outlined_and_distinct() -> None:
    terrain = flat_map()
    terrain.lanes[8:40, 14:18] = Lane.DIRECT
    terrain.lanes[8:40, 30:34] = Lane.FLANK
    plain, picture = picture_of(flat_map()), picture_of(terrain)
    along = {}
    for lane, x in ((Lane.DIRECT, 14), (Lane.FLANK, 30)):
        edge = picture[9 * SCALE : 39 * SCALE, x * SCALE]
        along[lane] = (np.abs(edge - LANE_COLOURS[lane]).max(axis=1) < 40).mean()
        colour = np.array(LANE_COLOURS[lane]) - 72
        assert (around(picture, x + 2, 12, 1) - around(plain, x + 2, 12, 1)).mean(axis=(0, 1)) @ colour > 0
    assert along[Lane.DIRECT] == 1
    assert 0.3 < along[Lane.FLANK] < 0.7


def test_lanes_end_at_the_zone() -> None:
    terrain = flat_map()
    terrain.lanes[22:27, :] = Lane.DIRECT
    assert np.array_equal(around(picture_of(terrain), 24, 24, 3), around(picture_of(flat_map()), 24, 24, 3))


@pytest.mark.parametrize(
    ("material", "top", "outlined"), [(CONCRETE, 2, True), (CONCRETE, 1, False), (GLASS, 4, False)]
)
def test_what_blocks_sight_at_eye_level_has_a_dark_outline(material: int, top: int, outlined: bool) -> None:
    terrain = flat_map()
    fill(terrain, material, (12, 16), (12, 16), (0, top))
    north_edge = picture_of(terrain)[(SIZE - 16) * SCALE, 13 * SCALE : 15 * SCALE]
    assert (north_edge.max() < 75) == outlined


def test_higher_is_lighter() -> None:
    terrain = flat_map()
    for x, top in ((12, 2), (18, 6), (30, 11)):
        fill(terrain, CONCRETE, (x, x + 4), (8, 12), (0, top))
    picture = picture_of(terrain)
    low, middle, high = (around(picture, x + 2, 10, 1).mean() for x in (12, 18, 30))
    assert low + 25 < middle < high - 25


def test_cleared_ground_is_unlike_bare_ground() -> None:
    terrain = flat_map()
    fill(terrain, DIRT, (10, 20), (30, 40))
    picture = picture_of(terrain)
    assert np.abs(around(picture, 15, 35, 1) - around(picture, 30, 35, 1)).mean() > 10


@pytest.mark.parametrize("pixels", [120, 300, 1000])
def test_any_map_at_any_size(pixels: int) -> None:
    for scenario in ("duel-open", "company-city"):
        assert map_picture(generate(make_config(scenario), 3), pixels).size == (pixels, pixels)
