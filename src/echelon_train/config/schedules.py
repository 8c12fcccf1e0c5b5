"""Numbers that change in the course of a run."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from echelon_env.config.battle import REWARD_COMPONENTS, RewardConfig
from echelon_env.config.schema import ConfigError, check_fields, nearest_name, quantity

Shape = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class Schedule:
    """A number that goes from `start` to `end` in the course of a run: in a straight line, or by half a cosine.

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
        """The number when a share `remaining` of the run is left: 1 at its beginning, 0 at its end and beyond."""
        done = 1.0 - min(max(remaining, 0.0), 1.0)
        if self.shape == "constant":
            return self.start
        share = done if self.shape == "linear" else 0.5 - 0.5 * math.cos(math.pi * done)
        return self.start + share * (self.end - self.start)

    def __str__(self) -> str:
        if self.shape == "constant":
            return f"{self.start}"
        return f"{self.shape}:{self.start}:{self.end}"

    @classmethod
    def constant(cls, value: float) -> Schedule:
        """The schedule of a number that stays."""
        return cls(value, value, "constant")

    @classmethod
    def parse(cls, value: Any, key: str) -> Schedule:
        """A schedule from a number, or from a text such as ``"0.2"``, ``"linear:3e-4:1e-4"`` and ``"cosine:1:0"``.

        Raises `ConfigError`, naming the configuration's `key`.
        """
        expected = f"config key {key!r}: expected a number, 'linear:START:END' or 'cosine:START:END', got {value!r}"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return cls.constant(float(value))
        if not isinstance(value, str):
            raise ConfigError(expected, key)
        shape, *ends = value.split(":") if ":" in value else ("constant", value, value)
        if shape not in get_args(Shape):
            raise ConfigError(f"{expected}{nearest_name(shape, get_args(Shape))}", key)
        try:
            start, end = (float(number) for number in ends)
        except ValueError:
            raise ConfigError(expected, key) from None
        return cls(start, end, shape)  # type: ignore[arg-type]


def _course(name: str) -> Any:
    """Declare the schedule of one of the reward's settings, or None: the setting is constant."""
    meaning = _REWARDS[name].metadata.get("help") or name.replace("_", " ")
    return dataclasses.field(default=None, metadata={"help": f"schedule of the {meaning}"})


_REWARDS = {each.name: each for each in dataclasses.fields(RewardConfig)}
_COURSES: Any = dataclasses.make_dataclass(
    "_COURSES",
    [(name, Schedule | None, _course(name)) for name in (*REWARD_COMPONENTS, "team_spirit")],
    frozen=True,
    kw_only=True,
)


class RewardSchedules(_COURSES):  # type: ignore[misc]
    """Settings of the reward that change in the course of a run, in place of those of the battle's `RewardConfig`.

    It is a dataclass with a field for the weight of every component of the reward, and for ``team_spirit``: a
    `Schedule`, or None for what stays as it is.
    """

    def at(self, rewards: RewardConfig, remaining: float) -> RewardConfig:
        """The reward when a share `remaining` of the run is left. Raises `ConfigError` for impossible values."""
        courses = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        changes = {name: course(remaining) for name, course in courses.items() if course is not None}
        return dataclasses.replace(rewards, **changes)
