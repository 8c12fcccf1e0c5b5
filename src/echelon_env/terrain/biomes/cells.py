"""Plots split into cells of about the same size, or into lots and paths, each of which holds one random feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Metres = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """The columns of one axis and where each lies in its cell."""

    count: int
    index: NDArray[np.int64]  # (length,) the column's cell
    extent: Metres  # (length,) of the cell
    offset: Metres  # (length,) from the cell's first column
    edge: Metres  # (length,) to the nearer end of the cell, 0 on the first and the last column
    middle: Metres  # (length,) twice the distance to the cell's middle: `middle < n` are n columns, or n - 1


def split(length: int, size: int) -> Cells:
    """Split an axis of `length` metres into as many cells of at least `size` metres as fit, at least one.

    Their lengths differ by at most a metre.
    """
    count = max(1, length // size)
    ends = np.arange(1, count + 1) * length // count
    position = np.arange(length)
    index = np.searchsorted(ends, position, side="right")
    offset = position - np.concatenate(([0], ends))[index]
    extent = np.diff(ends, prepend=0)[index]
    last = extent - 1
    return Cells(count, index, extent, offset, np.minimum(offset, last - offset), np.abs(2 * offset - last))


def lots(length: int, ends: Metres, extents: Metres) -> tuple[NDArray[np.int64], Metres, Metres]:
    """Split an axis into lots that end at `ends` and are so long; what is left before each lot is a path.

    Returns three arrays (length,): the index of the lot, and the metres from its first and to its last column. On the
    path before the lot the second array is negative. The axis' end cuts the last lot.
    """
    position = np.arange(length)
    index = np.searchsorted(ends, position, side="right")
    return index, position - (ends - extents)[index], np.minimum(ends, length)[index] - 1 - position
