"""Arrays that callers pass to the engine, which are checked, and the observations, which they may keep."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.schema import check_seed
from echelon_env.layout.observations import OBSERVATION_DIM

Write = Callable[..., None]
Allocate = Callable[[tuple[int, int]], NDArray[np.float32]]

MEMORIES = 4
"""Arrays of observations that are used by turns. Most loops need two or three."""


def read_actions(actions: ArrayLike, shape: tuple[int, ...], what: str = "actions") -> NDArray[np.float32]:
    """Actions as float32, not necessarily a copy. Raises ValueError, naming `what`, for another shape or no numbers.

    A float64 beyond the range of float32 becomes infinite and counts as non-finite.
    """
    array = actions if isinstance(actions, np.ndarray) else as_array(actions, what)
    if array.shape != shape:
        raise ValueError(f"{what}: expected shape {shape}, got {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what}: expected real numbers, got dtype {array.dtype}")
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def as_array(value: ArrayLike, what: str) -> NDArray[Any]:
    """The value as an array. Raises ValueError, naming it, if its rows differ in length."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{what}: expected an array of numbers, got {value!r}") from error


def check_seeds(seeds: ArrayLike, count: int, places: list[int]) -> dict[int, int]:
    """The checked seeds of some battles, by index; those of other battles are ignored. Raises ValueError."""
    array = np.asarray(seeds, dtype=object)  # as numbers, a mix of seeds below and above 2**63 would become floats
    if array.shape != (count,):
        raise ValueError(f"seeds: expected shape ({count},), one per battle, got {array.shape}")
    return {place: check_seed(array[place]) for place in places}


def check_mask(mask: ArrayLike, count: int) -> list[int]:
    """The battles that a mask (B,) chooses, in order. Raises ValueError."""
    array = np.asarray(mask)
    if array.shape != (count,) or array.dtype != np.bool_:
        raise ValueError(f"mask: expected ({count},) booleans, got {array.shape} {array.dtype}")
    return array.nonzero()[0].tolist()


class ObservationRows:
    """Observations as rows of an array, in the order of the mechs until `set_places`.

    Attributes
    ----------
    array
        (B * M, D) float32: the array of the present observations.
    write
        The kernel that writes into it.
    places
        (B, M) int64: the row of every mech. The array stays the same.
    given
        Whether a caller, who may keep it and change it, has had the array or a part of it.
    """

    array: NDArray[np.float32]
    write: Write
    _bind: Callable[[NDArray[np.float32]], Write]
    _alone: int

    def __init__(self, battles: int, mechs: int) -> None:
        self.places = np.arange(battles * mechs).reshape(battles, mechs)
        self.given = False
        self._in_order = True
        self._allocate: Allocate = _zeros
        self.array = _zeros((battles * mechs, OBSERVATION_DIM))

    def bind(self, bind: Callable[[NDArray[np.float32]], Write]) -> None:
        """Set what makes the kernel that writes into an array. The observations stay, in another array."""
        present, self._bind = self.array, bind
        self._memories: list[tuple[NDArray[np.float32], Write]] = []
        self._take()
        self.array[:] = present

    def renew(self) -> bool:
        """Have an array that no caller has, with any contents, if one has had the present one. Returns whether so."""
        given = self.given
        if given and getrefcount(self.array) > self._alone + 1:  # this object's
            self._take()
        self.given = False  # last: where an allocation fails, the caller's array stays the caller's
        return given

    def use_memory(self, allocate: Allocate) -> None:
        """Set what makes the zeros of a shape, float32, for later arrays. Copies of this object have NumPy's again."""
        if allocate is not self._allocate:
            self._allocate = allocate
            self.bind(self._bind)

    def set_places(self, places: NDArray[np.int64]) -> None:
        """Set the places. The rows are not moved: the next observations are written there."""
        self.places[:] = places
        self._in_order = bool((places.ravel() == np.arange(places.size)).all())

    def by_mech(self) -> NDArray[np.float32]:
        """(B, M, D): the observations in the order of the mechs; a view of the array if they lie so."""
        return self.array.reshape(*self.places.shape, -1) if self._in_order else self.array[self.places]

    def _take(self) -> None:
        """Have an array to which nothing else refers. A part of an array refers to it, and so does a part of that."""
        for memory in reversed(self._memories):
            if getrefcount(memory[0]) == self._alone:
                break
        else:
            array = self._allocate(self.array.shape)
            memory = array, self._bind(array)
            del array
            self._alone = getrefcount(memory[0])
            _check_owner(memory[0], self._alone)
            self._memories = [*self._memories[1 - MEMORIES :], memory]
        self.array, self.write = memory

    def __getstate__(self) -> dict[str, Any]:
        names = "given", "_in_order"
        own = {"places": self.places.copy(), "array": self.array.copy(), "_allocate": _zeros}
        return {name: self.__dict__[name] for name in names} | own  # a copy is bound by its engine


def _check_owner(array: NDArray[np.float32], alone: int) -> None:
    """Raise RuntimeError if a part of an array does not refer to the array, but to another owner of its memory."""
    part = array[:1].reshape(-1)
    if getrefcount(array) <= alone or part.base is not array:
        raise RuntimeError("observations: expected an allocator whose arrays own their memory, got one of views")


def _zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)
