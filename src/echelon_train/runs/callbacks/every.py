"""What a run does every so many decisions."""

from __future__ import annotations


class Every:
    """Due at the start, then every `every` decisions, counted from the last time.

    Parameters
    ----------
    every
        Decisions between two times; with 0 it is due at the start only.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self.next = 0
        """Decisions at the next time: all of its state."""

    def is_due(self, steps: int) -> bool:
        """Whether it is due after `steps` decisions of the run. The time then counts as done."""
        if steps < self.next or (steps > 0 and not self._every):
            return False
        self.next = steps + self._every
        return True
