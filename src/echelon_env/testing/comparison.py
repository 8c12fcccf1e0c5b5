"""Comparing what environments return, and finding what shares memory."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.testing.conformance import ConformanceError, ConformanceWarning, brief

REMEMBERED_CALLS = 3
"""How many calls back memory is compared: more than one, because environments that swap two buffers alias too."""

Difference = tuple[str, str, str]
"""Path of the entry within the value, what was expected there, what came."""


def find_difference(
    expected: Any, got: Any, *, tolerance: float | None = None, ignored: Collection[str] = (), path: str = ""
) -> Difference | None:
    """The first place where two nested values differ, or None.

    Parameters
    ----------
    expected, got
        Dicts, sequences, arrays and plain values, nested.
    tolerance
        None: types, dtypes and values are the same (NaN equals NaN). A number: numbers differ by at most that
        much, relative or absolute, whatever their types.
    ignored
        Dictionary keys that may differ.
    path
        Where the values come from.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        keys, others = [key for key in expected if key not in ignored], {key for key in got if key not in ignored}
        if set(keys) != others:
            return path, f"the keys {keys}", f"{sorted(others, key=str)}"
        pairs = [(f"{path}[{key!r}]", expected[key], got[key]) for key in keys]
    elif _is_sequence(expected) and _is_sequence(got):
        if len(expected) != len(got):
            return path, f"length {len(expected)}", f"length {len(got)}"
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(expected, got, strict=True))]
    else:
        return _leaf_difference(expected, got, tolerance, path)
    if tolerance is None and type(expected) is not type(got):
        return path, type(expected).__name__, type(got).__name__
    found = (find_difference(a, b, tolerance=tolerance, ignored=ignored, path=at) for at, a, b in pairs)
    return next((difference for difference in found if difference), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list)) or (
        isinstance(value, np.ndarray) and value.dtype == object and value.ndim > 0
    )


def _leaf_difference(expected: Any, got: Any, tolerance: float | None, path: str) -> Difference | None:
    if tolerance is None and type(expected) is not type(got):
        return path, f"{type(expected).__name__} {brief(expected)}", f"{type(got).__name__} {brief(got)}"
    if isinstance(expected, (bool, int, float, str)) and isinstance(got, (bool, int, float, str)) and expected == got:
        return None
    numeric = (np.ndarray, np.generic, bool, int, float, complex)
    if not (isinstance(expected, numeric) and isinstance(got, numeric)):
        return None if expected is got or bool(expected == got) else (path, brief(expected), brief(got))
    first, second = np.asarray(expected), np.asarray(got)
    if first.shape != second.shape:
        return path, f"shape {first.shape}", f"shape {second.shape}"
    if tolerance is None and first.dtype != second.dtype:
        return path, f"dtype {first.dtype}", f"dtype {second.dtype}"
    different = ~_equal(first, second, tolerance)
    if not different.any():
        return None
    if not first.shape:
        return path, brief(expected), brief(got)
    index = tuple(int(i) for i in np.argwhere(different)[0])
    count = f"({int(different.sum())} of {first.size} entries differ)"
    return f"{path}[{', '.join(map(str, index))}]", str(first[index]), f"{second[index]} {count}"


def _equal(first: NDArray[Any], second: NDArray[Any], tolerance: float | None) -> NDArray[np.bool_]:
    if tolerance and first.dtype.kind in "iufc" and second.dtype.kind in "iufc":
        return np.asarray(np.isclose(first, second, rtol=tolerance, atol=tolerance, equal_nan=True))
    equal = np.asarray(first == second)
    if first.dtype.kind in "fc" and second.dtype.kind in "fc":
        equal = equal | (np.isnan(first) & np.isnan(second))
    return equal


def find_arrays(value: Any, path: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array within a nested value, with its path."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from find_arrays(part, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list, np.ndarray)):
        for i, part in enumerate(value.flat if isinstance(value, np.ndarray) else value):
            yield from find_arrays(part, f"{path}[{i}]")


def find_overlaps(arrays: Sequence[NDArray[Any]]) -> Iterator[tuple[int, int]]:
    """Indices of every two arrays that share memory and of which one can be written to."""
    bounds = sorted((*np.lib.array_utils.byte_bounds(array), i) for i, array in enumerate(arrays) if array.size)
    open_ends: list[tuple[int, int]] = []
    for low, high, i in bounds:
        open_ends = [(end, j) for end, j in open_ends if end > low]
        for _, j in open_ends:
            if (arrays[i].flags.writeable or arrays[j].flags.writeable) and np.shares_memory(arrays[i], arrays[j]):
                yield min(i, j), max(i, j)
        open_ends.append((high, i))


class Returned(NamedTuple):
    """What a call returned, and how it looked then."""

    where: str
    value: dict[str, Any]
    snapshot: dict[str, Any]
    arrays: list[tuple[str, NDArray[Any]]]


class AliasGuard:
    """Sees to it that what an environment returned stays as it was."""

    def __init__(self) -> None:
        self._calls: deque[Returned] = deque(maxlen=REMEMBERED_CALLS)
        self._warned = False

    def admit(self, where: str, value: dict[str, Any]) -> dict[str, Any]:
        """Take what a call returned, by name; returns a deep copy.

        Raises ConformanceError where an earlier return has changed or shares memory with this one.
        """
        for call in self._calls:
            for name, part in call.value.items():
                changed = find_difference(call.snapshot[name], part, path=name)
                if changed:
                    path, before, after = changed
                    raise ConformanceError(
                        "aliasing", f"{call.where}, {path}", f"to stay {before}", f"{after} after {where}"
                    )
        arrays = [found for name, part in value.items() for found in find_arrays(part, name)]
        self._calls.append(Returned(where, value, copy.deepcopy(value), arrays))
        self._check_memory()
        return self._calls[-1].snapshot

    def _check_memory(self) -> None:
        owners = [(call, path) for call in self._calls for path, _ in call.arrays]
        for i, j in find_overlaps([array for call in self._calls for _, array in call.arrays]):
            (first, path), (second, other) = owners[i], owners[j]
            if first is not second:
                raise ConformanceError(
                    "aliasing", f"{second.where}, {other}", "fresh memory", f"that of {path}, returned at {first.where}"
                )
            if path.startswith("observations") and other.startswith("observations") and not self._warned:
                self._warned = True
                warnings.warn(f"{second.where}: {path} and {other} share memory", ConformanceWarning, stacklevel=2)
