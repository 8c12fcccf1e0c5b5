"""Multi-discrete actions by the names of their parts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.layout.actions import ACTION_DIM
from echelon_env.spaces import NEUTRAL_CHOICES, PARTS, read_action

NAMES = [part.name for part in PARTS]


def choices(**parts: int) -> NDArray[np.int64]:
    """A multi-discrete action, neutral except for the named parts."""
    return np.array([parts.get(name, neutral) for name, neutral in zip(NAMES, NEUTRAL_CHOICES, strict=True)])


def read_rows(wanted: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors (..., A) of multi-discrete actions (..., parts)."""
    rows = wanted.reshape(-1, len(PARTS))
    return read_action("multi_discrete", rows, batch=len(rows)).reshape(*wanted.shape[:-1], ACTION_DIM)
