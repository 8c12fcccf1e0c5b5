import numpy as np
import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import WRECK
from echelon_env.engine.state import BLUE, ECCM, ECM, RED, SILENT, State
from echelon_env.render.canvas import FIRE, LIGHT
from echelon_env.render.marks import RING, SUPPRESSED
from echelon_env.render.palette import TEAMS
from render.pictures import changes, count, map_of, window

BLUE_RGB, RED_RGB = TEAMS[BLUE].colour, TEAMS[RED].colour


@pytest.fixture
def heavy(state: State) -> np.void:
    """Blue's heavy alone in the south-east."""
    mech = state.mechs[0, 0]
    mech["x"], mech["y"] = 40.0, 20.0
    return mech


def test_painted_mech_has_brackets_of_the_painting_team(config: BattleConfig, state: State, heavy: np.void) -> None:
    plain = map_of(config, state)
    assert count(window(plain, 40, 20, 3), RED_RGB) == 0
    state.paint[0, 1, 0]["ticks"] = 5  # red's pack
    around = window(map_of(config, state), 40, 20, 3.2)
    assert count(around, RED_RGB, 40) > 30
    corner, side = window(map_of(config, state), 37.8, 17.8, 0.6), window(map_of(config, state), 37.8, 20, 0.4)
    assert count(corner, RED_RGB, 40) > 5
    assert count(side, RED_RGB, 40) == 0
    state.paint[0, 1, 0]["ticks"] = 0
    assert np.array_equal(map_of(config, state), plain)


def test_dead_mechs_carry_no_marks(config: BattleConfig, state: State, heavy: np.void) -> None:
    heavy["alive"] = 0
    plain = map_of(config, state)
    heavy["radiates"], heavy["suppressed"], state.paint[0, 1, 0]["ticks"] = ECM, 5, 5
    assert np.array_equal(map_of(config, state), plain)


@pytest.mark.parametrize("radiates", [ECM, ECCM])
def test_radiating_mech_has_a_dashed_ring_with_its_name(
    config: BattleConfig, state: State, heavy: np.void, radiates: int
) -> None:
    plain = map_of(config, state)
    heavy["radiates"] = radiates
    picture = map_of(config, state)
    turns = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    scale = len(picture) / 50
    rows = np.rint(len(picture) - (20 + RING * np.sin(turns)) * scale).astype(int)
    columns = np.rint((40 + RING * np.cos(turns)) * scale).astype(int)
    differ = (picture[rows, columns] != plain[rows, columns]).any(axis=-1)
    assert 0.35 < differ.mean() < 0.85
    assert count(window(picture, 40, 20 - RING - 0.7, 0.6), LIGHT, 60) > 3  # letters
    heavy["shutdown"] = 1
    dark = map_of(config, state)
    heavy["radiates"] = SILENT
    assert np.array_equal(map_of(config, state), dark)


def test_ecm_and_eccm_differ(config: BattleConfig, state: State, heavy: np.void) -> None:
    heavy["radiates"] = ECM
    ecm = map_of(config, state)
    heavy["radiates"] = ECCM
    assert not np.array_equal(map_of(config, state), ecm)


def test_fallen_mech_is_tilted_with_its_letter_rotated(config: BattleConfig, state: State, heavy: np.void) -> None:
    plain = map_of(config, state)
    heavy["fallen"] = 20
    picture = map_of(config, state)
    standing, lying = (window(p, 40 + 1.6, 20 - 1.6, 0.15) for p in (plain, picture))
    assert count(standing, BLUE_RGB) == standing[..., 0].size
    assert count(lying, BLUE_RGB) == 0  # a corner of the box has turned away
    letters = [(window(p, 40, 20, 0.7) > 200).all(axis=-1) for p in (plain, picture)]
    assert not np.array_equal(*letters)
    assert all(letter.sum() > 20 for letter in letters)


def test_legged_and_suppressed_mechs_have_signs_under_the_box(
    config: BattleConfig, state: State, heavy: np.void
) -> None:
    heavy["legs"] = 50
    plain = map_of(config, state)
    heavy["suppressed"] = 4
    suppressed = map_of(config, state)
    assert count(window(suppressed, 40.9, 17.7, 0.7), SUPPRESSED, 40) > 5
    assert changes(plain, suppressed)[0] > 40
    heavy["suppressed"], heavy["legs"] = 0, 0
    legged = map_of(config, state)
    assert count(window(legged, 39.1, 17.7, 0.7), LIGHT, 40) > 5
    assert changes(plain, legged)[1] < 40


def test_dead_mech_stays_marked_on_its_wreck(config: BattleConfig, state: State, heavy: np.void) -> None:
    heavy["alive"] = 0
    state.voxels[0, :2, 19:22, 39:42] = WRECK
    picture = map_of(config, state)
    assert 10 < count(window(picture, 40, 20, 1), BLUE_RGB, 40) < 100
    assert (window(picture, 40, 20, 1).min(axis=-1) > 130).sum() > 10  # its pale edge, distinct from the dark wreck
    assert count(window(picture, 40, 20, 3), FIRE, 60) == 0


def test_death_is_a_burst(config: BattleConfig, state: State, heavy: np.void) -> None:
    heavy["alive"] = 0
    old = map_of(config, state)
    heavy["died"] = 1
    left, right, _ = changes(old, map_of(config, state))
    assert right - left > 3
    red, green, blue = window(map_of(config, state), 41.3, 20, 0.3).reshape(-1, 3).mean(axis=0)
    assert red > 1.2 * green > 1.2 * blue
