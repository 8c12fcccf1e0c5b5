"""Every pixel of a picture in parallel projection shows what its ray hits first; `test_goldens` has whole pictures."""

import numpy as np
import pytest

from echelon_env.config.catalog import AIR, CONCRETE, FOLIAGE, GLASS, REINFORCED
from echelon_env.config.scenario import make_config
from echelon_env.render.isometric import BACKDROP, View, isometric_picture, visible_faces
from echelon_env.render.map_picture import map_picture
from echelon_env.terrain import generate


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
    for row in range(1, view.shape[0], 4):
        for column in range(1, view.shape[1], 4):
            number = faces[row, column] // 3
            voxel = (int(candidates.x[number]), int(candidates.y[number]), int(candidates.z[number]))
            wrong += (voxel if faces[row, column] >= 0 else None) != oracle(voxels, view, column, row)
            checked += 1
    assert checked > 300
    assert wrong < 0.03 * checked  # on edges, where pixels are whole and rays thin


@pytest.mark.parametrize("scenario", ["duel-open", "company-city"])
def test_pictures_of_scenarios_at_any_size(scenario: str) -> None:
    terrain = generate(make_config(scenario), 1)
    picture = isometric_picture(terrain, 400)
    assert picture.width == 400
    assert (np.array(picture)[0] != BACKDROP).any()  # no empty rows above
    for pixels in (120, 300):
        assert map_picture(terrain, pixels).size == (pixels, pixels)
