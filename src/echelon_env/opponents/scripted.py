"""The scripted levels. Each mech's action depends only on its own observations and its own memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import check_integer, check_seed, nearest_name
from echelon_env.config.skill import LEVELS
from echelon_env.engine.kernels import entry_point
from echelon_env.engine.turns import end_of_turn, first_turn, next_turn
from echelon_env.engine.workers import SharedKernel
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import Self
from echelon_env.opponents.decision import decide
from echelon_env.opponents.knowledge import Knowledge, make_knowledge
from echelon_env.opponents.memory import MEMORY, PLAN, Scratch, allocate_scratch
from echelon_env.opponents.policy import check_mask, check_observations
from echelon_env.storage.arrays import Kind, as_bytes, bytes_kind, check_arrays, check_same, from_bytes

Floats = NDArray[np.float32]

WAKE = 32
"""Rows that take as long as waking a thread does: about 40 living ones of any level (16 cores, 2026-11-26)."""


@entry_point
def act_rows(
    knowledge: Knowledge,
    skills: Any,
    scratch: Scratch,
    plans: Any,
    turn: Any,
    levels: Any,
    observations: Any,
    memories: Any,
    actions: Any,
    at_once: int,
) -> None:
    """Fill the actions (R, A), zeros at first, for observations (R, D), levels and memories (R,).

    Threads share the rows as `turns` says.
    """
    rows = observations.shape[0]
    at = first_turn(turn, 0, at_once)
    while at < rows:
        for r in range(at, end_of_turn(at, rows, at_once)):
            if observations[r, Self.ALIVE] > 0:
                decide(knowledge, skills[levels[r]], observations[r], memories[r], scratch, plans[0], actions[r])
        at = next_turn(turn, rows, at_once)


class ScriptedRows:
    """Scripted mechs, one per row, each with its own memory and level.

    Parameters
    ----------
    seed
        Seed of their random choices.
    config
        The battle's configuration.
    num_threads
        Threads that share the rows. Actions do not depend on it.

    Raises
    ------
    ConfigError
        If `num_threads` is not an integer of at least 1.
    """

    def __init__(self, seed: int, config: BattleConfig, num_threads: int = 1) -> None:
        self.seed = seed
        self.num_threads = check_integer("num_threads", num_threads)
        self._skills, knowledge = np.concatenate([skill.record() for skill in LEVELS.values()]), make_knowledge(config)

        def bind(turn: NDArray[np.int64]) -> Callable[..., None]:
            return act_rows.bind(knowledge, self._skills, allocate_scratch(), np.zeros(1, PLAN), turn)

        self._act_rows = SharedKernel(bind, num_threads, WAKE)
        self.allocate(0)

    def __len__(self) -> int:
        return len(self._memories)

    def allocate(self, rows: int) -> None:
        """Start with new memories for this number of rows."""
        self._memories = np.zeros(rows, MEMORY)
        self._memories["seed"] = self.seed

    def clear(self, mask: NDArray[np.bool_]) -> None:
        """Clear the memories of the rows (R,) where the mask is true; new battles start there."""
        self._memories[mask] = np.zeros((), MEMORY)
        self._memories["seed"][mask] = self.seed

    def act(self, observations: Floats, levels: NDArray[np.int64]) -> Floats:
        """Actions (R, A) for observations (R, D) at levels (R,), indices into `LEVELS`; zeros for dead mechs.

        One thread at a time may call it.
        """
        rows = np.ascontiguousarray(observations, np.float32)
        if not rows.flags.writeable:
            rows = rows.copy()  # for Numba a read-only array has another type
        actions = np.zeros((len(rows), ACTION_DIM), np.float32)
        self._act_rows(levels, rows, self._memories, actions)
        return actions

    def close(self) -> None:
        """Stop the threads. Later calls run in the caller's thread."""
        self._act_rows.close()

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """The memories and the seed as plain arrays."""
        return {"seed": np.array([self.seed], np.uint64), "memories": as_bytes(self._memories)}

    def check_state(self, what: str, arrays: Mapping[str, Any], rows: int, further: Mapping[str, Kind]) -> None:
        """Raise ValueError unless the arrays are `state_arrays` of `rows` rows with this seed, and `further` ones."""
        kinds: dict[str, Kind] = {"seed": ((1,), np.uint64), "memories": bytes_kind(self._memories, rows)}
        check_arrays(what, arrays, {**kinds, **further})
        check_same(what, "seed", self.seed, int(arrays["seed"][0]))

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the memories from checked arrays."""
        self._memories = from_bytes(arrays["memories"], self._memories)


class Scripted:
    """A scripted policy of one level, for any number of mechs.

    Parameters
    ----------
    level
        One of `LEVELS`.
    seed
        Seed of its random choices.
    config
        The battle's configuration.
    num_threads
        Threads that share the mechs. Actions do not depend on it.

    Raises
    ------
    ValueError
        For an unknown level, with the nearest valid name, for a seed that is not an integer in [0, 2**64), and for
        an invalid number of threads.
    """

    def __init__(self, level: str, seed: int, config: BattleConfig, num_threads: int = 1) -> None:
        if not isinstance(level, str) or level not in LEVELS:
            raise ValueError(f"unknown opponent {level!r}{nearest_name(str(level), LEVELS)}")
        self.level = level
        self.seed = check_seed(seed)
        self._rows = ScriptedRows(self.seed, config, num_threads)

    def __repr__(self) -> str:
        return f"Scripted({self.level!r}, seed={self.seed})"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true. Raises ValueError for an invalid mask, see `check_mask`."""
        mask = check_mask(mask, len(self._rows))
        if len(mask) != len(self._rows):
            self._rows.allocate(len(mask))
        self._rows.clear(mask)

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32.

        Raises ValueError for another shape, dtype or number of rows.
        """
        check_observations(observations, len(self._rows))
        if len(observations) != len(self._rows):
            self._rows.allocate(len(observations))
        return self._rows.act(observations, np.full(len(observations), [*LEVELS].index(self.level)))

    def close(self) -> None:
        """Stop the threads. Later calls run in the caller's thread."""
        self._rows.close()

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`."""
        return {"level": np.array([[*LEVELS].index(self.level)], np.int64), **self._rows.state_arrays()}

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, also for the state of a policy with another level or seed."""
        self._rows.check_state(repr(self), arrays, rows, {"level": ((1,), np.int64)})
        names = dict(enumerate(LEVELS))
        number = int(arrays["level"][0])
        check_same(repr(self), "level", self.level, names.get(number, number))
        self._rows.restore_arrays(arrays)
