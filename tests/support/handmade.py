"""Handmade maps."""

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.scenario import make_config
from echelon_env.terrain import Terrain

SIZE = 48
WIDTH = 2.5
"""m, width of the mechs of the map."""


def flat_map() -> Terrain:
    """Bare ground: area A in the south-west, area B in the north-east, the zone of 5 m in the middle, no lanes.

    Each area has four places, 4 m apart, about (6, 6) and (42, 42).
    """
    around = np.array([(-2, -2), (2, -2), (-2, 2), (2, 2)], float)
    return Terrain(
        config=make_config("duel", terrain={"size": SIZE, "height": 12}).map_config,
        seed=0,
        voxels=np.zeros((12, SIZE, SIZE), np.uint8),
        spawns=np.stack((around + 6, around + SIZE - 6)),
        zone_x=SIZE / 2,
        zone_y=SIZE / 2,
        zone_radius=5.0,
        lanes=np.zeros((SIZE, SIZE), np.uint8),
        biomes=("barrens",) * 4,
    )


def fill(
    terrain: Terrain, material: int, x: tuple[int, int], y: tuple[int, int], z: tuple[int, int] = (0, 1)
) -> NDArray[np.uint8]:
    """Fill a box of whole metres, ends not included, and return the map's voxels."""
    terrain.voxels[slice(*z), slice(*y), slice(*x)] = material
    return terrain.voxels
