"""Comparison of returned values, and detection of shared memory."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.testing.conformance import (
    ConformanceError,
    ConformanceWarning,
    Difference,
    brief,
    demand_none,
    raising,
    with_type,
)

REMEMBERED_CALLS = 3
"""Number of calls whose memory is compared: more than one, to detect environments that swap two buffers."""


def find_difference(
    expected: Any, got: Any, *, tolerance: float | None = None, ignored: Collection[str] = (), path: str = ""
) -> Difference | None:
    """The first difference between two nested values, or None.

    Parameters
    ----------
    expected, got
        Dicts, sequences, dataclasses, arrays and plain values, nested.
    tolerance
        None: types, dtypes and values must be equal (NaN equals NaN). A number: the relative or absolute difference of
        numbers must be at most the tolerance; types may differ.
    ignored
        Dictionary keys that may differ.
    path
        Prefix of the path in the result.
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
    elif _is_dataclass(expected) and type(expected) is type(got):
        pairs = [(f"{path}.{name}", part, getattr(got, name)) for name, part in _fields(expected)]
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


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of every field that a dataclass compares."""
    return ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.compare)


def _leaf_difference(expected: Any, got: Any, tolerance: float | None, path: str) -> Difference | None:
    if tolerance is None and type(expected) is not type(got):
        return path, with_type(expected), with_type(got)
    if isinstance(expected, (bool, int, float, str)) and isinstance(got, (bool, int, float, str)) and expected == got:
        return None
    numeric = (np.ndarray, np.generic, bool, int, float, complex)
    if not (isinstance(expected, numeric) and isinstance(got, numeric)):
        return None if expected is got else _object_difference(expected, got, path)
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


def _object_difference(expected: Any, got: Any, path: str) -> Difference | None:
    try:
        equal = bool(np.all(expected == got))  # some types, such as data frames, compare elementwise
    except Exception as error:
        return path, "a value that can be compared", f"{brief(got)}, {type(error).__name__}: {error}"
    return None if equal else (path, brief(expected), brief(got))


def _equal(first: NDArray[Any], second: NDArray[Any], tolerance: float | None) -> NDArray[np.bool_]:
    if tolerance and first.dtype.kind in "iufc" and second.dtype.kind in "iufc":
        return np.asarray(np.isclose(first, second, rtol=tolerance, atol=tolerance, equal_nan=True))
    equal = np.asarray(first == second)
    if first.dtype.kind in "fc" and second.dtype.kind in "fc":
        equal = equal | (np.isnan(first) & np.isnan(second))
    return equal


def _parts(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parts of a value: path, dictionary key or None, part."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", key, part) for key, part in value.items())
    elif isinstance(value, (tuple, list)):
        yield from ((f"[{i}]", None, part) for i, part in enumerate(value))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from ((f"[{i}]", None, part) for i, part in enumerate(value.flat))
    elif _is_dataclass(value):
        yield from ((f".{name}", None, part) for name, part in _fields(value))


def find_arrays(value: Any, path: str = "", ignored: Collection[str] = ()) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array in a nested value, with its path, except under ignored dictionary keys."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield path, value
    for at, key, part in _parts(value):
        if key not in ignored:
            yield from find_arrays(part, path + at, ignored)


def snapshot(where: str, value: Any, ignored: Collection[str]) -> Any:
    """A deep copy of a returned value. Values under ignored dictionary keys are not copied.

    Raises ConformanceError for values that cannot be copied.
    """
    with raising("aliasing", where, "values that can be copied for later comparison, or `ignored_infos`"):
        return copy.deepcopy(value, {id(part): part for part in _find_ignored(value, ignored)})


def _find_ignored(value: Any, ignored: Collection[str]) -> Iterator[Any]:
    for _, key, part in _parts(value) if ignored else ():
        if key in ignored:
            yield part
        else:
            yield from _find_ignored(part, ignored)


def find_overlaps(arrays: Sequence[NDArray[Any]]) -> Iterator[tuple[int, int]]:
    """Index pairs of arrays that share memory, at least one of which is writeable."""
    bounds = sorted((*np.lib.array_utils.byte_bounds(array), i) for i, array in enumerate(arrays) if array.size)
    open_ends: list[tuple[int, int]] = []
    for low, high, i in bounds:
        open_ends = [(end, j) for end, j in open_ends if end > low]
        for _, j in open_ends:
            if (arrays[i].flags.writeable or arrays[j].flags.writeable) and np.shares_memory(arrays[i], arrays[j]):
                yield min(i, j), max(i, j)
        open_ends.append((high, i))


class Returned(NamedTuple):
    """The returned values of a call, and copies of them."""

    where: str
    value: dict[str, Any]
    snapshot: dict[str, Any]
    arrays: list[tuple[str, NDArray[Any]]]


class AliasGuard:
    """Checks that returned values do not change later, except under `ignored` keys of infos."""

    def __init__(self, ignored: Collection[str]) -> None:
        self._ignored = ignored
        self._calls: deque[Returned] = deque(maxlen=REMEMBERED_CALLS)
        self._warned = False

    def add(self, where: str, value: dict[str, Any]) -> dict[str, Any]:
        """Add the returned values of a call, by name. Returns copies; values of ignored keys are the same objects.

        Raises ConformanceError if an earlier value has changed or shares memory with this one.
        """
        for call in self._calls:
            for name, part in call.value.items():
                changed = find_difference(call.snapshot[name], part, ignored=self._ignored_in(name), path=name)
                demand_none("aliasing", f"{where}, value returned at {call.where}", changed, "to stay ")
        arrays = [found for name, part in value.items() for found in find_arrays(part, name, self._ignored_in(name))]
        copies = {name: snapshot(f"{where}, {name}", part, self._ignored_in(name)) for name, part in value.items()}
        self._calls.append(Returned(where, value, copies, arrays))
        self._check_memory()
        return copies

    def _ignored_in(self, name: str) -> Collection[str]:
        return self._ignored if name == "infos" else ()

    def _check_memory(self) -> None:
        owners = [(call, path) for call in self._calls for path, _ in call.arrays]
        for i, j in find_overlaps([array for call in self._calls for _, array in call.arrays]):
            (first, path), (second, other) = owners[i], owners[j]
            if first is not second:
                raise ConformanceError(
                    "aliasing", f"{second.where}, {other}", "new memory", f"that of {path}, returned at {first.where}"
                )
            if path.startswith("observations") and other.startswith("observations") and not self._warned:
                self._warned = True
                warnings.warn(f"{second.where}: {path} and {other} share memory", ConformanceWarning, stacklevel=2)
