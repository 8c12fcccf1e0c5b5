import numpy as np
import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import (
    BLUE,
    DRAW,
    ELIMINATION,
    RED,
    TIME_LIMIT,
    ZONE_CONTROL,
    State,
)
from echelon_env.render import render_frame
from echelon_env.render.canvas import LIGHT
from echelon_env.render.header import header_height, outcome_text
from echelon_env.render.mechs import ARMOUR_COLOUR, HEAT_COLOUR
from echelon_env.render.palette import TEAMS, class_letters
from render.pictures import PIXELS, count, map_of, window

BLUE_RGB, RED_RGB = TEAMS[BLUE].colour, TEAMS[RED].colour


@pytest.mark.parametrize("pixels", [300, 401, 800])
def test_frame_is_an_rgb_picture_with_a_square_map(config: BattleConfig, state: State, pixels: int) -> None:
    frame = render_frame(config, state, pixels=pixels)
    assert frame.shape == (pixels + header_height(pixels), pixels, 3)
    assert frame.dtype == np.uint8


def test_frame_is_deterministic_and_does_not_change_the_state(config: BattleConfig, state: State) -> None:
    before = [array.tobytes() for array in state]
    first, second = render_frame(config, state), render_frame(config, state)
    assert np.array_equal(first, second)
    assert [array.tobytes() for array in state] == before


def test_north_is_on_top_and_east_on_the_right(config: BattleConfig, state: State) -> None:
    picture = map_of(config, state)
    scout = state.mechs[0, 4]  # blue, in the south
    assert config.blue[4] == "scout"
    assert count(window(picture, scout["x"], scout["y"], 0.5), BLUE_RGB) > 20
    half = PIXELS // 2
    assert count(picture[half:, :half], BLUE_RGB) > 500
    assert count(picture[:half], BLUE_RGB) == 0
    assert count(picture[:half, half:], RED_RGB) > 500
    assert count(picture[half:], RED_RGB) == 0


def test_wall_stands_where_its_voxels_are(config: BattleConfig, state: State) -> None:
    picture = map_of(config, state).astype(int)
    wall, ground = window(picture, 7, 44, 0.5), window(picture, 25, 38, 0.5)
    assert wall.mean() > ground.mean() + 30
    assert np.abs(window(picture, 43, 6, 0.5) - ground).max() == 0


def test_footprint_has_the_size_of_the_class(config: BattleConfig, state: State) -> None:
    picture = map_of(config, state)
    heavy, scout = state.mechs[0, 0], state.mechs[0, 4]
    areas = [count(window(picture, mech["x"], mech["y"], 2.4), BLUE_RGB) / 100 for mech in (heavy, scout)]  # m2
    assert 0.7 * 3.5**2 < areas[0] <= 3.5**2 * 1.05
    assert 0.5 * 1.2**2 < areas[1] <= 1.2**2 * 1.05


@pytest.mark.parametrize(("yaw", "dx", "dy"), [(0.0, 1, 0), (np.pi / 2, 0, 1), (-np.pi, -1, 0), (-np.pi / 2, 0, -1)])
def test_wedge_points_where_the_mech_faces(config: BattleConfig, state: State, yaw: float, dx: int, dy: int) -> None:
    mech = state.mechs[0, 2]
    mech["x"], mech["y"], mech["yaw"] = 37.0, 20.0, yaw
    picture = map_of(config, state)
    reach = 1.25 + 0.7
    light = [count(window(picture, 37 + side * reach * dx, 20 + side * reach * dy, 0.5), LIGHT) for side in (1, -1)]
    assert light[0] > 5
    assert light[1] == 0


def test_dead_mech_is_an_x_in_the_colour_of_its_team(config: BattleConfig, state: State) -> None:
    mech = state.mechs[0, 0]
    alive = count(window(map_of(config, state), mech["x"], mech["y"], 2), BLUE_RGB)
    mech["alive"] = 0
    old = count(window(map_of(config, state), mech["x"], mech["y"], 2), BLUE_RGB, 40)
    mech["died"] = 1
    fresh = count(window(map_of(config, state), mech["x"], mech["y"], 2), BLUE_RGB, 40)
    assert 5 < old < fresh < alive / 4


