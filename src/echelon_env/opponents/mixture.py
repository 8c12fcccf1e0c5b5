"""Mixtures of scripted levels: a level is drawn for every battle by weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import check_seed, nearest_name
from echelon_env.layout.observations import STREAMS, Objective, Self
from echelon_env.opponents.policy import check_mask, check_observations
from echelon_env.opponents.scripted import ScriptedRows
from echelon_env.opponents.skill import LEVELS
from echelon_env.storage.arrays import Kind

Floats = NDArray[np.float32]

UNDRAWN = -1
_NAMES = np.array([*LEVELS, ""])  # by index of a level, and of none
_RADIUS = STREAMS["objective"].start + Objective.RADIUS
_MAP = STREAMS["battle_map"].part


class Mixture:
    """A policy that plays each battle at one level, drawn at the start of the battle.

    All mechs of a team play at the same level without communication: each draws it from the seed, the number of battles
    that it has started, and the map and zone, which its whole team observes at the start. So rows with the same map and
    the same number of battles have the same level. A row's actions depend only on its own observations.

    Parameters
    ----------
    weights
        Levels and their relative frequencies.
    seed
        Seed of the drawn levels and of all random choices.
    config
        The battle's configuration.

    Raises
    ------
    ValueError
        For an unknown level, with the nearest valid name, for weights that are not finite, negative or all zero, and
        for a seed that is not an integer in [0, 2**64).

    >>> mixture = Mixture({"novice": 3, "expert": 1}, 0, BattleConfig())
    >>> mixture.weights = {"novice": 1, "expert": 1}
    """

    def __init__(self, weights: Mapping[str, float], seed: int, config: BattleConfig) -> None:
        self.weights = weights
        self.seed = check_seed(seed)
        self._rows = ScriptedRows(self.seed, config)
        self._allocate(0)

    def __repr__(self) -> str:
        return f"Mixture({dict(self.weights)}, seed={self.seed})"

    @property
    def weights(self) -> Mapping[str, float]:
        """Levels and their weights; they can be set at any time and apply to battles that start afterwards."""
        return MappingProxyType(self._weights)

    @weights.setter
    def weights(self, weights: Mapping[str, float]) -> None:
        checked = _check_weights(weights)
        self._weights = checked
        totals = np.cumsum([checked.get(level, 0.0) for level in LEVELS])
        self._shares = totals / totals[-1]

    @property
    def levels(self) -> NDArray[np.str_]:
        """(R,): the level of each row's battle; empty before its first decision."""
        names: NDArray[np.str_] = _NAMES[self._level]
        return names

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true, except for their number of battles.

        Raises ValueError for an invalid mask, see `check_mask`.
        """
        mask = check_mask(mask, len(self._level))
        if len(mask) != len(self._level):
            self._allocate(len(mask))
        self._level[mask] = UNDRAWN

    def restart(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true, including their number of battles.

        Raises ValueError as `reset` does.
        """
        self.reset(mask)
        self._battles[mask] = 0

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32.

        Raises ValueError for another shape, dtype or number of rows.
        """
        check_observations(observations, len(self._level))
        if len(observations) != len(self._level):
            self._allocate(len(observations))
        rows = np.ascontiguousarray(observations, np.float32)
        self._draw_levels(rows)
        return self._rows.act(rows, self._level)

    def _allocate(self, rows: int) -> None:
        self._level = np.full(rows, UNDRAWN, np.int64)  # (R,) index of `LEVELS`
        self._battles = np.zeros(rows, np.int64)  # (R,) battles
        self._rows.allocate(rows)

    def _draw_levels(self, observations: Floats) -> None:
        starts = (observations[:, Self.ALIVE] > 0.0) & (self._level == UNDRAWN)
        for r in np.flatnonzero(starts):
            self._battles[r] += 1
            shared = observations[r, _RADIUS].tobytes() + observations[r, _MAP].tobytes()
            key = self.seed.to_bytes(8, "little") + int(self._battles[r]).to_bytes(8, "little")
            bits = int.from_bytes(hashlib.blake2b(key + shared, digest_size=8).digest(), "little")
            self._level[r] = np.searchsorted(self._shares, (bits >> 11) / 2.0**53, side="right")
        self._rows.clear(starts)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`; the current weights are part of the state."""
        return {
            "weights": np.array([self._weights.get(level, 0.0) for level in LEVELS]),
            "level": self._level.copy(),
            "battles": self._battles.copy(),
            **self._rows.state_arrays(),
        }

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, also for the state of a policy with another seed."""
        further: dict[str, Kind] = {
            "weights": ((len(LEVELS),), np.float64),
            "level": ((rows,), np.int64),
            "battles": ((rows,), np.int64),
        }
        self._rows.check_state(repr(self), arrays, rows, further)
        level, battles = arrays["level"], arrays["battles"]
        if ((level < UNDRAWN) | (level >= len(LEVELS))).any() or (battles < 0).any():
            raise ValueError(
                f"state of {self!r}: expected levels from {UNDRAWN} to {len(LEVELS) - 1} and counts of battles from 0, "
                f"got {level} and {battles}"
            )
        weights = dict(zip(LEVELS, arrays["weights"].tolist(), strict=True))
        self.weights = {level: weight for level, weight in weights.items() if weight != 0.0}
        self._level, self._battles = level.copy(), battles.copy()
        self._rows.restore_arrays(arrays)


def _check_weights(weights: Any) -> dict[str, float]:
    if not isinstance(weights, Mapping) or not weights:
        raise ValueError(f"weights: expected a mapping of levels to numbers, got {weights!r}")
    for level, weight in weights.items():
        if level not in LEVELS:
            raise ValueError(f"unknown opponent {level!r}{nearest_name(str(level), LEVELS)}")
        accepted = (int, float, np.integer, np.floating)
        if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, accepted) or not 0.0 <= weight < math.inf:
            raise ValueError(f"weights: expected a finite number of at least 0 for {level!r}, got {weight!r}")
    checked = {level: float(weight) for level, weight in weights.items()}
    if not 0.0 < sum(checked.values()) < math.inf:
        raise ValueError(f"weights: expected a finite sum above 0, got {dict(weights)}")
    return checked
