"""The array that an engine writes observations into: the rows of each reader, such as a policy, lie together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.lent_arrays import LentArrays, Write
from echelon_env.layout.observations import OBSERVATION_DIM

Allocate = Callable[[tuple[int, int]], NDArray[np.float32]]


class ObservationRows:
    """Observations as rows of an array, in the order of the mechs until `set_places`.

    An array that has been lent is not written again while anything refers to it or to a part of it, see `LentArrays`.

    Attributes
    ----------
    array
        (B * M, D) float32: the array of the present observations.
    places
        (B, M) int64: the row of every mech. The array stays the same.
    """

    array: NDArray[np.float32]
    _allocate: Allocate
    _arrays: LentArrays

    def __init__(self, battles: int, mechs: int) -> None:
        self.places = np.arange(battles * mechs).reshape(battles, mechs)
        self._in_order = True
        self._allocate_by(_zeros)
        self._take()
        self._lent = False

    def writer(self, bind: Callable[[NDArray[Any]], Write]) -> Write:
        """What `bind` makes of the array, see `Memory.writer`."""
        return self._memory.writer(bind)

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
        self._allocate_by(allocate)
        self._lent = True  # as if the present array belonged to others: the next one is another

    def set_places(self, places: NDArray[np.int64]) -> None:
        """Set the places. The rows are not moved: the next observations are written there."""
        self.places[:] = places
        self._in_order = bool((places.ravel() == np.arange(places.size)).all())

    def by_mech(self) -> NDArray[np.float32]:
        """(B, M, D): the observations in the order of the mechs; a view of the array if they lie so."""
        return self.array.reshape(*self.places.shape, -1) if self._in_order else self.array[self.places]

    def _allocate_by(self, allocate: Allocate) -> None:
        self._allocate, self._arrays = allocate, LentArrays(partial(allocate, (self.places.size, OBSERVATION_DIM)))

    def _take(self) -> None:
        """Have an array to which nothing else refers."""
        self._memory, self.array = self._arrays.take()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: self.__dict__[name] for name in ("places", "_in_order", "_lent")}
        return state | {"observations": self.array.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        observations = state.pop("observations")
        self.__dict__ |= state
        self._allocate_by(_zeros)
        self._take()
        self.array[:] = observations


def _zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)
