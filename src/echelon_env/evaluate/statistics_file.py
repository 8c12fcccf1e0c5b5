"""The file of a run's or an evaluation's battle statistics, as JSON.

::

    {"format": "echelon-statistics", "version": 2, "player": NAME, "steps": DECISIONS,
     "training": [{"first": DECISIONS, "last": DECISIONS, "totals": TOTALS}, ...],
     "evaluations": [{"steps": DECISIONS, "scenario": NAME, "totals": TOTALS}, ...]}

    TOTALS: {"opponents": {NAME: {"battles": N, "wins": N, ..., "own": {CLASS: SUMS}, "enemy": {CLASS: SUMS}}},
             "heatmaps": {EDGE_IN_METRES: {"own": {"presence": ROWS, ...}, "enemy": {...}}}}

`echelon_env.evaluate.battle_totals` names the sums (SUMS) and the heat maps (ROWS of numbers). A sum that is missing is
0. Numbers are rounded to `DIGITS` significant digits, which takes a quarter of the space.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from echelon_env.config.schema import ConfigError
from echelon_env.evaluate.battle_totals import (
    HEAT_CELLS,
    HEAT_MAPS,
    RESULTS,
    SIDES,
    BattleTotals,
    HeatMaps,
    OpponentTotals,
    Sums,
)
from echelon_env.storage.atomic import write_bytes
from echelon_env.storage.reading import parse_json, read_regular_file
from echelon_env.storage.text import printable

__all__ = [
    "STATISTICS_FILE",
    "EvaluationTotals",
    "Period",
    "StatisticsError",
    "StatisticsFile",
    "read_statistics",
    "write_statistics",
]

FORMAT, VERSION = "echelon-statistics", 2

STATISTICS_FILE = "statistics.json"
"""Name of the file in a run's folder."""

DIGITS = 9
"""Significant digits of the numbers."""

MAX_BYTES = 1 << 26
"""Largest file that is read."""

MAX_PERIODS, MAX_EVALUATIONS = 8, 64

MAX_OPPONENTS, MAX_CLASSES, MAX_SUMS, MAX_SIZES = 1024, 1000, 2000, 500
"""Most opponents, mech classes of a side, sums of a class, and sizes of maps of `BattleTotals` in a file."""

MAX_NAME = 1024
"""Most characters of a name."""

MAX_NUMBER = 1e15
"""Largest absolute value of a number."""


class StatisticsError(ConfigError):
    """A file that holds no valid statistics."""


@dataclass(frozen=True)
class Period:
    """The training battles of a period, which ended after `first` and up to `last` decisions of training."""

    first: int
    last: int
    totals: BattleTotals


@dataclass(frozen=True)
class EvaluationTotals:
    """The battles of an evaluation, after `steps` decisions of training, in a scenario."""

    steps: int
    scenario: str
    totals: BattleTotals


@dataclass(frozen=True)
class StatisticsFile:
    """Battle statistics of a run: of periods of its training, and of its evaluations; or of evaluations alone."""

    player: str  # name of the run or the player
    steps: int  # decisions that the policy had trained on; 0 if it is no run
    training: tuple[Period, ...] = ()  # oldest first, at most MAX_PERIODS
    evaluations: tuple[EvaluationTotals, ...] = ()  # oldest first, at most MAX_EVALUATIONS

    def total(self) -> BattleTotals:
        """The sums over all periods of training."""
        return BattleTotals.merged(period.totals for period in self.training)

    def to_dict(self, *, exact: bool = False) -> dict[str, Any]:
        """The document as plain values, the inverse of `from_dict`; with `exact` its numbers are not rounded."""
        rounded = _exact if exact else _rounded
        return {
            "format": FORMAT,
            "version": VERSION,
            "player": _printable(self.player),
            "steps": self.steps,
            "training": [
                {"first": each.first, "last": each.last, "totals": totals_to_dict(each.totals, rounded)}
                for each in self.training
            ],
            "evaluations": [
                {
                    "steps": each.steps,
                    "scenario": _printable(each.scenario),
                    "totals": totals_to_dict(each.totals, rounded),
                }
                for each in self.evaluations
            ],
        }

    @classmethod
    def from_dict(cls, document: Any) -> StatisticsFile:
        """The statistics of a document, all of which is checked. Raises StatisticsError with the place and reason."""
        _check_keys("the document", document, ("format", "version", "player", "steps", "training", "evaluations"))
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise StatisticsError(
                f"expected the format {FORMAT!r} of version {VERSION}, got {document['format']!r:.60} of "
                f"{document['version']!r:.20}"
            )
        periods = [
            Period(_count(f"{name}.first", each["first"]), _count(f"{name}.last", each["last"]), totals)
            for name, each, totals in _entries(document, "training", MAX_PERIODS, ("first", "last"))
        ]
        evaluations = [
            EvaluationTotals(
                _count(f"{name}.steps", each["steps"]), _text(f"{name}.scenario", each["scenario"]), totals
            )
            for name, each, totals in _entries(document, "evaluations", MAX_EVALUATIONS, ("steps", "scenario"))
        ]
        for earlier, later in zip([Period(0, 0, BattleTotals()), *periods], periods, strict=False):
            if not earlier.last <= later.first <= later.last:
                raise StatisticsError("training: expected periods in the order of time that do not overlap")
        player, steps = _text("player", document["player"]), _count("steps", document["steps"])
        return cls(player, steps, tuple(periods), tuple(evaluations))


