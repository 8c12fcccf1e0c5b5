"""The time of a run on its processor."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


class BudgetSpentError(Exception):
    """The time of a run is over."""


@dataclass
class Clock:
    """Seconds of this process on a processor, and those of the parts of the run before it."""

    limit: float  # s
    before: float = 0.0  # s
    _start: float = field(default_factory=time.process_time)

    @property
    def used(self) -> float:
        """Seconds used so far."""
        return self.before + time.process_time() - self._start

    @property
    def over(self) -> bool:
        """True once the limit is reached."""
        return self.used >= self.limit
