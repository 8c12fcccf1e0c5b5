"""State as flat dictionaries of plain arrays: fit for any file format, and checked before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Arrays = dict[str, NDArray[Any]]
"""Arrays of numbers or booleans by name, never of records or objects. Names of parts have a dot."""

Kind = tuple[tuple[int | None, ...], DTypeLike]
"""The shape and dtype that an array must have; None for a length that may be any."""


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The memory of an array (N, ...) of any dtype, as (N, bytes) uint8; a copy."""
    width = array.itemsize * int(np.prod(array.shape[1:]))
    return np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), width).copy()


def bytes_kind(array: NDArray[Any], rows: int) -> Kind:
    """What `as_bytes` makes of an array of as many rows with the shape and dtype of another."""
    return (rows, array.itemsize * int(np.prod(array.shape[1:]))), np.uint8


def from_bytes(data: NDArray[np.uint8], like: NDArray[Any]) -> NDArray[Any]:
    """The inverse of `as_bytes`, with the dtype and the further axes of an array; a copy."""
    return np.frombuffer(data.tobytes(), like.dtype).reshape(len(data), *like.shape[1:]).copy()


def named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays as a part of a larger state."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The inverse of `named`: the arrays of a part."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def without(arrays: Mapping[str, NDArray[Any]], *prefixes: str) -> Arrays:
    """The arrays that belong to none of the parts."""
    starts = tuple(f"{prefix}." for prefix in prefixes)
    return {name: array for name, array in arrays.items() if not name.startswith(starts)}


def check_arrays(what: str, arrays: Mapping[str, Any], expected: Mapping[str, Kind]) -> None:
    """Raise ValueError unless there are exactly the expected arrays, with their shapes and dtypes.

    `what` they are the state of begins the message.
    """
    missing, unknown = sorted(expected.keys() - arrays.keys()), sorted(arrays.keys() - expected.keys())
    if missing or unknown:
        raise ValueError(f"state of {what}: arrays that are missing: {missing}; that are unknown: {unknown}")
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
    """Raise ValueError unless what a state was taken with equals what is there now."""
    if expected != got:
        raise ValueError(f"state of {what}: {name}: expected {expected!r}, got {got!r}")
