"""Rating periods: the inputs of the ratings, and the ratings computed from them."""

from __future__ import annotations

import dataclasses
import json
import reprlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echelon_env.config.schema import build, check_fields, quantity
from echelon_env.evaluate import baseline
from echelon_train.league.errors import DamagedLeagueError
from echelon_train.league.matchmaking.provisional import rate_members
from echelon_train.league.ratings.glicko2 import TAU, Rating
from echelon_train.league.ratings.results import Results
from echelon_train.league.store.database import check_room, insert, parse, read_meta
from echelon_train.league.store.members import now
from echelon_train.league.store.records import read_results

ANCHOR_RATING = Rating(deviation=0.0)
"""Rating of the anchor. It defines the scale, so it has no uncertainty."""


@dataclass(frozen=True)
class LeagueSettings:
    """What a league's ratings depend on besides its matches. Raises ConfigError for invalid values."""

    anchor: str = "novice"  # scripted player that keeps its rating, which anchors the scale
    tau: float = quantity(TAU, "", 0.1, 2.0, help="how fast volatilities change")

    def __post_init__(self) -> None:
        check_fields(self, "")
        baseline(self.anchor)


def read_settings(path: Path, connection: sqlite3.Connection) -> LeagueSettings:
    """The settings of the league in a folder. Raises LeagueError if they are invalid."""
    try:
        plain = parse(read_meta(connection)["settings"], dict, "settings")
        settings: LeagueSettings = build(LeagueSettings, plain, "settings.")
    except (KeyError, ValueError, DamagedLeagueError) as error:
        raise DamagedLeagueError(f"{path}: damaged: its settings cannot be read ({error})") from error
    return settings


@dataclass(frozen=True)
class Period:
    """A closed rating period: the matches up to `last_match` that no earlier period has."""

    number: int  # from 1
    last_match: int  # id; 0: there were no matches yet
    last_member: int  # id; members that joined later are not rated
    tau: float
    drifting: tuple[int, ...]  # ids of the members still training
    pinned: tuple[int, ...]  # ids of the members whose rating is given
    closed_at: str = field(default_factory=now)  # UTC


def last_period(connection: sqlite3.Connection) -> tuple[int, int]:
    """The number of the period that was closed last, and the id of its last match; 0 and 0 before the first one."""
    number, last_match = connection.execute("SELECT MAX(number), last_match FROM periods").fetchone()
    return number or 0, last_match or 0


def count_matches(connection: sqlite3.Connection, after: int = 0) -> int:
    """Number of matches whose ids are above `after`."""
    (count,) = connection.execute("SELECT COUNT(*) FROM matches WHERE id > ?", (after,)).fetchone()
    return int(count)


