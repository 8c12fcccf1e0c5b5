"""Opponents by name: the grammar of everything that names the players of the other team.

An opponent is a text ``NAME[@HANDICAP]``. ``NAME`` is a scripted level, ``champion`` (the shipped policy for battles of
that size), ``policy:PATH`` (a checkpoint, a run or LEAGUE/MEMBER), ``KIND[:ARGUMENT]`` (a player that an installed
package adds, see `plugins.PLAYERS`), or ``self``, the learner as it is now. ``HANDICAP`` is ``key=value[,key=value]``
with the keys of `HandicapConfig`, or ``auto``, which holds the learner near a win rate. A value is a number, or a
schedule over a run such as ``linear:0.25:1``. ``self``, ``auto`` and schedules exist in training only. Several
opponents are a mapping of such texts to weights.
"""

from __future__ import annotations

import dataclasses
import math
import os.path
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from echelon_env.config import plugins
from echelon_env.config.schedule import Schedule
from echelon_env.config.schema import ConfigError, check_fields, nearest_name, quantity
from echelon_env.config.skill import LEVELS

SELF, CHAMPION, POLICY, AUTO = "self", "champion", "policy:", "auto"

MAX_DELAY = 10.0
"""s, the longest reaction delay."""

MAX_AIM_ERROR = math.pi
"""Radians, the largest standard deviation of the aim: directions are then as good as random."""


@dataclass(frozen=True, kw_only=True)
class HandicapConfig:
    """The numbers of a handicap, see `echelon_env.opponents.Handicap`. Raises `ConfigError` for one out of range.

    >>> str(HandicapConfig(fire_rate=0.5, reaction_delay=1))
    'fire_rate=0.5,reaction_delay=1'
    """

    fire_rate: float = quantity(1.0, "(a share)", 0, 1)  # of every weapon, of what its cooldown allows
    reaction_delay: float = quantity(0.0, "s", 0, MAX_DELAY)  # of its actions, rounded to whole decisions
    aim_error: float = quantity(0.0, "radians", 0, MAX_AIM_ERROR)  # standard deviation in the directions of enemies

    def __post_init__(self) -> None:
        check_fields(self, "")

    def __str__(self) -> str:
        given = {each.name: (getattr(self, each.name), each.default) for each in dataclasses.fields(self)}
        return ",".join(f"{name}={_number(value)}" for name, (value, default) in given.items() if value != default)


_ZERO, _ONE = Schedule.constant(0.0), Schedule.constant(1.0)


