"""Who controls which mechs of a batch of battles: the learner, or a policy with a role."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError
from echelon_env.engine.state import BLUE, RED

Control = Literal["pilot", "team", "all"]
POLICY_ROLES: dict[str, tuple[str, ...]] = {"pilot": ("opponent", "teammate"), "team": ("opponent",), "all": ()}
"""For each control mode, the roles of the policies that control the other mechs."""

Indices = NDArray[np.int64]


class Rows:
    """A selection of rows of the engine's arrays (B, M, ...): indices `numbers` (B, r), which may differ by battle."""

    def __init__(self, numbers: Indices) -> None:
        self.numbers = numbers
        first = int(numbers[0, 0]) if numbers.size else 0
        stop = first + numbers.shape[1]
        self._contiguous = bool((numbers == np.arange(first, stop)).all())  # and the same in all battles
        self.index: tuple[Any, Any] = np.arange(len(numbers))[:, None], numbers
        """Index of the rows in an array (B, M, ...)."""
        if self._contiguous:
            self.index = slice(None), slice(first, stop)  # much faster

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of the rows (B, r, ...) of an array (B, M, ...)."""
        rows: NDArray[Any] = array[self.index]
        return rows.copy() if self._contiguous else rows


class Assignment:
    """The mechs of the learner and of each policy, and the places of their observations.

    `control` and `pilot` are those of `ControlledBattles`, `side` (B,) int64 are the learner's teams. Raises
    `ConfigError` for a pilot that is not in a roster, and for different sides with rosters of different sizes.
    """

    def __init__(self, config: BattleConfig, control: Control, pilot: int, side: Indices) -> None:
        self.side = side
        self.own, self.others = _rows(config, control, pilot, side)
        self.parts: dict[str, slice] = {}
        """By role: the part of the `ObservationRows` that has a policy's mechs; the learner's are the first rows."""
        self.places = np.zeros((len(side), config.num_mechs), np.int64)
        """(B, M) int64, see `ObservationRows`: the learner's mechs, then those of each policy."""
        first = 0
        for role, rows in {"": self.own, **self.others}.items():
            count = rows.numbers.size
            self.places[rows.index] = first + np.arange(count).reshape(rows.numbers.shape)
            if role:
                self.parts[role] = slice(first, first + count)
            first += count


def _rows(config: BattleConfig, control: Control, pilot: int, side: Indices) -> tuple[Rows, dict[str, Rows]]:
    """The rows of the learner, and those of each policy by role."""
    blue, red = np.arange(len(config.blue)), len(config.blue) + np.arange(len(config.red))
    if control == "all":
        return Rows(np.tile(np.concatenate([blue, red]), (len(side), 1))), {}
    if len(blue) != len(red) and len(np.unique(side)) > 1:
        raise ConfigError(f"side: teams of {len(blue)} and {len(red)} mechs need the same side in every battle")
    team = np.array([(blue, red)[own] for own in side])
    enemies = np.array([(red, blue)[own] for own in side])
    if control == "team":
        return Rows(team), {"opponent": Rows(enemies)}
    if pilot >= team.shape[1]:
        raise ConfigError(f"pilot: expected a place in a roster of {team.shape[1]}, got {pilot}")
    mates = np.delete(team, pilot, axis=1)
    return Rows(team[:, pilot : pilot + 1]), {"opponent": Rows(enemies), "teammate": Rows(mates)}


def check_sides(side: ArrayLike, count: int) -> Indices:
    """The sides (count,) int64 of one for all, or one for each battle. Raises `ConfigError`."""
    sides = np.asarray(side)
    if sides.shape not in ((), (count,)) or not np.isin(sides, (BLUE, RED)).all():
        raise ConfigError(f"side: expected 0 or 1, or ({count},) of them, got {side!r}")
    return np.broadcast_to(sides, (count,)).astype(np.int64)
