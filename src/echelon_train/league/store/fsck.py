"""Checks of a league for damage."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from echelon_env.evaluate.stamps import document_hash
from echelon_train.league.errors import DamagedLeagueError
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.database import (
    DATABASE_FILE,
    check_integrity,
    copy_database,
    parse,
    reading,
    writing,
)
from echelon_train.league.store.members import MEMBERS_FOLDER, Promotion, check_files, read_members, read_promotions
from echelon_train.league.store.periods import (
    derive_all,
    read_events,
    read_numbers,
    read_periods,
    read_ratings,
    read_settings,
)
from echelon_train.league.store.promotion import conservative_score
from echelon_train.league.store.records import checked_columns, read_rows

_RESTORE = "restore the league from a copy"
_REBUILD = "rebuild the ratings"
_TOLERANCE = 1e-3  # points: machines and releases differ in the last bits of a fit, and the differences may grow
_VOLATILITY_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Finding:
    """A defect of a league."""

    subject: str  # what is damaged
    problem: str  # what is wrong, and its consequence
    remedy: str  # what to do


_Check = Callable[[Path, sqlite3.Connection], Iterator[Finding]]


def fsck(path: Path) -> list[Finding]:
    """Check the league in a folder for damage. Nothing is changed.

    Other processes go on writing while matches and ratings are checked, in a copy of the database in the folder for
    temporary files, and wait while the files of the members are checked. Returns an empty list for a sound league.
    Raises LeagueError if the folder holds no league or one of another version, or if another process keeps it locked;
    OSError if the disk fails or has no room for the copy.
    """
    findings: list[Finding] = []
    try:
        with tempfile.TemporaryDirectory(prefix="echelon-fsck-") as copy:
            copy_database(path, Path(copy))
            with reading(Path(copy)) as connection:
                findings += _found(_CHECKS, path, connection)
        with writing(path) as connection:  # locked: files of a member that is being added would look foreign
            findings += _found(_CHECKS_OF_FILES, path, connection)
    except DamagedLeagueError as error:
        findings.append(Finding(DATABASE_FILE, str(error), _RESTORE))
    return list(dict.fromkeys(findings))


def _found(checks: Iterable[_Check], path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    for check in checks:
        try:
            yield from check(path, connection)
        except (sqlite3.Error, DamagedLeagueError, ValueError, KeyError, TypeError) as error:
            yield Finding(DATABASE_FILE, f"cannot be read completely: {error}", _RESTORE)


def _check_database(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    for problem in check_integrity(connection):
        yield Finding(DATABASE_FILE, problem, _RESTORE)
    read_settings(path, connection)


def _check_members(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    for member in read_members(connection):
        for problem in check_files(path, member):
            folder = f"{member.weights_sha256}"[:12]
            remedy = f"restore the folder {folder}... from a copy of the league; until then the member cannot play"
            yield Finding(f"member {member.name}", problem, remedy)
    yield from _check_ids(connection, "members")


def _check_folder(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    """Find entries of the members' folder that belong to no member."""
    known = {row[0] for row in connection.execute("SELECT weights_sha256 FROM members")}
    folder = path / MEMBERS_FOLDER
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if entry.name not in known:
            left = "left by a process that was killed while it added a member, or foreign"
            yield Finding(str(entry), f"belongs to no member: {left}", "add the member again, or remove this")