@dataclass(frozen=True, kw_only=True)
class HandicapSchedule:
    """A handicap that changes during a training run: a schedule of each number of `HandicapConfig`.

    Raises `ConfigError` if both ends of each schedule are not valid numbers, or none of them changes.

    >>> ramp = HandicapSchedule(fire_rate=Schedule(0.25, 1.0, "linear"))
    >>> str(ramp), ramp.at(0.5).fire_rate
    ('fire_rate=linear:0.25:1', 0.625)
    """

    fire_rate: Schedule = _ONE
    reaction_delay: Schedule = _ZERO
    aim_error: Schedule = _ZERO

    def __post_init__(self) -> None:
        check_fields(self, "")
        self.at(1.0), self.at(0.0)
        if all(schedule.shape == "constant" for schedule in self.parts.values()):
            raise ConfigError("expected a schedule, such as fire_rate=linear:0.25:1, got numbers only")

    def __str__(self) -> str:
        return ",".join(f"{name}={_schedule_text(schedule)}" for name, schedule in self.given.items())

    @property
    def parts(self) -> dict[str, Schedule]:
        """The schedules by name."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    @property
    def given(self) -> dict[str, Schedule]:
        """The schedules that are not those without a handicap, by name."""
        defaults = {each.name: each.default for each in dataclasses.fields(self)}
        return {name: schedule for name, schedule in self.parts.items() if schedule != defaults[name]}

    def at(self, remaining: float) -> HandicapConfig:
        """The handicap when a share `remaining` of the run is left, from 1 to 0."""
        return HandicapConfig(**{name: schedule(remaining) for name, schedule in self.parts.items()})


@dataclass(frozen=True)
class Opponent:
    """A player by name, with its handicap. Raises `ConfigError` for an unknown name, with the nearest valid one.

    >>> Opponent.parse("expert@fire_rate=0.75").handicap
    HandicapConfig(fire_rate=0.75, reaction_delay=0.0, aim_error=0.0)
    >>> str(Opponent.parse("policy:runs/duel@auto"))
    'policy:runs/duel@auto'
    >>> Opponent.parse("novice@fire_rate=linear:0.25:1").schedule.at(1.0)
    HandicapConfig(fire_rate=0.25, reaction_delay=0.0, aim_error=0.0)
    """

    name: str
    handicap: HandicapConfig = field(default_factory=HandicapConfig)
    auto: bool = False
    schedule: HandicapSchedule | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if (self.handicap != HandicapConfig()) + self.auto + (self.schedule is not None) > 1:
            raise ConfigError(f"{self.name}: expected {AUTO!r}, a schedule or the numbers of a handicap, got several")

    def __str__(self) -> str:
        handicap = AUTO if self.auto else str(self.schedule or self.handicap)
        return f"{self.name}@{handicap}" if handicap else self.name

    @property
    def path(self) -> str | None:
        """The path of a ``policy:PATH``, else None."""
        return self.name.removeprefix(POLICY) if self.name.startswith(POLICY) else None

    @property
    def trained(self) -> bool:
        """Whether it is a trained policy with a checkpoint: ``champion`` or ``policy:PATH``."""
        return self.name == CHAMPION or self.path is not None

    @classmethod
    def parse(cls, value: Any, key: str = "opponent") -> Opponent:
        """The inverse of `str`; an `Opponent` as it is. Raises `ConfigError`, naming the configuration's `key`."""
        if isinstance(value, Opponent):
            return value
        if not isinstance(value, str):
            raise ConfigError(f"{key}: unknown opponent {value!r}: expected NAME[@HANDICAP]", key)
        try:
            name, handicap = _split(value)
            if handicap in ("", AUTO):
                return cls(name, auto=bool(handicap))
            return _parse_handicap(name, handicap)
        except ConfigError as error:
            place = "" if str(error).startswith("unknown opponent") else f"{value!r}: "
            raise ConfigError(f"{key}: {place}{error}", key) from None

    def plain(self) -> str:
        """The opponent as `parse` takes it."""
        return str(self)

    def check_playable(self, key: str = "opponent") -> Opponent:
        """The opponent. Raises `ConfigError` for one of training: ``self``, ``auto``, and a schedule."""
        if self.name == SELF:
            raise ConfigError(f"{key}: {SELF!r} is for training only; outside it name a 'policy:PATH'", key)
        if self.auto or self.schedule is not None:
            raise ConfigError(f"{key}: '{self}' is for training only; elsewhere give '{self.name}@fire_rate=X'", key)
        return self


@dataclass(frozen=True)
class Opponents:
    """One opponent or several with weights, in the order of strength of the levels. `parse` makes one.

    >>> both = Opponents.parse({"expert@auto": 1, "novice": 3})
    >>> str(both), both.single
    ('{novice = 3, "expert@auto" = 1}', None)
    >>> Opponents.parse("novice").single.name
    'novice'
    """

    members: tuple[Opponent, ...]
    weights: tuple[float, ...]  # above 0; 1 of a single one

    @property
    def single(self) -> Opponent | None:
        """The opponent if there is only one."""
        return self.members[0] if len(self.members) == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """The texts of the opponents."""
        return tuple(map(str, self.members))

    def plain(self) -> str | dict[str, float]:
        """The opponents as `parse` takes them, fit for JSON."""
        return self.names[0] if self.single else dict(zip(self.names, self.weights, strict=True))

    def __str__(self) -> str:
        if self.single:
            return self.names[0]
        names = (name if name.isalnum() and name.isascii() else _quoted(name) for name in self.names)
        return f"{{{', '.join(f'{name} = {_number(w)}' for name, w in zip(names, self.weights, strict=True))}}}"

    @classmethod
    def parse(cls, value: Any, key: str = "opponent") -> Opponents:
        """Opponents from a text, from a mapping of texts to weights, or from a mapping written as a TOML table.

        Raises `ConfigError`, naming the configuration's `key`.
        """
        if isinstance(value, Opponents):
            return value
        if isinstance(value, str) and value.startswith("{"):
            value = _read_table(value, key)
        if not isinstance(value, Mapping):
            opponent = Opponent.parse(value, key)
            return cls((opponent,), (1.0,))
        if not value:
            raise ConfigError(f"{key}: weights: expected a mapping of opponents to numbers, got {{}}", key)
        weights: dict[Opponent, float] = {}
        for text, weight in check_weights(value, key).items():
            opponent = Opponent.parse(text, key)
            if opponent in weights:
                raise ConfigError(f"{key}: '{opponent}' is named twice", key)
            weights[opponent] = weight
        chosen = sorted((each for each, weight in weights.items() if weight), key=_rank)
        return cls(tuple(chosen), tuple(weights[each] for each in chosen) if len(chosen) > 1 else (1.0,))

    def check_playable(self, key: str = "opponent") -> Opponents:
        """The opponents. Raises `ConfigError` as `Opponent.check_playable` does."""
        for opponent in self.members:
            opponent.check_playable(key)
        return self


