"""Membership of values in spaces, with the reason for a mismatch."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from echelon_env.testing.conformance import Difference, brief, with_type


def find_mismatch(space: Space[Any], value: Any, path: str = "") -> Difference | None:
    """The first reason why a value is not in a space, or None if it is.

    It is stricter than ``space.contains`` in two ways. The value of a Box, MultiBinary or MultiDiscrete must be an
    array with exactly the space's dtype. The entries of a Box must be finite even if its bounds are not.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        kind: type[Any] = dict if isinstance(space, spaces.Dict) else tuple
        parts: dict[Any, Space[Any]] = dict(space.items() if isinstance(space, spaces.Dict) else enumerate(space))
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, tuple) else ()
        if not isinstance(value, kind) or {*keys} != {*parts}:
            return path, f"a {kind.__name__} with the keys {[*parts]}", with_type(value)
        found = (find_mismatch(part, value[key], f"{path}[{key!r}]") for key, part in parts.items())
        return next((mismatch for mismatch in found if mismatch), None)
    if isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        if not isinstance(value, np.ndarray | np.generic):
            return path, f"an array of shape {space.shape}", with_type(value)
        if (value.shape, value.dtype) != (space.shape, space.dtype):
            return path, f"shape {space.shape}, {space.dtype}", f"shape {value.shape}, {value.dtype}"
        low, high = (np.broadcast_to(bound, value.shape) for bound in _bounds(space))
        array = np.asarray(value)
        wrong = ~((low <= array) & (array <= high) & np.isfinite(array))
        if wrong.any():
            index = tuple(np.argwhere(wrong)[0].tolist())
            expected = f"a finite number from {low[index]} to {high[index]}"
            count = f"({int(wrong.sum())} of {array.size} entries are wrong)"
            return path + (f"[{', '.join(map(str, index))}]" if index else ""), expected, f"{array[index]} {count}"
    return None if space.contains(value) else (path, f"a member of {space}", brief(value))


def _bounds(space: spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.MultiBinary):
        return np.zeros((), np.int8), np.ones((), np.int8)
    return space.start, space.start + space.nvec - 1
