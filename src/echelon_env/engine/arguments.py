"""Checks of the arrays that callers pass to the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.config.schema import check_seed


def read_actions(actions: ArrayLike, shape: tuple[int, ...], what: str = "actions") -> NDArray[np.float32]:
    """Actions as float32, not necessarily a copy. Raises ValueError, naming `what`, for another shape or no numbers.

    A float64 beyond the range of float32 becomes infinite and counts as non-finite.
    """
    array = as_array(actions, what)
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
