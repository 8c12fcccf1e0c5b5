"""Operations on a plot that several brushes share.

Brushes use only integers, + - x /, square roots and the generator's uniform draws, so that a seed gives the same voxels
on every processor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.biomes import Plot


def raise_columns(plot: Plot, tops: NDArray[np.int64], material: NDArray[np.int64] | int) -> None:
    """Fill columns with a material's code from the ground to their tops (H, W), up to the plot's greatest height."""
    z = np.arange(plot.max_height)[:, None, None]
    np.copyto(plot.voxels[: plot.max_height], np.asarray(material, np.uint8), where=z < tops)


def inward(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Metres (H, W) to the plot's nearest edge; 0 on the edge."""
    y, x = (np.minimum(axis, axis[::-1]) for axis in (np.arange(length) for length in shape))
    distance: NDArray[np.int64] = np.minimum.outer(y, x)
    return distance
