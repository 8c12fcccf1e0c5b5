"""The arrays that an engine writes observations into: the rows of each reader, such as a policy, lie together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.layout.observations import OBSERVATION_DIM

Floats = NDArray[np.float32]


class ObservationArrays:
    """Two arrays of observations, and the place of every mech's: all are in the first, in order, until `set_places`.

    Attributes
    ----------
    places
        (B, M) int64: a row of `first`, or, beyond its last, of `second`. The array stays the same.
    first, second
        (R, D) and (B * M - R, D) float32.
    """

    def __init__(self, battles: int, mechs: int) -> None:
        self.places = np.arange(battles * mechs).reshape(battles, mechs)
        self._in_order = True
        self.first: Floats = np.zeros((battles * mechs, OBSERVATION_DIM), np.float32)
        self.second: Floats = np.zeros((0, OBSERVATION_DIM), np.float32)

    def set_places(self, places: NDArray[np.int64], rows: int) -> None:
        """Set the places, and the rows R of the first array. The arrays are new and zeroed if it has another number."""
        self.places[:] = places
        self._in_order = bool((places.ravel() == np.arange(places.size)).all())
        if rows != len(self.first):
            self.first = np.zeros((rows, OBSERVATION_DIM), np.float32)
            self.second = np.zeros((places.size - rows, OBSERVATION_DIM), np.float32)

    def clear(self) -> None:
        """Set all observations to zero."""
        self.first[:] = self.second[:] = 0.0

    def gather(self) -> Floats:
        """(B, M, D): the observations in the order of the mechs; a view of the first array if they lie so."""
        if self._in_order and not len(self.second):
            return self.first.reshape(*self.places.shape, -1)
        gathered: Floats = np.concatenate([self.first, self.second])[self.places]
        return gathered