def test_bars_show_armour_and_heat(config: BattleConfig, state: State) -> None:
    mech = state.mechs[0, 0]
    counts = []
    for armour, heat in ((200.0, 0.0), (100.0, 65.0), (1.0, 195.0)):
        mech["armour"], mech["heat"] = armour, heat
        around = window(map_of(config, state), mech["x"], mech["y"], 3)
        counts.append((count(around, ARMOUR_COLOUR), count(around, HEAT_COLOUR)))
    assert counts[0][0] > counts[1][0] > counts[2][0]
    assert counts[0][1] == 0 < counts[1][1] < counts[2][1]


def test_shut_down_mech_is_dark_and_edged_with_heat(config: BattleConfig, state: State) -> None:
    mech = state.mechs[0, 0]
    mech["shutdown"] = 1
    around = window(map_of(config, state), mech["x"], mech["y"], 2)
    assert count(around, BLUE_RGB) == 0
    assert count(around, HEAT_COLOUR) > 50
    assert count(around, (15, 48, 94)) > 400


def test_zone_is_a_ring_in_the_colour_of_its_holder(config: BattleConfig, state: State) -> None:
    def ring(blue: float, red: float) -> tuple[int, int, int]:
        state.teams["tonnage"] = blue, red
        around = window(map_of(config, state), 25, 25, 7)
        return count(around, LIGHT, 40), count(around, BLUE_RGB, 40), count(around, RED_RGB, 40)

    empty, blue, red, contested = ring(0, 0), ring(55, 0), ring(0, 55), ring(20, 85)
    assert empty[0] > 300
    assert empty[1:] == (0, 0)
    assert blue[1] > 300 > 0 == blue[2]
    assert red[2] > 300 > 0 == red[1]
    assert contested[1] > 150 < contested[2]
    state.battles["zone_x"] = 10
    assert count(window(map_of(config, state), 31, 25, 0.5), RED_RGB, 40) == 0


def test_header_bars_grow_with_the_scores(config: BattleConfig, state: State) -> None:
    def bars() -> tuple[int, int]:
        header = render_frame(config, state, pixels=PIXELS)[: header_height(PIXELS)]
        return count(header, BLUE_RGB), count(header, RED_RGB)

    assert bars() == (0, 0)
    state.teams["score"] = 22.5, 9.0
    blue, red = bars()
    assert 1.5 * red < blue < 4 * red
    state.teams["score"] = 45.25, 9.0
    full = bars()
    assert 1.5 * blue < full[0] < 2.6 * blue
    assert full[1] == red


@pytest.mark.parametrize(
    ("winner", "reason", "text"),
    [
        (BLUE, ZONE_CONTROL, "BLUE WINS by zone control"),
        (RED, TIME_LIMIT, "RED WINS by time limit"),
        (DRAW, ELIMINATION, "DRAW by elimination"),
    ],
)
def test_banner_shows_the_outcome(config: BattleConfig, state: State, winner: int, reason: int, text: str) -> None:
    running = render_frame(config, state)
    state.battles["over"], state.battles["winner"], state.battles["reason"] = 1, winner, reason
    assert outcome_text(state, 0) == text
    changed = np.flatnonzero((render_frame(config, state) != running).any(axis=(1, 2)))
    assert len(changed) > 50
    assert changed.min() > 700


def test_mech_at_the_edge_of_the_map_keeps_its_bars(config: BattleConfig, state: State) -> None:
    mech = state.mechs[0, 0]
    mech["x"], mech["y"] = 1.75, 48.25
    assert count(map_of(config, state)[:10], ARMOUR_COLOUR) > 20


@pytest.mark.parametrize("pixels", [0, 299, 5000])
def test_size_out_of_range_is_refused(config: BattleConfig, state: State, pixels: int) -> None:
    with pytest.raises(ValueError, match=f"pixels: expected 300 to 4096, got {pixels}"):
        render_frame(config, state, pixels=pixels)


@pytest.mark.parametrize("battle", [-1, 2])
def test_unknown_battle_is_refused(config: BattleConfig, state: State, battle: int) -> None:
    with pytest.raises(IndexError, match=f"battle: expected 0 to 1, got {battle}"):
        render_frame(config, state, battle)


def test_class_letters_are_distinct(config: BattleConfig) -> None:
    catalog = config.catalog
    assert class_letters(catalog) == ("S", "L", "M", "H")
    doubled = type(catalog)(weapons=catalog.weapons, mech_classes=catalog.mech_classes * 2)
    letters = class_letters(doubled)
    assert len(set(letters)) == len(letters) == 8
    assert letters[:4] == ("S", "L", "M", "H")