def read_statistics(path: Path) -> StatisticsFile:
    """Read and check a file of statistics, which may come from a stranger.

    Raises StatisticsError with the path and the reason for a file that is too large or not valid, and OSError.
    """
    try:
        return StatisticsFile.from_dict(parse_json(read_regular_file(path, MAX_BYTES)))
    except StatisticsError as error:
        raise StatisticsError(f"{path}: {error}") from None
    except ValueError as error:
        raise StatisticsError(f"{path}: expected statistics as JSON: {error}") from None


def write_statistics(path: Path, statistics: StatisticsFile) -> None:
    """Write a file of statistics, whole or not at all. Raises OSError."""
    text = json.dumps(statistics.to_dict(), allow_nan=False, separators=(",", ":"))
    write_bytes(path, f"{text}\n".encode())


def totals_to_dict(totals: BattleTotals, rounded: Callable[[Any], Any]) -> dict[str, Any]:
    """The sums as plain values; `rounded` gives the numbers of an array as nested lists."""
    return {
        "opponents": {_printable(name): _opponent_to_dict(each, rounded) for name, each in totals.opponents.items()},
        "heatmaps": {
            str(size): {
                side: dict(zip(HEAT_MAPS, rounded(maps[number]), strict=True)) for number, side in enumerate(SIDES)
            }
            for size, maps in totals.heatmaps.items()
        },
    }


def totals_from_dict(name: str, document: Any) -> BattleTotals:
    """The inverse of `totals_to_dict`, with checks. Raises StatisticsError, which names the place `name`."""
    _check_keys(name, document, ("opponents", "heatmaps"))
    opponents = _mapping(f"{name}.opponents", document["opponents"], MAX_OPPONENTS)
    sizes = _mapping(f"{name}.heatmaps", document["heatmaps"], MAX_SIZES)
    return BattleTotals(
        {each: _opponent_from_dict(f"{name}.opponents.{each:.60}", given) for each, given in opponents.items()},
        {_size(name, size): _maps_from_dict(f"{name}.heatmaps.{size}", given) for size, given in sizes.items()},
    )


def sums_to_dict(sums: Sums, rounded: Callable[[Any], Any]) -> dict[str, Any]:
    """Sums as plain numbers, without those that are 0."""
    values = zip(map(_printable, sums), rounded(np.array([*sums.values()])), strict=True)
    return {name: int(value) if value == int(value) else value for name, value in values if value}


def sums_from_dict(name: str, document: Any) -> Sums:
    """The inverse of `sums_to_dict`, with checks: only rewards may be negative. Raises StatisticsError."""
    given = _mapping(name, document, MAX_SUMS)
    return {each: _number(f"{name}.{each:.60}", value, each.startswith("reward")) for each, value in given.items()}


def _opponent_to_dict(totals: OpponentTotals, rounded: Callable[[Any], Any]) -> dict[str, Any]:
    results = dict.fromkeys(RESULTS, 0) | sums_to_dict(totals.results, rounded)
    sides = {
        side: {_printable(name): sums_to_dict(sums, rounded) for name, sums in totals.side(side).items()}
        for side in SIDES
    }
    return {**results, **sides}