OpponentsLike = str | Mapping[str, float] | Opponents
"""What stands for opponents: a text, weights by text, or `Opponents`."""


def _split(text: str) -> tuple[str, str]:
    """Name and handicap of a text; a path may hold an @ that begins no handicap."""
    name, at, handicap = text.rpartition("@")
    if not at or (":" in name and handicap != AUTO and "=" not in handicap):
        return text, ""
    if not handicap:
        raise ConfigError(f"expected {AUTO!r} or key=value[,key=value] after the @, got nothing")
    return name, handicap


def _parse_handicap(opponent: str, text: str) -> Opponent:
    """An opponent with the handicap of a text ``key=value[,key=value]``. Raises `ConfigError`."""
    names = [each.name for each in dataclasses.fields(HandicapConfig)]
    given: dict[str, Schedule] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(f"expected {AUTO!r} or key=value[,key=value], got {text!r}")
        if name not in names:
            raise ConfigError(f"unknown handicap {name!r}{nearest_name(name, names)}")
        if name in given:
            raise ConfigError(f"{name} is given twice")
        given[name] = Schedule.parse(value, name)
    if any(schedule.shape != "constant" for schedule in given.values()):
        return Opponent(opponent, schedule=HandicapSchedule(**given))
    return Opponent(opponent, HandicapConfig(**{name: schedule.start for name, schedule in given.items()}))


def _check_name(name: Any) -> None:
    known = (*LEVELS, CHAMPION, SELF)
    if not isinstance(name, str) or not (name in known or name.startswith(POLICY) or plugins.is_player(name)):
        if name in ("idle", "random"):
            raise ConfigError(f"unknown opponent {name!r}: a player for evaluations; give an environment a function")
        if isinstance(name, str) and os.path.isdir(name):
            raise ConfigError(f"unknown opponent {name!r}; did you mean '{POLICY}{name}'?")
        valid = nearest_name(str(name), (*LEVELS, CHAMPION, f"{POLICY}PATH")).removesuffix(")")
        raise ConfigError(f"unknown opponent {name!r}{valid}; in training also {SELF})")
    if name == POLICY or not name.isprintable():
        raise ConfigError(f"{name!r}: expected {POLICY}PATH with the path of a checkpoint, a run or LEAGUE/MEMBER")
    if _split(name) != (name, ""):
        raise ConfigError(f"{name!r}: expected a path without an @ that looks like a handicap")


def check_weights(weights: Mapping[str, Any], key: str = "opponent") -> dict[str, float]:
    """The weights as floats. Raises `ConfigError`, naming the configuration's `key`, for others and a sum of 0."""
    accepted = (int, float, np.integer, np.floating)
    for text, weight in weights.items():
        if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, accepted) or not 0.0 <= weight < math.inf:
            raise ConfigError(
                f"{key}: weights: expected a finite number of at least 0 for {text!r}, got {weight!r}", key
            )
    checked = {text: float(weight) for text, weight in weights.items()}
    if not 0.0 < sum(checked.values()) < math.inf:
        raise ConfigError(f"{key}: weights: expected a finite sum above 0, got {dict(weights)}", key)
    return checked


def _read_table(text: str, key: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also an integer of too many digits
        raise ConfigError(
            f'{key}: expected a TOML table of weights, such as {{expert = 3, "novice@auto" = 1}} with quotes around '
            f"names that hold other characters than letters, got {text}",
            key,
        ) from None


def _rank(opponent: Opponent) -> tuple[int, str]:
    order = [*LEVELS, CHAMPION]
    return order.index(opponent.name) if opponent.name in order else len(order), str(opponent)


def _number(value: float) -> str:
    """The shortest text with the same value."""
    return repr(float(value)).removesuffix(".0")


def _schedule_text(schedule: Schedule) -> str:
    ends = f"{_number(schedule.start)}:{_number(schedule.end)}"
    return _number(schedule.start) if schedule.shape == "constant" else f"{schedule.shape}:{ends}"


def _quoted(text: str) -> str:
    """A basic string of TOML; the names of opponents are printable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
