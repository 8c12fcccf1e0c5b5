"""A fixed piece of work that other measurements are divided by: what is left does not depend on the machine's load.

It resembles the engine: for each of 16 regions of a megabyte, one after the other, integer hashes choose cells, bits of
a cell are tested, and what they say decides between two chains of floating-point arithmetic. It must never change:
`baseline.json` holds ratios to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

REGIONS, CELLS = 16, 1 << 18  # of 4 bytes
VISITS = 120_000  # cells a region


@numba.njit  # type: ignore[untyped-decorator]
def work(cells: Any, visits: int) -> float:
    """Visit cells of every region; returns a sum that depends on all of them."""
    total, bits = 0.0, np.uint64(88172645463325252)
    for region in range(cells.shape[0]):
        x, y = 0.5, 0.25
        for _ in range(visits):
            bits ^= bits << np.uint64(13)
            bits ^= bits >> np.uint64(7)
            bits ^= bits << np.uint64(17)
            cell = cells[region, np.int64(bits >> np.uint64(46))]
            run = 0
            while cell & np.uint32(1):
                cell >>= np.uint32(1)
                run += 1
            if run > 1:
                x = x * 0.75 + (y - 0.5 * x) / (1.0 + x * x)
                total += np.sqrt(x * x + y * y)
            else:
                y = y * 0.5 + 0.125 * run + x * 0.0625
                total -= y
    return total


def make() -> Callable[[], float]:
    """The work on cells that are always the same."""
    cells = np.random.default_rng(7).integers(1 << 32, size=(REGIONS, CELLS), dtype=np.uint32)
    return lambda: float(work(cells, VISITS))
