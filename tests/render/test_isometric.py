import numpy as np
import pytest
from PIL import Image

from echelon_env.config.catalog import AIR, CONCRETE, DIRT, FOLIAGE, GLASS, LAVA, REINFORCED, WATER
from echelon_env.config.scenario import make_config
from echelon_env.render.isometric import BACKDROP, SOUTH, TOP, WEST, View, isometric_picture, visible_faces
from echelon_env.terrain import Terrain, generate
from support.handmade import SIZE, fill, flat_map

PIXELS = 480
SCALE = PIXELS / (2 * SIZE)


def ground() -> Terrain:
    """Bare ground and a mast in the north-west corner, so that all pictures are equally high."""
    terrain = flat_map()
    fill(terrain, CONCRETE, (0, 1), (47, 48), (0, 12))
    return terrain


def picture_of(terrain: Terrain) -> np.ndarray:
    return np.array(isometric_picture(terrain, PIXELS)).astype(int)


def at(picture: np.ndarray, x: float, y: float, z: float = 0.0, reach: int = 2) -> np.ndarray:
    """Mean colour about a place: the picture ends one voxel below the map's nearest corner."""
    column = (x - y + SIZE) * SCALE
    row = len(picture) - SCALE - (x + y) * SCALE / 2 - z * SCALE * 1.2  # 1.2: 12 pixels of 10, before shrinking
    rows, columns = slice(round(row) - reach, round(row) + reach), slice(round(column) - reach, round(column) + reach)
    return picture[rows, columns].reshape(-1, 3).mean(axis=0)


def oracle(voxels: np.ndarray, view: View, column: int, row: int) -> tuple[int, int, int] | None:
    """The opaque voxel, or the tile on the ground, that the ray through a pixel hits first: in small steps."""
    x, y = (place[row, column] for place in view.ground())
    t = np.arange(0, 40, 0.002)[::-1]  # metres along x and y from the ground to the viewer
    z = t * view.scale / view.rise
    cell = np.stack((np.floor(x - t), np.floor(y - t), np.floor(z))).astype(int)
    size, height = voxels.shape[1], voxels.shape[0]
    inside = ((cell[:2] >= 0) & (cell[:2] < size)).all(axis=0) & (cell[2] < height)
    cx, cy, cz = cell[:, inside]
    hits = np.isin(voxels[cz, cy, cx], (CONCRETE, REINFORCED, FOLIAGE))
    if hits.any():
        first = hits.argmax()
        return int(cx[first]), int(cy[first]), int(cz[first])
    if 0 <= x < size and 0 <= y < size:
        return int(x), int(y), 0
    return None


def test_every_pixel_shows_what_a_ray_hits_first() -> None:
    rng = np.random.default_rng(5)
    voxels = rng.choice([AIR, CONCRETE, FOLIAGE, GLASS], (5, 7, 7), p=[0.75, 0.12, 0.08, 0.05]).astype(np.uint8)
    view = View(size=7, top=6, scale=8)
    candidates, faces = visible_faces(voxels, view)
    wrong = checked = 0
    for row in range(1, view.shape[0], 3):
        for column in range(1, view.shape[1], 3):
            number = faces[row, column] // 3
            voxel = (int(candidates.x[number]), int(candidates.y[number]), int(candidates.z[number]))
            wrong += (voxel if faces[row, column] >= 0 else None) != oracle(voxels, view, column, row)
            checked += 1
    assert checked > 500
    assert wrong < 0.03 * checked  # on edges, where pixels are whole and rays thin


