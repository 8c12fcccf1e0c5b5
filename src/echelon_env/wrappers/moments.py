"""Running mean and variance, stored as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echelon_env.storage import atomic
from echelon_env.storage.reading import parse_json, read_regular_file

MAX_BYTES = 64 << 20
"""Size of the largest file that is read."""

FilePath = str | os.PathLike[str]


class RunningMoments:
    """Elementwise running mean and variance of rows, in float64.

    Rows are merged by the parallel algorithm of Chan, Golub and LeVeque (1979), which stays accurate if the mean is
    large and the variance small.

    Parameters
    ----------
    shape
        Shape of a row; () for scalars.

    Examples
    --------
    >>> moments = RunningMoments((2,))
    >>> moments.update([[1.0, 5.0], [3.0, 5.0], [9.0, 9.0]], mask=[True, True, False])
    >>> moments.mean, moments.var, moments.count
    (array([2., 5.]), array([1., 0.]), 2)
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.shape = tuple(shape)
        self._count = 0
        self._mean = np.zeros(self.shape)
        self._squares = np.zeros(self.shape)  # sums of squared deviations; storing the variance would lose precision

    @property
    def count(self) -> int:
        """Number of rows."""
        return self._count

    @property
    def mean(self) -> NDArray[np.float64]:
        """A copy of the mean of the rows; zeros before the first row."""
        return self._mean.copy()

    @property
    def var(self) -> NDArray[np.float64]:
        """Variance of the rows, as by `numpy.var`; ones before the second row."""
        return self._squares / self._count if self._count > 1 else np.ones(self.shape)

    def update(self, rows: ArrayLike, mask: ArrayLike | None = None) -> None:
        """Add rows.

        Parameters
        ----------
        rows
            ``(..., *shape)`` with at least one leading axis, such as (N, D), or (B, M, D) for a batch of battles.
        mask
            (...) bool: the rows to add, by default all. Other rows are ignored.

        Raises
        ------
        ValueError
            For a wrong shape, a mask that is not boolean, and non-finite values in rows to add. Nothing is added then.
        """
        array = np.asarray(rows)
        axes = array.ndim - len(self.shape)
        if axes < 1 or array.shape[axes:] != self.shape:
            expected = ", ".join(["...", *map(str, self.shape)])
            raise ValueError(f"rows: expected shape ({expected}) with a leading axis, got {array.shape}")
        chosen = np.ones(array.shape[:axes], np.bool_) if mask is None else np.asarray(mask)
        if chosen.shape != array.shape[:axes] or chosen.dtype != np.bool_:
            expected = f"booleans of shape {array.shape[:axes]}"
            raise ValueError(f"mask: expected {expected}, got {chosen.dtype} of shape {chosen.shape}")
        new = array[chosen].astype(np.float64)
        if not np.isfinite(new).all():
            raise ValueError("rows: expected finite numbers, got NaN or infinity")
        if not len(new):
            return
        mean = new.mean(axis=0)
        difference, total = mean - self._mean, self._count + len(new)
        self._squares = (
            self._squares + np.square(new - mean).sum(axis=0) + difference**2 * (self._count * len(new) / total)
        )
        self._mean = self._mean + difference * (len(new) / total)
        self._count = total

    def standardize(self, values: ArrayLike, epsilon: float = 1e-8, clip: float | None = None) -> NDArray[np.float64]:
        """(values - mean) / sqrt(var + epsilon) for values ``(..., *shape)``, clipped to [-clip, clip]. A new array."""
        result = (np.asarray(values, np.float64) - self._mean) / np.sqrt(self.var + epsilon)
        return result if clip is None else np.clip(result, -clip, clip)

    def save(self, path: FilePath) -> None:
        """Write the statistics to a JSON file, atomically. Raises OSError."""
        write_moments(path, type(self).__name__, {"": self})

    def load(self, path: FilePath) -> None:
        """Replace the statistics by those of a file that `save` wrote.

        Raises OSError. Raises ValueError for any other file and for rows of another shape. Nothing changes then.
        """
        read_moments(path, type(self).__name__, {"": self})

    def _to_plain(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "count": self._count,
            "mean": self._mean.ravel().tolist(),
            "squared_deviations": self._squares.ravel().tolist(),
        }

    def _from_plain(self, data: Any) -> RunningMoments:
        """Moments of the same shape from plain data. Raises ValueError for invalid data."""
        keys = list(self._to_plain())
        if not isinstance(data, dict) or sorted(data) != sorted(keys):
            raise ValueError(f"expected the keys {keys}, got {sorted(data) if isinstance(data, dict) else data!r}")
        if data["shape"] != list(self.shape):
            raise ValueError(f"expected rows of shape {list(self.shape)}, got {data['shape']}")
        result = RunningMoments(self.shape)
        result._mean, result._squares = self._read_numbers(data, "mean"), self._read_numbers(data, "squared_deviations")
        if (result._squares < 0).any():
            raise ValueError("expected squared_deviations of at least 0, got a negative number")
        if type(data["count"]) is not int or not 0 <= data["count"] < 2**53:
            raise ValueError("expected a count from 0 to 2**53")
        result._count = data["count"]
        return result

    def _read_numbers(self, data: Mapping[str, Any], key: str) -> NDArray[np.float64]:
        numbers, size = data[key], self._mean.size
        if not isinstance(numbers, list) or len(numbers) != size or any(type(x) is not float for x in numbers):
            raise ValueError(f"expected {key} to be a list of {size} floats")
        array = np.array(numbers, np.float64)
        if not np.isfinite(array).all():
            raise ValueError(f"expected {key} to be finite")
        return array.reshape(self.shape)


def write_moments(path: FilePath, kind: str, moments: Mapping[str, RunningMoments]) -> None:
    """Write named moments and their `kind` to a JSON file, atomically.

    Floats are read back exactly. Raises OSError.
    """
    data = {"kind": kind, "moments": {name: each._to_plain() for name, each in moments.items()}}
    atomic.write_json(Path(path), data)


def read_moments(path: FilePath, kind: str, moments: Mapping[str, RunningMoments]) -> None:
    """Set the moments from a file that `write_moments` wrote for the same kind, names and shapes.

    Raises OSError. Raises ValueError for any other file. Nothing changes then.
    """
    try:
        data = parse_json(read_regular_file(path, MAX_BYTES))
        if not isinstance(data, dict) or data.get("kind") != kind:
            raise ValueError(
                f"got {'kind ' + repr(data.get('kind')) if isinstance(data, dict) else type(data).__name__}"
            )
        saved = data.get("moments")
        if not isinstance(saved, dict) or sorted(saved) != sorted(moments):
            raise ValueError(f"expected moments of {sorted(moments)}, got {sorted(saved or {})}")
        read = {}
        for name, each in moments.items():
            try:
                read[name] = each._from_plain(saved[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}" if name else str(error)) from None
    except ValueError as error:
        raise ValueError(f"{path}: expected a file that {kind}.save() wrote: {error}") from error
    for name, each in moments.items():
        vars(each).update(vars(read[name]))
