"""Walking by what a mech observes: towards a direction, around obstacles, out of dead ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config import BattleConfig
from echelon_env.observations import EGO_SIDE, STREAMS, EgoCell, Self

Floats = NDArray[np.float32]

_EGO_MAP = STREAMS["ego_map"]
_OBSTACLES = slice(_EGO_MAP.start + EgoCell.OBSTACLE, _EGO_MAP.stop, _EGO_MAP.row_width)
_HEADINGS = 16  # candidate directions of travel, evenly spread
_PROBE_METRES = np.array([1.5, 3.0, 4.5, 6.0])  # distances at which a direction is probed
_HALF_WIDTH = 1.5  # m, half the width of the corridor that is probed
_CLIMB = 1.08  # m: one voxel is climbed, two are a wall
_STUCK_SPEED = 0.04  # of the top speed: slower than this while wanting to walk is stuck
_STUCK_SECONDS = 0.75
_DETOUR_SECONDS = 2.0


def _probe_cells(cell_metres: float) -> NDArray[np.intp]:
    """Indices into the ego map (headings, distances, 3) of the cells that each heading's corridor covers."""
    angles = np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
    forward, left = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    ahead = _PROBE_METRES[None, :, None]
    aside = np.array([-_HALF_WIDTH, 0.0, _HALF_WIDTH])[None, None, :]
    half = EGO_SIDE // 2
    row = np.clip(np.rint((ahead * forward - aside * left) / cell_metres) + half, 0, EGO_SIDE - 1)
    column = np.clip(np.rint((ahead * left + aside * forward) / cell_metres) + half, 0, EGO_SIDE - 1)
    cells: NDArray[np.intp] = (row * EGO_SIDE + column).astype(np.intp)
    return cells


@dataclass
class _Memory:
    stuck: Floats  # (R,) s of walking without getting anywhere
    detour: Floats  # (R,) s left of the present detour
    side: Floats  # (R,) -1 or 1, the side of the next detour
    walking: NDArray[np.bool_]  # (R,) whether the last decision wanted to walk


class Navigator:
    """Turns wished directions into directions that are free, row by row, keeping time in seconds.

    Parameters
    ----------
    config
        The battle's configuration: the time between two calls and the scales of the ego map.
    """

    def __init__(self, config: BattleConfig) -> None:
        self._seconds = np.float32(config.decision_seconds)
        self._cells = _probe_cells(config.sensors.terrain_cell)
        self._climb = np.float32(_CLIMB / max(mech_class.height for mech_class in config.catalog.mech_classes))
        angles = np.arange(_HEADINGS) * 2 * np.pi / _HEADINGS
        self._headings = np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
        self._memory = _remember_nothing(0)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        if mask.shape != self._memory.stuck.shape:
            self._memory = _remember_nothing(len(mask))
        self._memory.stuck[mask] = self._memory.detour[mask] = 0.0
        self._memory.side[mask] = 1.0
        self._memory.walking[mask] = False

    def steer(self, observations: Floats, forward: Floats, left: Floats) -> tuple[Floats, Floats]:
        """Throttle and strafe (R,) that lead in the wished direction; the wish's length is the wished speed."""
        wish = np.hypot(forward, left)
        self._note_progress(observations, wish > 0.1)
        turned = np.where(self._memory.detour > 0, self._memory.side, 0.0)
        forward, left = np.where(turned != 0, -turned * left, forward), np.where(turned != 0, turned * forward, left)
        obstacles = observations[:, _OBSTACLES]
        blocked: NDArray[np.bool_] = np.any(
            np.greater(obstacles, self._climb)[:, self._cells], axis=3
        )  # (R, headings, distances)
        free = np.where(blocked.any(axis=2), blocked.argmax(axis=2), len(_PROBE_METRES)) / len(_PROBE_METRES)
        # No matrix product: its last bits depend on the number of rows, and a mech's choice must not.
        agreement = forward[:, None] * self._headings[0] + left[:, None] * self._headings[1]
        best = np.argmax(agreement / np.maximum(wish, 1e-6)[:, None] + 2.0 * np.minimum(free, 0.75), axis=1)
        straight = free[np.arange(len(best)), self._nearest_heading(forward, left)] >= 0.75
        throttle = np.where(straight, forward, wish * self._headings[0, best])
        strafe = np.where(straight, left, wish * self._headings[1, best])
        return throttle.astype(np.float32), strafe.astype(np.float32)

    def _nearest_heading(self, forward: Floats, left: Floats) -> NDArray[np.intp]:
        angle = np.arctan2(left, forward) / (2 * np.pi) * _HEADINGS
        return np.rint(angle).astype(np.intp) % _HEADINGS

    def _note_progress(self, observations: Floats, walking: NDArray[np.bool_]) -> None:
        memory = self._memory
        speed = np.hypot(observations[:, Self.VELOCITY_FORWARD], observations[:, Self.VELOCITY_LEFT])
        halted = memory.walking & (speed < _STUCK_SPEED) & (observations[:, Self.SHUTDOWN] == 0)
        memory.stuck = np.where(halted, memory.stuck + self._seconds, 0.0).astype(np.float32)
        memory.detour = np.maximum(memory.detour - self._seconds, 0.0)
        stuck = memory.stuck >= _STUCK_SECONDS
        memory.side = np.where(stuck, -memory.side, memory.side)
        memory.detour = np.where(stuck, np.float32(_DETOUR_SECONDS), memory.detour)
        memory.stuck = np.where(stuck, 0.0, memory.stuck).astype(np.float32)
        memory.walking = walking


def _remember_nothing(rows: int) -> _Memory:
    return _Memory(
        np.zeros(rows, np.float32), np.zeros(rows, np.float32), np.ones(rows, np.float32), np.zeros(rows, np.bool_)
    )
