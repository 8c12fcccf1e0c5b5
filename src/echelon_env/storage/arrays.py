"""State as flat dictionaries of plain arrays, for any file format, with checks on restore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Arrays = dict[str, NDArray[Any]]
"""Arrays of numbers or booleans by name, never of records or objects. The names of a part's arrays contain a dot."""

Kind = tuple[tuple[int | None, ...], DTypeLike]
"""The shape and dtype that an array must have. None allows any length."""


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The memory of an array (N, ...) of any dtype, as (N, bytes) uint8; a copy."""
    width = array.itemsize * int(np.prod(array.shape[1:]))
    return np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), width).copy()


def bytes_kind(array: NDArray[Any], rows: int) -> Kind:
    """The kind of `as_bytes` of an array with this shape and dtype, but with `rows` rows."""
    return (rows, array.itemsize * int(np.prod(array.shape[1:]))), np.uint8


def from_bytes(data: NDArray[np.uint8], like: NDArray[Any]) -> NDArray[Any]:
    """The inverse of `as_bytes`, with the dtype and the further axes of `like`; a copy."""
    return np.frombuffer(data.tobytes(), like.dtype).reshape(len(data), *like.shape[1:]).copy()


def named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays as a part of a larger state, with prefixed names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The inverse of `named`: the arrays of a part."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def without(arrays: Mapping[str, NDArray[Any]], *prefixes: str) -> Arrays:
    """The arrays that belong to none of the parts with these prefixes."""
    starts = tuple(f"{prefix}." for prefix in prefixes)
    return {name: array for name, array in arrays.items() if not name.startswith(starts)}


def check_arrays(what: str, arrays: Mapping[str, Any], expected: Mapping[str, Kind]) -> None:
    """Raise ValueError unless there are exactly the expected arrays, with their shapes and dtypes.

    `what` names the owner of the state in the message.
    """
    missing, unknown = sorted(expected.keys() - arrays.keys()), sorted(arrays.keys() - expected.keys())
    if missing or unknown:
        raise ValueError(f"state of {what}: arrays missing: {missing}; unknown: {unknown}")
    for name, (shape, dtype) in expected.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray):
            raise ValueError(f"state of {what}: {name!r}: expected an array, got {type(array).__name__}")
        fits = len(array.shape) == len(shape) and all(
            length in (None, found) for length, found in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != dtype:
            form = "(" + ", ".join("any" if length is None else str(length) for length in shape) + ")"
            raise ValueError(
                f"state of {what}: {name!r}: expected {form} {np.dtype(dtype)}, got {array.shape} {array.dtype}"
            )


def check_same(what: str, name: str, expected: Any, got: Any) -> None:
    """Raise ValueError unless the saved value `got` equals the `expected` one."""
    if expected != got:
        raise ValueError(f"state of {what}: {name}: expected {expected!r}, got {got!r}")
