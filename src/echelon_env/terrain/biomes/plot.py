"""What a brush gets and what a biome is, with the operations that several brushes share.

Only integers, + - x /, square roots and the generator's uniform draws go into a map: a seed gives the same voxels on
every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plot:
    """A rectangular part of the map, H x W columns, that a brush fills."""

    voxels: NDArray[np.uint8]  # (Z, H, W) a view of the map's material codes, all air
    open_ground: NDArray[np.bool_]  # (H, W) columns that will be cleared after painting
    max_height: int  # m, greatest height of anything that is painted

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.open_ground.shape[0], self.open_ground.shape[1]


Brush = Callable[[Plot, np.random.Generator], None]


@dataclass(frozen=True)
class Biome:
    """A kind of terrain: how it is painted, and what a map of it alone is made of.

    `shares` are the least and the greatest share of such a map's columns that hold a voxel of each material, lanes and
    zone included; of materials that are not named it has none, but for the dirt of lanes and the concrete and
    reinforced blocks in the zone.
    """

    brush: Brush
    shares: Mapping[str, tuple[float, float]]

    @property
    def summary(self) -> str:
        """What the biome is and what it teaches: the brush's docstring."""
        return " ".join((self.brush.__doc__ or "").split())


def raise_columns(plot: Plot, tops: NDArray[np.int64], material: NDArray[np.int64] | int) -> None:
    """Fill columns from the ground to their tops (H, W), cut to the greatest height, with a material's code."""
    z = np.arange(plot.max_height)[:, None, None]
    np.copyto(plot.voxels[: plot.max_height], np.asarray(material, np.uint8), where=z < tops)


def inward(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Metres (H, W) to the plot's nearest edge, 0 on it."""
    y, x = (np.minimum(axis, axis[::-1]) for axis in (np.arange(length) for length in shape))
    distance: NDArray[np.int64] = np.minimum.outer(y, x)
    return distance