def _opponent_from_dict(name: str, document: Any) -> OpponentTotals:
    _check_keys(name, document, (*RESULTS, *SIDES))
    results = {key: _number(f"{name}.{key}", document[key]) for key in RESULTS}
    own, enemy = (
        {
            each: sums_from_dict(f"{name}.{side}.{each:.60}", given)
            for each, given in _mapping(f"{name}.{side}", document[side], MAX_CLASSES).items()
        }
        for side in SIDES
    )
    return OpponentTotals({key: value for key, value in results.items() if value}, own, enemy)


def _maps_from_dict(name: str, document: Any) -> HeatMaps:
    maps = np.zeros((len(SIDES), len(HEAT_MAPS), HEAT_CELLS, HEAT_CELLS))
    _check_keys(name, document, SIDES)
    for number, side in enumerate(SIDES):
        _check_keys(f"{name}.{side}", document[side], HEAT_MAPS)
        for which, kind in enumerate(HEAT_MAPS):
            rows = document[side][kind]
            valid = isinstance(rows, list) and len(rows) == HEAT_CELLS
            valid = valid and all(isinstance(row, list) and len(row) == HEAT_CELLS for row in rows)
            if not valid or not all(_is_number(value, 0.0) for row in rows for value in row):
                raise StatisticsError(
                    f"{name}.{side}.{kind}: expected {HEAT_CELLS} rows of {HEAT_CELLS} numbers from 0 to {MAX_NUMBER:g}"
                )
            maps[number, which] = rows
    return maps


def _entries(document: Any, name: str, most: int, keys: tuple[str, ...]) -> list[tuple[str, Any, BattleTotals]]:
    """The entries of a list with their names and their totals."""
    entries = document[name]
    if not isinstance(entries, list) or len(entries) > most:
        raise StatisticsError(f"{name}: expected a list of at most {most} entries")
    found = []
    for number, each in enumerate(entries):
        _check_keys(f"{name}.{number}", each, (*keys, "totals"))
        found.append((f"{name}.{number}", each, totals_from_dict(f"{name}.{number}.totals", each["totals"])))
    return found


def _check_keys(name: str, value: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(value, Mapping) or value.keys() != set(keys):
        got = f"the keys {sorted(map(str, value))!s:.200}" if isinstance(value, Mapping) else type(value).__name__
        raise StatisticsError(f"{name}: expected an object with the keys {sorted(keys)}, got {got}")


def _mapping(name: str, value: Any, most: int) -> Mapping[str, Any]:
    """A value that is an object with up to so many short printable keys."""
    if not isinstance(value, Mapping) or len(value) > most:
        raise StatisticsError(f"{name}: expected an object of at most {most} entries")
    for key in value:
        _text(name, key)
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise StatisticsError(f"{name}: expected a printable name of at most {MAX_NAME} characters, got {value!r:.60}")
    return value


def _printable(name: str) -> str:
    """A name as `_text` accepts it, with question marks for other characters."""
    return printable(name[:MAX_NAME]) or "?"


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise StatisticsError(f"{name}: expected an integer from 0 to {MAX_NUMBER:g}, got {value!r:.60}")
    return value


def _size(name: str, key: str) -> int:
    if not key.isascii() or not key.isdigit() or len(key) > 6 or not int(key):
        raise StatisticsError(f"{name}.heatmaps: expected edges of maps in m, got {key!r:.60}")
    return int(key)


def _number(name: str, value: Any, negative: bool = False) -> float:
    if not _is_number(value, -MAX_NUMBER if negative else 0.0):
        raise StatisticsError(
            f"{name}: expected a number from {-MAX_NUMBER if negative else 0:g} to {MAX_NUMBER:g}, got {value!r:.60}"
        )
    return float(value)


def _is_number(value: Any, low: float) -> bool:
    return type(value) in (int, float) and low <= value <= MAX_NUMBER  # a NaN is not


def _exact(array: Any) -> Any:
    return array.tolist()


def _rounded(array: Any) -> Any:
    """The numbers of an array, with `DIGITS` significant digits; integers where they are."""
    values = [_round(value) for value in array.ravel().tolist()]
    return np.array(values, object).reshape(array.shape).tolist()


def _round(value: float) -> float:
    value = float(f"{value:.{DIGITS}g}")
    return int(value) if value == int(value) else value
