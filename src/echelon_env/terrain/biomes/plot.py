"""The operations on a plot that several brushes share.

Only integers, + - x /, square roots and the generator's uniform draws go into a map: a seed gives the same voxels on
every processor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Plot


def raise_columns(plot: Plot, tops: NDArray[np.int64], material: NDArray[np.int64] | int) -> None:
    """Fill columns from the ground to their tops (H, W), cut to the greatest height, with a material's code."""
    z = np.arange(plot.max_height)[:, None, None]
    np.copyto(plot.voxels[: plot.max_height], np.asarray(material, np.uint8), where=z < tops)


def inward(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Metres (H, W) to the plot's nearest edge, 0 on it."""
    y, x = (np.minimum(axis, axis[::-1]) for axis in (np.arange(length) for length in shape))
    distance: NDArray[np.int64] = np.minimum.outer(y, x)
    return distance
