"""Who can walk where: the space that the largest mechs of a battle need, and whether they get from place to place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from echelon_env.catalog import MATERIALS
from echelon_env.config import BattleConfig

_BLOCKS_MOVEMENT = np.array([material.blocks_movement for material in MATERIALS])


@dataclass(frozen=True)
class Clearance:
    """The space in metres that every mech of both rosters fits in."""

    width: float  # the longest edge of a footprint
    height: float

    @property
    def walking_width(self) -> float:
        """Width of a strip that a footprint, whose edges keep to the axes, can walk along in any direction."""
        return self.width * math.sqrt(2.0)


def clearance(config: BattleConfig) -> Clearance:
    """The space that the mechs of the rosters need."""
    classes = [config.catalog.mech_classes[config.catalog.class_index(name)] for name in {*config.blue, *config.red}]
    return Clearance(
        width=max(max(mech_class.length, mech_class.width) for mech_class in classes),
        height=max(mech_class.height for mech_class in classes),
    )


def obstacles(voxels: NDArray[np.uint8], height: float) -> NDArray[np.bool_]:
    """Columns (Y, X) with something solid in the way of a mech of `height` metres that walks on the ground.

    Obstacles of 1 m count too, although a mech steps over them: what is free of obstacles is walkable for sure.
    """
    blocked: NDArray[np.bool_] = np.any(_BLOCKS_MOVEMENT[voxels[: math.ceil(height)]], axis=0)
    return blocked


def connected(blocked: NDArray[np.bool_], points: NDArray[np.float64], width: float) -> bool:
    """Whether a mech with a square footprint of `width` metres can walk between all `points` (N, 2), (x, y) in metres.

    `blocked` (Y, X) are the columns that it cannot enter. A footprint of more than n - 1 and at most n metres always
    covers n x n columns, and n x n free columns always hold it: its free places are connected exactly as the free
    windows of n x n columns are, under moves by one column.
    """
    window = math.ceil(width)
    count = np.pad(blocked, ((1, 0), (1, 0))).cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)
    inside = count[window:, window:] - count[:-window, window:] - count[window:, :-window] + count[:-window, :-window]
    labels, _ = ndimage.label(inside == 0)
    corner = np.clip(np.floor(points - width / 2).astype(np.int64), 0, len(labels) - 1)
    found = labels[corner[:, 1], corner[:, 0]]
    return bool(found[0] > 0 and (found == found[0]).all())
