"""Mixtures of opponents: one is drawn for every battle by weights."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import check_weights
from echelon_env.config.schema import ConfigError, check_seed, nearest_name
from echelon_env.config.skill import LEVELS
from echelon_env.layout.observations import STREAMS, Objective, Self
from echelon_env.opponents.policy import Policy, check_mask, check_observations, check_resumable, close_policy
from echelon_env.opponents.scripted import ScriptedRows
from echelon_env.storage.arrays import Kind, named, part_of, without

Floats = NDArray[np.float32]

UNDRAWN = -1
_RADIUS = STREAMS["objective"].start + Objective.RADIUS


class Mixture:
    """A policy that plays each battle as one opponent, drawn at the start of the battle: a level, or one of `others`.

    All mechs of a team play as the same opponent without communication: each draws it from the seed, the number of
    battles that it has started, and the zone's radius, which its whole team observes and which differs between maps. So
    rows with the same map and the same number of battles have the same opponent. A row's actions depend only on its own
    observations.

    Parameters
    ----------
    weights
        Levels and names of `others`, and their relative frequencies.
    seed
        Seed of the draws and of the levels' random choices.
    config
        The battle's configuration.
    others
        Further policies by name, such as handicapped levels; each serves this mixture only.
    num_threads
        Threads that share the mechs of the levels. Actions do not depend on it.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest valid one, for weights that are not finite, negative or all zero, for a
        seed that is not an integer in [0, 2**64), an invalid number of threads, and for a battle in which a mech class
        does not observe the zone.

    Examples
    --------
    >>> mixture = Mixture({"novice": 3, "expert": 1}, 0, BattleConfig())
    >>> mixture.weights = {"novice": 1, "expert": 1}
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        seed: int,
        config: BattleConfig,
        others: Mapping[str, Policy] = MappingProxyType({}),
        num_threads: int = 1,
    ) -> None:
        if blind := config.classes_without_zone:
            raise ConfigError(
                "a mixture draws by the zone that a whole team observes; expected one opponent, as these classes do "
                f"not observe it: {', '.join(sorted(blind))}"
            )
        self._others = dict(others)
        self._names = (*LEVELS, *self._others)
        self.weights = weights
        self.seed = check_seed(seed)
        self._rows = ScriptedRows(self.seed, config, num_threads)
        self._allocate(0)

    def __repr__(self) -> str:
        return f"Mixture({dict(self.weights)}, seed={self.seed})"

    @property
    def weights(self) -> Mapping[str, float]:
        """Names and their weights; they can be set at any time and apply to battles that start afterwards."""
        return MappingProxyType(self._weights)

    @weights.setter
    def weights(self, weights: Mapping[str, float]) -> None:
        checked = _check_weights(weights, self._names)
        self._weights = checked
        totals = np.cumsum([checked.get(name, 0.0) for name in self._names])
        self._shares = totals / totals[-1]

    @property
    def levels(self) -> NDArray[np.str_]:
        """(R,): the name of each row's opponent in its battle, empty before its first decision."""
        names: NDArray[np.str_] = np.array([*self._names, ""])[self._level]
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
        if not self._others:
            return self._rows.act(rows, self._level)
        scripted = self._level < len(LEVELS)
        seen = np.where(scripted[:, None], rows, np.float32(0.0))  # where others play, all are dead
        actions = self._rows.act(seen, np.where(scripted, self._level, 0))
        for number, policy in enumerate(self._others.values(), len(LEVELS)):
            own = self._level == number
            if own.any():
                actions[own] = policy.act(np.where(own[:, None], rows, np.float32(0.0)))[own]
        return actions

    def _allocate(self, rows: int) -> None:
        self._level = np.full(rows, UNDRAWN, np.int64)  # (R,) index of the names
        self._battles = np.zeros(rows, np.int64)  # (R,) battles
        self._rows.allocate(rows)
        for policy in self._others.values() if rows else ():
            policy.reset(np.ones(rows, np.bool_))

    def _draw_levels(self, observations: Floats) -> None:
        starts = (observations[:, Self.ALIVE] > 0.0) & (self._level == UNDRAWN)
        for r in np.flatnonzero(starts):
            self._battles[r] += 1
            key = self.seed.to_bytes(8, "little") + int(self._battles[r]).to_bytes(8, "little")
            digest = hashlib.blake2b(key + observations[r, _RADIUS].tobytes(), digest_size=8).digest()
            bits = int.from_bytes(digest, "little")
            self._level[r] = np.searchsorted(self._shares, (bits >> 11) / 2.0**53, side="right")
        self._rows.clear(starts)
        for number, policy in enumerate(self._others.values(), len(LEVELS)):
            mine = starts & (self._level == number)
            if mine.any():
                policy.reset(mine)

    def close(self) -> None:
        """Stop the threads. Later calls run in the caller's thread."""
        for policy in (self._rows, *self._others.values()):
            close_policy(policy)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`; the current weights are part of the state.

        Raises `ConfigError` if one of `others` is not resumable.
        """
        others = (check_resumable(name, policy).state_arrays() for name, policy in self._others.items())
        return {
            **{
                name: each
                for number, arrays in enumerate(others)
                for name, each in named(_other(number), arrays).items()
            },
            "weights": np.array([self._weights.get(name, 0.0) for name in self._names]),
            "level": self._level.copy(),
            "battles": self._battles.copy(),
            **self._rows.state_arrays(),
        }

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, also for the state of a policy with another seed."""
        further: dict[str, Kind] = {
            "weights": ((len(self._names),), np.float64),
            "level": ((rows,), np.int64),
            "battles": ((rows,), np.int64),
        }
        others = [check_resumable(name, policy) for name, policy in self._others.items()]
        parts = [part_of(arrays, _other(number)) for number in range(len(others))]
        arrays = without(arrays, *map(_other, range(len(others))))
        self._rows.check_state(repr(self), arrays, rows, further)
        level, battles = arrays["level"], arrays["battles"]
        if ((level < UNDRAWN) | (level >= len(self._names))).any() or (battles < 0).any():
            raise ValueError(
                f"state of {self!r}: expected levels from {UNDRAWN} to {len(self._names) - 1} and counts of battles "
                f"from 0, got {level} and {battles}"
            )
        weights = dict(zip(self._names, arrays["weights"].tolist(), strict=True))
        checked = _check_weights({name: weight for name, weight in weights.items() if weight != 0.0}, self._names)
        for policy, part in zip(others, parts, strict=True):
            policy.restore_arrays(part, rows)
        self.weights = checked
        self._level, self._battles = level.copy(), battles.copy()
        self._rows.restore_arrays(arrays)


def _other(number: int) -> str:
    """What the state calls one of the other policies, by its place."""
    return f"other{number}"


def _check_weights(weights: Any, names: Collection[str]) -> dict[str, float]:
    if not isinstance(weights, Mapping) or not weights:
        raise ValueError(f"weights: expected a mapping of opponents to numbers, got {weights!r}")
    for name in weights:
        if name not in names:
            raise ValueError(f"unknown opponent {name!r}{nearest_name(str(name), names)}")
    return check_weights(weights)
