"""What a run does every so many decisions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Every:
    """Due at the start, then every `every` decisions, counted from the last time. The fields are its complete state."""

    every: int
    """Decisions between two times; with 0 it is due at the start only."""
    next: int = 0
    """Decisions of the run at the next time."""

    def is_due(self, steps: int) -> bool:
        """Whether it is due after `steps` decisions of the run. The time then counts as done."""
        if steps < self.next or (steps > 0 and not self.every):
            return False
        self.next = steps + self.every
        return True
