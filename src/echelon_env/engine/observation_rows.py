"""The array that an engine writes observations into: the rows of each reader, such as a policy, lie together."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.layout.observations import OBSERVATION_DIM

SPARE = 4
"""Memories that are kept for the next arrays. Most loops use two or three by turns."""

Write = Callable[..., None]
Allocate = Callable[[tuple[int, int]], NDArray[np.float32]]


class ObservationRows:
    """Observations as rows of an array, in the order of the mechs until `set_places`.

    An array that has been lent is not written again while anything refers to it or to a part of it. When nothing does
    any more, its memory becomes that of a later array: memory that no cache holds costs as much as a copy.

    Attributes
    ----------
    array
        (B * M, D) float32: the array of the present observations.
    places
        (B, M) int64: the row of every mech. The array stays the same.
    """

    array: NDArray[np.float32]
    _allocate: Allocate

    def __init__(self, battles: int, mechs: int) -> None:
        self.places = np.arange(battles * mechs).reshape(battles, mechs)
        self._in_order = True
        self._allocate = _zeros
        self._free: list[_Memory] = []
        self._in_use: dict[int, _Memory] = {}  # by its identity
        self._take()
        self._lent = False

    def writer(self, bind: Callable[..., Write]) -> Write:
        """What `bind` makes of the places and the array: once for every memory, as that costs more than a call does."""
        memory = self._memory
        if memory.bind is not bind:
            memory.write = bind(self.places, memory.array)
            memory.bind = bind
        return memory.write

    def lend(self) -> NDArray[np.float32]:
        """The array, which belongs to the caller from now on. Whoever wants the present observations gets the same."""
        self._lent = True
        return self.array

    def renew(self) -> bool:
        """Have another array, with any contents, if the present one has been lent. Returns whether it has."""
        if not self._lent:
            return False
        self.__dict__.pop("array", None)  # if nothing else refers to it, its memory is the next
        self._take()
        self._lent = False
        return True

    def use_memory(self, allocate: Allocate) -> None:
        """Set what makes the zeros of a shape, float32, for later arrays. Copies of this object have NumPy's again."""
        if allocate is self._allocate:
            return
        self._allocate, self._free, self._in_use = allocate, [], {}
        self._lent = True  # as if the present array belonged to others: the next one is another

    def set_places(self, places: NDArray[np.int64]) -> None:
        """Set the places. The rows are not moved: the next observations are written there."""
        self.places[:] = places
        self._in_order = bool((places.ravel() == np.arange(places.size)).all())

    def by_mech(self) -> NDArray[np.float32]:
        """(B, M, D): the observations in the order of the mechs; a view of the array if they lie so."""
        return self.array.reshape(*self.places.shape, -1) if self._in_order else self.array[self.places]

    def _take(self) -> None:
        """Have an array to which nothing else refers."""
        memory = self._free.pop() if self._free else _Memory(self._allocate((self.places.size, OBSERVATION_DIM)))
        array = np.asarray(memory.array.data)  # of a memoryview: parts of it refer to it, not to `memory.array`
        owner, key = weakref.ref(self), id(memory)

        def release(_: object) -> None:
            rows = owner()
            if rows is not None:
                free = rows._in_use.pop(key, None)
                if free is not None and len(rows._free) < SPARE:
                    rows._free.append(free)

        memory.watch = weakref.ref(array, release)
        self._in_use[key] = memory
        self._memory, self.array = memory, array

    def __getstate__(self) -> dict[str, Any]:
        state = {name: self.__dict__[name] for name in ("places", "_in_order", "_lent")}
        return state | {"observations": self.array.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        observations = state.pop("observations")
        self.__dict__ |= state
        self._allocate, self._free, self._in_use = _zeros, [], {}
        self._take()
        self.array[:] = observations


class _Memory:
    """Memory of an array, what writes there, and what watches the array."""

    bind: Callable[..., Write] | None = None
    write: Write
    watch: weakref.ref[NDArray[np.float32]]

    def __init__(self, array: NDArray[np.float32]) -> None:
        self.array = array


def _zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)