def next_period(connection: sqlite3.Connection, settings: LeagueSettings) -> Period:
    """The period to close now.

    The newest snapshot of a main agent is still training, if it is active. All others are frozen: a main agent has left
    a newer one since, or an exploiter starts from other weights.

    Raises LeagueError if it, or its ratings, would be more than a league can have.
    """
    number = last_period(connection)[0] + 1
    (last_match,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM matches").fetchone()
    (last_member,) = connection.execute("SELECT MAX(id) FROM members").fetchone()
    check_room(connection, "periods")
    check_room(connection, "ratings", last_member)
    drifting = connection.execute(
        "SELECT id FROM members WHERE state = 'active' AND id = (SELECT MAX(id) FROM members WHERE kind = 'main')"
    )
    pinned = connection.execute("SELECT id FROM members WHERE name = ?", (settings.anchor,))
    ids, anchors = (tuple(number for (number,) in rows) for rows in (drifting, pinned))
    return Period(number, last_match, last_member, settings.tau, ids, anchors)


def read_periods(connection: sqlite3.Connection) -> list[Period]:
    """All periods in their order."""
    rows = connection.execute(
        "SELECT number, last_match, last_member, tau, drifting, pinned, closed_at FROM periods ORDER BY number"
    )
    return [Period(*[*row[:4], *(_ids(row[0], ids) for ids in row[4:6]), row[6]]) for row in rows]


def _ids(number: Any, text: Any) -> tuple[int, ...]:
    ids = parse(text, list, f"period {number}")
    if not all(type(each) is int for each in ids):
        raise DamagedLeagueError(f"period {number}: expected a list of integers, got {reprlib.repr(text)}")
    return tuple(ids)


def insert_period(connection: sqlite3.Connection, period: Period) -> None:
    """Add a period to a database."""
    lists = {"drifting": json.dumps(period.drifting), "pinned": json.dumps(period.pinned)}
    insert(connection, "periods", **{**vars(period), **lists})


@dataclass(frozen=True)
class Inputs:
    """All that the ratings after a period follow from, so that they can be computed without the database."""

    period: Period
    members: Mapping[int, str]  # names by id, in the order of joining
    before: Mapping[str, Rating]  # ratings after the previous period
    results: Results  # of the period
    all_results: Results  # of the period and all before it


def read_inputs(connection: sqlite3.Connection, period: Period) -> Inputs:
    """The inputs of the period after the last one."""
    number, after_match = last_period(connection)
    return Inputs(
        period,
        dict(connection.execute("SELECT id, name FROM members ORDER BY id")),
        read_ratings(connection, number),
        read_results(connection, after_match, period.last_match),
        read_results(connection, 0, period.last_match),
    )


def derive(inputs: Inputs) -> dict[str, Rating]:
    """All ratings after a period, see `rate_members`. Members are in the order of joining.

    Raises ValueError for a period that is inconsistent with the members.
    """
    period = inputs.period
    names = {number: name for number, name in inputs.members.items() if number <= period.last_member}
    missing = [number for number in (*period.drifting, *period.pinned) if number not in names]
    if missing:
        raise ValueError(f"period {period.number}: names members of the ids {missing}, which it does not have")
    pinned = [names[number] for number in period.pinned]
    unrated = Rating()
    ratings = {name: inputs.before.get(name, ANCHOR_RATING if name in pinned else unrated) for name in names.values()}
    drifting = [names[number] for number in period.drifting]
    return rate_members(ratings, inputs.results, inputs.all_results, drifting=drifting, pinned=pinned, tau=period.tau)


def read_events(connection: sqlite3.Connection) -> list[Inputs]:
    """The inputs of all periods but the ratings before them and the results until them, which `derive_all` adds."""
    inputs, after_match = [], 0
    members = dict(connection.execute("SELECT id, name FROM members ORDER BY id"))
    for period in read_periods(connection):
        results = read_results(connection, after_match, period.last_match)
        after_match = period.last_match
        inputs.append(Inputs(period, members, {}, results, Results()))
    return inputs


def derive_all(events: Iterable[Inputs]) -> Iterator[tuple[int, dict[str, Rating]]]:
    """The number of each period and all ratings after it, computed from the matches alone. Raises as `derive`."""
    ratings: dict[str, Rating] = {}
    results = Results()
    for inputs in events:
        results.update(inputs.results)
        ratings = derive(dataclasses.replace(inputs, before=ratings, all_results=results))
        yield inputs.period.number, ratings


def read_ratings(
    connection: sqlite3.Connection, period: int, names: Collection[str] | None = None
) -> dict[str, Rating]:
    """The ratings after a period, as recorded, of all members or the named ones.

    Raises DamagedLeagueError for one that no rating can be.
    """
    ratings = {}
    for name, *numbers in read_numbers(connection, period):
        if names is None or name in names:
            try:
                ratings[name] = Rating(*numbers)
            except (TypeError, ValueError) as error:
                raise DamagedLeagueError(f"period {period}: rating of {name}: {error}: rebuild the ratings") from None
    return ratings


def read_numbers(connection: sqlite3.Connection, period: int) -> Iterator[tuple[str, float, float, float]]:
    """Name, rating, deviation and volatility of every member after a period, as recorded."""
    return connection.execute(
        "SELECT m.name, r.rating, r.deviation, r.volatility FROM ratings r JOIN members m ON m.id = r.member"
        " WHERE r.period = ? ORDER BY m.id",
        (period,),
    )


def write_ratings(connection: sqlite3.Connection, period: int, ratings: Iterable[Rating]) -> int:
    """Make these the ratings after a period, in the order of joining. Returns how many recorded ones were different."""
    ids = (row[0] for row in connection.execute("SELECT id FROM members ORDER BY id").fetchall())
    rows = connection.execute("SELECT member, rating, deviation, volatility FROM ratings WHERE period = ?", (period,))
    found = {row[0]: row for row in rows}
    right = {
        number: (number, each.rating, each.deviation, each.volatility)
        for number, each in zip(ids, ratings, strict=False)
    }
    changed: int = sum(found.get(number) != right.get(number) for number in found.keys() | right.keys())
    if changed:
        connection.execute("DELETE FROM ratings WHERE period = ?", (period,))
        connection.executemany(f"INSERT INTO ratings VALUES ({period}, ?, ?, ?, ?)", right.values())
    return changed


def replace_ratings(connection: sqlite3.Connection, derived: Mapping[int, Iterable[Rating]]) -> int:
    """Replace all ratings by those after each period. Returns how many were different."""
    changed = connection.execute("DELETE FROM ratings WHERE period NOT IN (SELECT number FROM periods)").rowcount
    return int(changed) + sum(write_ratings(connection, period, ratings) for period, ratings in derived.items())
