import numpy as np
import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import AIR, CONCRETE, DEBRIS, DIRT, FOLIAGE, GLASS, LAVA, WATER, WRECK
from echelon_env.engine.state import State
from echelon_env.render.palette import MATERIAL_STYLES
from echelon_env.render.terrain_layer import terrain_layer
from render.pictures import changes, count, map_of, window


def mean(picture: np.ndarray) -> np.ndarray:
    return picture.reshape(-1, 3).astype(float).mean(axis=0)


def test_foliage_is_green_and_glass_bluish(config: BattleConfig, state: State) -> None:
    state.voxels[0, :4, 15:19, 30:34] = FOLIAGE
    state.voxels[0, :4, 15:19, 40:44] = GLASS
    picture = map_of(config, state)
    red, green, blue = mean(window(picture, 32, 17, 1))
    assert green > 1.3 * max(red, blue)
    red, green, blue = mean(window(picture, 42, 17, 1))
    assert blue > green > red


def test_water_is_blue_and_lava_glows(config: BattleConfig, state: State) -> None:
    state.voxels[0, 0, 14:20, 29:35] = WATER
    state.voxels[0, 0, 14:20, 39:45] = LAVA
    picture = map_of(config, state)
    red, green, blue = mean(window(picture, 32, 17, 2))
    assert blue > 1.2 * green > 1.2 * red
    red, green, blue = mean(window(picture, 42, 17, 2))
    assert red > 1.5 * green > 1.5 * blue


@pytest.mark.parametrize(("name", "material"), [("water", WATER), ("lava", LAVA), ("debris", DEBRIS), ("wreck", WRECK)])
@pytest.mark.parametrize("pixels", [400, 800])
def test_textures_have_their_accent(config: BattleConfig, state: State, name: str, material: int, pixels: int) -> None:
    before = map_of(config, state, pixels=pixels)
    state.voxels[0, 0, 14:20, 29:35] = material
    picture = map_of(config, state, pixels=pixels)
    accent = MATERIAL_STYLES[name].accent
    share = count(window(picture, 32, 17, 2), accent) / (4 * pixels / 50) ** 2
    assert 0.01 < share < 0.5
    assert count(before, accent) == 0


def test_wreck_is_darker_than_concrete_and_striped(config: BattleConfig, state: State) -> None:
    state.voxels[0, :3, 14:20, 29:35] = WRECK
    state.voxels[0, :3, 14:20, 39:45] = CONCRETE
    picture = map_of(config, state)
    wreck, concrete = window(picture, 32, 17, 2), window(picture, 42, 17, 2)
    assert wreck.mean() < 0.6 * concrete.mean()
    assert wreck.std(axis=(0, 1)).max() > 20 > concrete.std(axis=(0, 1)).max()


def test_open_column_in_a_wall_reads_as_a_hole(config: BattleConfig, state: State) -> None:
    state.voxels[0, :5, 42:46, 4:10] = CONCRETE
    whole = map_of(config, state)
    state.voxels[0, 1:5, 42:46, 6:8] = AIR
    state.voxels[0, 0, 42:46, 6:8] = DIRT
    holed = map_of(config, state)
    left, right, _ = changes(whole, holed)
    assert 5.9 <= left < 6.1
    assert 7.9 < right < 12  # with the shadow of what is left of the wall
    assert window(holed, 7, 44, 0.5).mean() < 0.7 * window(whole, 7, 44, 0.5).mean()


def test_lower_column_in_a_wall_has_edges(config: BattleConfig, state: State) -> None:
    whole = map_of(config, state)
    state.voxels[0, 2:5, 42:46, 6:8] = AIR
    lowered = map_of(config, state)
    assert window(whole, 6, 44, 0.3).std(axis=(0, 1)).max() == 0
    assert window(lowered, 6, 44, 0.3).std(axis=(0, 1)).max() > 5


def test_hole_under_a_roof_is_hatched(config: BattleConfig, state: State) -> None:
    whole = map_of(config, state)
    state.voxels[0, 1:3, 43, 6] = AIR  # two voxels are left above
    holed = map_of(config, state)
    hole = window(holed, 6.5, 43.5, 0.4).astype(int)
    assert hole.std() > 20 > window(whole, 6.5, 43.5, 0.4).std()
    assert hole.min() < 60
    assert np.array_equal(window(holed, 8.5, 43.5, 0.4), window(whole, 8.5, 43.5, 0.4))


def test_layer_follows_the_voxels_and_is_a_fresh_picture(state: State) -> None:
    first = terrain_layer(state.voxels[0], 300)
    assert first.size == (600, 600)
    kept = first.tobytes()
    first.paste((0, 0, 0), (0, 0, 600, 600))
    assert terrain_layer(state.voxels[0], 300).tobytes() == kept
    state.voxels[0, 0, 20, 20] = WATER
    assert terrain_layer(state.voxels[0], 300).tobytes() != kept
