"""The array that an engine writes observations into: the rows of each reader, such as a policy, lie together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echelon_env.layout.observations import OBSERVATION_DIM


class ObservationRows:
    """Observations as rows of an array, in the order of the mechs until `set_places`.

    Attributes
    ----------
    array
        (B * M, D) float32. It stays the same.
    places
        (B, M) int64: the row of every mech. The array stays the same.
    """

    def __init__(self, battles: int, mechs: int) -> None:
        self.array: NDArray[np.float32] = np.zeros((battles * mechs, OBSERVATION_DIM), np.float32)
        self.places = np.arange(battles * mechs).reshape(battles, mechs)
        self._in_order = True

    def set_places(self, places: NDArray[np.int64]) -> None:
        """Set the places. The rows are not moved: the next observations are written there."""
        self.places[:] = places
        self._in_order = bool((places.ravel() == np.arange(places.size)).all())

    def by_mech(self) -> NDArray[np.float32]:
        """(B, M, D): the observations in the order of the mechs; a view of the array if they lie so."""
        return self.array.reshape(*self.places.shape, -1) if self._in_order else self.array[self.places]
