"""Frames and texts of battles; `test_goldens` has what is on them."""

import re

import numpy as np
import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import BLUE, RED, State
from echelon_env.render import render_ansi, render_frame
from echelon_env.render.header import header_height
from echelon_env.render.palette import TEAMS, class_letters
from echelon_env.render.terrain_layer import terrain_layer
from render.pictures import count, window

PIXELS = 500


@pytest.mark.parametrize("pixels", [300, 401, 800])
def test_frame_is_an_rgb_picture_with_a_square_map(config: BattleConfig, state: State, pixels: int) -> None:
    frame = render_frame(config, state, pixels=pixels)
    assert frame.shape == (pixels + header_height(pixels), pixels, 3)
    assert frame.dtype == np.uint8
    assert np.array_equal(frame, render_frame(config, state, pixels=pixels))


def test_north_is_on_top_and_east_on_the_right(config: BattleConfig, state: State) -> None:
    picture = render_frame(config, state, 0, PIXELS)[header_height(PIXELS) :]
    scout, half = state.mechs[0, 4], PIXELS // 2  # blue, in the south
    blue, red = TEAMS[BLUE].colour, TEAMS[RED].colour
    assert count(window(picture, scout["x"], scout["y"], 0.5), blue) > 20
    assert count(picture[half:, :half], blue) > 500 and count(picture[:half], blue) == 0
    assert count(picture[:half, half:], red) > 500 and count(picture[half:], red) == 0


@pytest.mark.parametrize("width", [40, 80, 120])
def test_texts_have_the_width_and_north_on_top(config: BattleConfig, state: State, width: int) -> None:
    text = render_ansi(config, state, width=width)
    assert all(line.endswith("\x1b[0m") for line in text.split("\n"))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n")
    assert max(map(len, lines)) == width
    south, north = (next(row for row, line in enumerate(lines) if arrow in line) for arrow in ("H→", "H←"))
    assert north < south


def test_layer_follows_the_voxels_and_is_a_fresh_picture(state: State) -> None:
    first = terrain_layer(state.voxels[0], 300)
    kept = first.tobytes()
    first.paste((0, 0, 0), (0, 0, 600, 600))
    assert terrain_layer(state.voxels[0], 300).tobytes() == kept
    state.voxels[0, :, 20, 20] = 0
    assert terrain_layer(state.voxels[0], 300).tobytes() != kept


def test_bad_arguments_are_refused(config: BattleConfig, state: State) -> None:
    for pixels in (0, 299, 5000):
        with pytest.raises(ValueError, match=f"pixels: expected 300 to 4096, got {pixels}"):
            render_frame(config, state, pixels=pixels)
    with pytest.raises(ValueError, match="width: expected at least 40, got 39"):
        render_ansi(config, state, width=39)
    for render in (render_frame, render_ansi):
        for battle in (-1, 2):
            with pytest.raises(IndexError, match=f"battle: expected 0 to 1, got {battle}"):
                render(config, state, battle)


def test_class_letters_are_distinct(config: BattleConfig) -> None:
    catalog = config.catalog
    doubled = type(catalog)(weapons=catalog.weapons, mech_classes=catalog.mech_classes * 2)
    letters = class_letters(doubled)
    assert len(set(letters)) == len(letters) == 8
    assert letters[:4] == class_letters(catalog) == ("S", "L", "M", "H")