def test_faces_of_a_cube() -> None:
    voxels = np.zeros((3, 3, 3), np.uint8)
    voxels[0, 1, 1] = CONCRETE
    view = View(size=3, top=2, scale=20)
    candidates, faces = visible_faces(voxels, view)
    column, row = (round(place) for place in view.at(1, 1, 0))  # its nearest lower corner
    cube = 3 * int(np.flatnonzero((candidates.x == 1) & (candidates.y == 1))[0])
    assert faces[row - 15, column - 5] == cube + WEST
    assert faces[row - 15, column + 5] == cube + SOUTH
    assert faces[row - view.rise - 10, column] == cube + TOP
    assert (faces // 3 == cube // 3).sum() == pytest.approx(20 * 20 + 2 * 20 * view.rise, abs=20)


@pytest.mark.parametrize(("x", "y", "across", "down"), [(4, 43, -1, 0), (43, 4, 1, 0), (43, 43, 0, -1), (4, 4, 0, 1)])
def test_north_is_at_the_upper_left_and_east_at_the_upper_right(x: int, y: int, across: int, down: int) -> None:
    plain, terrain = ground(), ground()
    fill(terrain, LAVA, (x - 1, x + 2), (y - 1, y + 2))
    changed = np.abs(picture_of(terrain) - picture_of(plain)).max(axis=-1) > 60
    rows, columns = np.nonzero(changed)
    height, width = changed.shape
    assert columns.mean() / width == pytest.approx(0.5 + 0.41 * across, abs=0.04)
    assert (height - rows.mean()) / (SIZE * SCALE) == pytest.approx(0.5 - 0.41 * down, abs=0.06)


def test_a_tower_hides_what_is_behind_it_only() -> None:
    terrain = ground()
    fill(terrain, LAVA, (12, 14), (32, 34))
    fill(terrain, LAVA, (4, 6), (24, 26))
    open_view = picture_of(terrain)
    fill(terrain, CONCRETE, (7, 11), (27, 31), (0, 10))
    hidden = picture_of(terrain)
    for place, seen in (((13, 33), False), ((5, 25), True)):
        assert at(open_view, *place)[0] > 140
        assert (at(hidden, *place)[0] > 140) == seen


def test_flat_materials_are_flat_and_walls_stand() -> None:
    for material, height in ((WATER, 0), (DIRT, 0), (CONCRETE, 1), (FOLIAGE, 1)):
        terrain = ground()
        fill(terrain, material, (10, 14), (28, 32))
        changed = np.abs(picture_of(terrain) - picture_of(ground())).max(axis=-1) > 8
        above = changed[: round(len(changed) - SCALE - (14 + 32) * SCALE / 2) - 2]
        assert above.any() == bool(height)


def test_the_west_is_in_the_sun_and_shadows_fall_to_the_south_east() -> None:
    terrain = ground()
    fill(terrain, CONCRETE, (10, 14), (28, 32), (0, 8))
    picture = picture_of(terrain)
    west, south, top = at(picture, 10, 30, 4), at(picture, 12, 28, 4), at(picture, 12, 30, 8)
    assert top.mean() > west.mean() + 15
    assert west.mean() > south.mean() + 15
    plain = picture_of(ground())
    assert at(picture, 16, 27).mean() < 0.75 * at(plain, 16, 27).mean()
    assert np.allclose(at(picture, 7, 36), at(plain, 7, 36), atol=3)


def test_no_sun_under_a_roof() -> None:
    terrain = ground()
    fill(terrain, CONCRETE, (10, 20), (22, 32), (6, 7))
    assert at(picture_of(terrain), 15, 24).mean() < 0.75 * at(picture_of(ground()), 15, 24).mean()


def test_glass_shows_what_is_behind_it_and_itself() -> None:
    terrain = ground()
    fill(terrain, LAVA, (13, 17), (32, 36))
    without = at(picture_of(terrain), 14, 33)
    fill(terrain, GLASS, (12, 13), (30, 36), (0, 4))
    behind = at(picture_of(terrain), 14, 33)
    assert behind[2] > without[2] + 20
    assert behind[0] > 1.2 * behind[2]


def test_lava_glows_and_water_does_not() -> None:
    plain = at(picture_of(ground()), 10, 30)
    for material, glows in ((LAVA, True), (WATER, False)):
        terrain = ground()
        fill(terrain, material, (11, 15), (28, 32))
        assert (at(picture_of(terrain), 10.4, 30)[0] > plain[0] + 15) == glows


def test_the_zone_and_the_spawn_places_are_marked_on_the_ground() -> None:
    picture = picture_of(ground())
    for x, y in ground().spawns.reshape(-1, 2):
        if x != y:  # else a pin stands before it
            assert at(picture, x, y, reach=1).mean() > 220
    assert at(picture, 24 + 5, 24, reach=3).mean() > at(picture, 24 + 8, 24, reach=3).mean() + 40


@pytest.mark.parametrize("scenario", ["duel-open", "company-city"])
def test_pictures_of_scenarios(scenario: str) -> None:
    terrain = generate(make_config(scenario), 1)
    picture = isometric_picture(terrain, 400)
    assert isinstance(picture, Image.Image)
    assert picture.width == 400
    assert (np.array(picture)[0] != BACKDROP).any()  # no empty rows above