def _check_configs(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    for name, document in connection.execute("SELECT hash, document FROM configs"):
        with contextlib.suppress(DamagedLeagueError):
            if document_hash(parse(document, dict, "config")) == name:
                continue
        yield Finding(f"config {name[:12]!r}", "altered: its SHA-256 is not the recorded one", _RESTORE)


def _check_matches(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    recorded = dict(connection.execute("SELECT uuid, content_sha256 FROM matches"))
    for row in read_rows(connection):
        subject, pinned = f"match {row.uuid}", recorded.pop(row.uuid)
        try:
            if row.content_sha256 == pinned:
                checked_columns(row)
            else:
                yield Finding(subject, "altered: its SHA-256 is not the recorded one", _RESTORE)
        except DamagedLeagueError as error:
            yield Finding(subject, str(error), _RESTORE)
    for uuid in recorded:
        yield Finding(f"match {uuid}", "orphaned: one of its players is no member", _RESTORE)
    yield from _check_ids(connection, "matches")


def _check_ids(connection: sqlite3.Connection, table: str) -> Iterator[Finding]:
    """Find deleted rows: ids are consecutive, and none is used twice."""
    (given,) = connection.execute(
        "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = ?", (table,)
    ).fetchone()
    (there,) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    if there != given:
        yield Finding(table, f"{given} were recorded and {there} remain: some were deleted", _RESTORE)


def _check_periods(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    last_match, last_member = 0, 0
    newest = [
        connection.execute(f"SELECT COALESCE(MAX(id), 0) FROM {name}").fetchone()[0] for name in ("matches", "members")
    ]
    for place, period in enumerate(read_periods(connection), 1):
        subject = f"period {period.number}"
        if period.number != place:
            yield Finding(subject, f"found where period {place} was expected: a period is missing", _RESTORE)
            return
        if period.last_match < last_match or period.last_member < last_member:
            yield Finding(subject, "ends before the previous period: the periods are out of order", _RESTORE)
        if period.last_match > newest[0] or period.last_member > newest[1]:
            yield Finding(subject, "refers to a missing match or member", _RESTORE)
        last_match, last_member = period.last_match, period.last_member


def _check_ratings(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    """Compare the ratings with those computed from the matches."""
    try:
        for number, ratings in derive_all(read_events(connection)):
            yield from _compare(connection, number, ratings)
    except ValueError as error:
        yield Finding("periods", f"no ratings can be computed from them: {error}", _RESTORE)


def _compare(connection: sqlite3.Connection, period: int, expected: Mapping[str, Rating]) -> Iterator[Finding]:
    found = {name: tuple(numbers) for name, *numbers in read_numbers(connection, period)}
    right = {name: (each.rating, each.deviation, each.volatility) for name, each in expected.items()}
    wrong = sorted(right.keys() ^ found.keys())
    try:
        for name in right.keys() & found.keys():
            if right[name] != found[name] and not _alike(expected[name], Rating(*found[name])):
                wrong.append(name)
    except (TypeError, ValueError) as error:
        yield Finding(f"ratings of period {period}", f"invalid: {name}: {error}", _REBUILD)
        return
    if wrong:
        problem = f"are not those computed from the matches: {', '.join(sorted(wrong)[:4])} ({len(wrong)} in all)"
        yield Finding(f"ratings of period {period}", problem, _REBUILD)


def _check_promotions(path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    """Compare every promotion with the recorded matches and ratings."""
    champion = None
    for reign in read_promotions(connection):
        subject = f"promotion {reign.id} of {reign.member}"
        if reign.previous != champion:
            yield Finding(subject, f"follows {reign.previous}, but the champion was {champion}", _RESTORE)
        champion = reign.member
        if reign.validation is not None and not _is_validated(connection, reign):
            problem = f"period {reign.period} has no validation match {reign.validation} of the two"
            yield Finding(subject, problem, _RESTORE)
        for name in _wrong_scores(connection, reign):
            problem = f"the score of {name} is not that of the ratings of period {reign.period}"
            yield Finding(subject, problem, f"{_REBUILD}; if that does not help, {_RESTORE}")
    yield from _check_ids(connection, "promotions")


def _is_validated(connection: sqlite3.Connection, reign: Promotion) -> bool:
    rows = read_rows(
        connection,
        "m.uuid = ? AND m.id <= (SELECT last_match FROM periods WHERE number = ?)",
        (str(reign.validation), reign.period),
    )
    return [(row.first, row.second) for row in rows] == [(reign.member, reign.previous)]


def _wrong_scores(connection: sqlite3.Connection, reign: Promotion) -> Iterator[str]:
    """The members whose conservative score differs from the recorded one."""
    ratings = read_ratings(connection, reign.period)
    for name, score in ((reign.member, reign.score), (reign.previous, reign.previous_score)):
        if name is None or score is None:
            continue
        found = conservative_score(ratings[name], reign.k) if name in ratings else math.nan
        if not math.isclose(found, score, rel_tol=0.0, abs_tol=_TOLERANCE * (1 + reign.k)):
            yield name


def _alike(expected: Rating, found: Rating) -> bool:
    return (
        abs(found.rating - expected.rating) <= _TOLERANCE
        and abs(found.deviation - expected.deviation) <= _TOLERANCE
        and abs(found.volatility - expected.volatility) <= _VOLATILITY_TOLERANCE
    )


_CHECKS = (_check_database, _check_configs, _check_matches, _check_periods, _check_ratings, _check_promotions)
_CHECKS_OF_FILES = (_check_members, _check_folder)
