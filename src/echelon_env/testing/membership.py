"""Membership of values in spaces, with the reason for a mismatch."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from echelon_env.testing.conformance import brief

Mismatch = tuple[str, str, str]
"""Path of the entry in the value, expected entry, actual entry."""


def find_mismatch(space: Space[Any], value: Any, path: str = "") -> Mismatch | None:
    """The first reason why a value is not in a space, or None if it is.

    It is stricter than ``space.contains`` in two ways. The value of a Box, MultiBinary or MultiDiscrete must be an
    array with exactly the space's dtype. The entries of a Box must be finite even if its bounds are not.
    """
    if isinstance(space, spaces.Dict):
        return _in_dict(space, value, path)
    if isinstance(space, spaces.Tuple):
        return _in_tuple(space, value, path)
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return _in_array_space(space, value, path)
    return None if space.contains(value) else (path, f"a member of {space}", brief(value))


def _in_dict(space: spaces.Dict, value: Any, path: str) -> Mismatch | None:
    if not isinstance(value, dict):
        return path, "a dict", f"{type(value).__name__} {brief(value)}"
    if value.keys() != space.spaces.keys():
        return path, f"the keys {list(space.spaces)}", f"{list(value)}"
    found = (find_mismatch(part, value[key], f"{path}[{key!r}]") for key, part in space.spaces.items())
    return next((mismatch for mismatch in found if mismatch), None)


def _in_tuple(space: spaces.Tuple[Any], value: Any, path: str) -> Mismatch | None:
    if not isinstance(value, tuple) or len(value) != len(space.spaces):
        return path, f"a tuple of {len(space.spaces)}", f"{type(value).__name__} {brief(value)}"
    found = (find_mismatch(part, value[i], f"{path}[{i}]") for i, part in enumerate(space.spaces))
    return next((mismatch for mismatch in found if mismatch), None)


def _in_array_space(
    space: spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete, value: Any, path: str
) -> Mismatch | None:
    if not isinstance(value, (np.ndarray, np.generic)):
        return path, f"an array of shape {space.shape}", f"{type(value).__name__} {brief(value)}"
    if value.shape != space.shape:
        return path, f"shape {space.shape}", f"shape {value.shape}"
    if value.dtype != space.dtype:
        return path, f"dtype {space.dtype}", f"dtype {value.dtype}"
    array = np.asarray(value)
    low, high = _bounds(space)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return _at(~np.isfinite(array), array, path, "a finite number")
    for bound, outside, words in ((low, array < low, "at least"), (high, array > high, "at most")):
        if outside.any():
            limit = np.broadcast_to(bound, array.shape)[_first(outside)]
            return _at(outside, array, path, f"{words} {limit}")
    return None if space.contains(value) else (path, f"a member of {space}", brief(value))


def _bounds(space: spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.MultiBinary):
        return np.zeros((), np.int8), np.ones((), np.int8)
    return space.start, space.start + space.nvec - 1


def _first(outside: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(outside)[0])


def _at(outside: NDArray[np.bool_], array: NDArray[Any], path: str, expected: str) -> Mismatch:
    index = _first(outside)
    place = f"[{', '.join(map(str, index))}]" if index else ""
    return path + place, expected, f"{array[index]} ({int(outside.sum())} of {array.size} entries are wrong)"
