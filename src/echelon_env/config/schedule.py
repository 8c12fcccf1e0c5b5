"""A number that changes during a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from echelon_env.config.schema import ConfigError, check_fields, nearest_name, quantity

Shape = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class Schedule:
    """A number that changes from `start` to `end` during a run: linearly, or along half a cosine.

    >>> rate = Schedule.parse("linear:3e-4:1e-4", "learning_rate")
    >>> rate(1.0), round(rate(0.5), 7), rate(0.0)
    (0.0003, 0.0002, 0.0001)
    >>> str(Schedule.constant(0.2))
    '0.2'
    """

    start: float = quantity(0.0, "", -1e9, 1e9)
    end: float = quantity(0.0, "", -1e9, 1e9)
    shape: Shape = "constant"

    def __post_init__(self) -> None:
        check_fields(self, "schedule.")
        if self.shape == "constant" and self.start != self.end:
            raise ConfigError(f"a constant schedule cannot go from {self.start} to {self.end}")

    def __call__(self, remaining: float) -> float:
        """The value when a share `remaining` of the run is left: 1 at its start, 0 at its end and after it."""
        done = 1.0 - min(max(remaining, 0.0), 1.0)
        if self.shape == "constant":
            return self.start
        share = done if self.shape == "linear" else 0.5 - 0.5 * math.cos(math.pi * done)
        low, high = sorted((self.start, self.end))
        return min(max(self.start + share * (self.end - self.start), low), high)  # rounding may lead beyond an end

    def __str__(self) -> str:
        if self.shape == "constant":
            return f"{self.start}"
        return f"{self.shape}:{self.start}:{self.end}"

    @classmethod
    def constant(cls, value: float) -> Schedule:
        """A schedule with a constant value."""
        return cls(value, value, "constant")

    @classmethod
    def parse(cls, value: Any, key: str) -> Schedule:
        """Parse a number, or a string such as ``"0.2"``, ``"linear:3e-4:1e-4"`` and ``"cosine:1:0"``.

        Raises `ConfigError`, naming the configuration's `key`.
        """
        expected = f"config key {key!r}: expected a number, 'linear:START:END' or 'cosine:START:END', got {value!r}"
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ConfigError(expected, key)
        text = str(value)
        shape, *ends = text.split(":") if ":" in text else ("constant", text, text)
        if shape not in get_args(Shape):
            raise ConfigError(f"{expected}{nearest_name(shape, get_args(Shape))}", key)
        try:
            start, end = (float(number) for number in ends)
            return cls(start, end, shape)  # type: ignore[arg-type]
        except ValueError:  # no numbers, or `ConfigError`
            raise ConfigError(expected, key) from None
