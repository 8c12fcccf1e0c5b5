"""A league's database: one SQLite file that several processes write to, and that survives a crash of any of them.

Every operation has its own connection and transaction. A transaction that writes takes the lock at its start, never
later: of two transactions that read before they write, one would fail.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import reprlib
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from echelon_env.storage.reading import parse_json, version_problem
from echelon_train.league.errors import DamagedLeagueError, LeagueError

DATABASE_FILE = "league.db"
FORMAT = "echelon-league"
VERSION = 5
BUSY_SECONDS = 60.0
"""How long to wait for another process's transaction, which takes milliseconds."""

MAX_VALUE_BYTES = 1 << 23
"""Size of the largest value that is read, far above that of a match of thousands of maps."""

MAX_TEXT = 4096
"""Characters of the longest text that is shown, such as a path."""

MAX_ROWS = {
    "meta": 100, "members": 10_000, "configs": 10_000, "promotions": 10_000, "periods": 100_000, "matches": 1_000_000,
    "ratings": 10_000_000,
}  # fmt: skip
"""Most rows of each table that are written."""

READ_FACTOR = 2
"""A table with at most so many times `MAX_ROWS` is read: a league that is over a limit can be read and repaired.

The memory for ratings grows with the square of the members."""

T = TypeVar("T", dict[str, Any], list[Any])

_SCHEMA = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")


def create_database(folder: Path, settings: str) -> None:
    """Create the database of a new league in a folder, with its settings as JSON. Raises OSError, LeagueError."""
    with _connection(folder, "rwc") as connection:
        rows = [("format", FORMAT), ("version", str(VERSION)), ("settings", settings)]
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        connection.execute("COMMIT")


def copy_database(folder: Path, target: Path) -> None:
    """Copy the database of the league in a folder, as of one moment, to another folder.

    Raises as `reading`, and OSError if the copy cannot be written. A stranger's file may have more bytes than it takes
    on its disk, so the room for them is asked for first.
    """
    file = folder / DATABASE_FILE
    size = file.stat().st_size if file.is_file() else 0
    if size > shutil.disk_usage(target).free:
        raise OSError(errno.ENOSPC, f"no room for a copy of {size:,} bytes", str(target / DATABASE_FILE))
    with reading(folder) as connection, _connection(target, "rwc") as copy:
        connection.backup(copy)


def reading(folder: Path) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    """A transaction that sees a league as of one moment.

    Raises LeagueError, with the reason, if the folder holds no league, one of another version or a damaged one.
    """
    return _transaction(folder, "BEGIN")


def writing(folder: Path) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    """A transaction without other writers, committed at the end of the block and rolled back if the block fails.

    Raises as `reading`; LeagueError if another process holds the lock for `BUSY_SECONDS`; OSError for a full disk.
    """
    return _transaction(folder, "BEGIN IMMEDIATE")


@contextlib.contextmanager
def _transaction(folder: Path, begin: str) -> Iterator[sqlite3.Connection]:
    if not (folder / DATABASE_FILE).is_file():
        missing = f"no {DATABASE_FILE}" if folder.exists() else "no such folder"
        raise LeagueError(f"{folder}: is no league ({missing})")
    for name in (f"{DATABASE_FILE}-journal", f"{DATABASE_FILE}-wal", f"{DATABASE_FILE}-shm"):
        with contextlib.suppress(FileNotFoundError):  # once asked, as other processes remove theirs
            if not stat.S_ISREG((folder / name).stat().st_mode):  # SQLite would wait for the end of a pipe
                raise LeagueError(f"{folder / name}: not a regular file")
    with _connection(folder, "rw") as connection:
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":  # by another program
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(begin)
        _check_schema(folder, connection)
        yield connection
        connection.execute("COMMIT")


@contextlib.contextmanager
def _connection(folder: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection, closed at the end, which rolls back what is not committed. Errors of SQLite are translated."""
    file = folder / DATABASE_FILE
    try:
        uri = f"{file.absolute().as_uri()}?mode={mode}"
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        ) as connection:
            connection.executescript(
                # EXTRA: with FULL the last transaction could be undone by a power cut, as its journal may reappear
                "PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON;"
                "PRAGMA recursive_triggers = ON;"  # otherwise REPLACE deletes rows without their triggers
                "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"  # the file may come from another machine
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            yield connection
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        raise _explained(file, error) from error


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """The format, the version and the settings as JSON."""
    keys = ("format", "version", "settings")
    found = connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?, ?)", keys)
    return {key: value for key, value in found if isinstance(value, str)}


def _check_schema(folder: Path, connection: sqlite3.Connection) -> None:
    """Raise LeagueError unless a database has the tables, indices and triggers of this version, and nothing else.

    Until this is known nothing but the list of tables is read: a stranger's views and triggers could run for ever.
    """
    expected, found = _expected_schema(_SCHEMA), _schema(connection)
    _check_format(folder, read_meta(connection) if found.get("meta") == expected["meta"] else {})
    problems = []
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            what = "is missing" if name not in found else "is foreign" if name not in expected else "has been changed"
            problems.append(f"the table, index or trigger {reprlib.repr(name)} {what}")
    if problems:
        raise DamagedLeagueError(f"{folder / DATABASE_FILE}: damaged: {'; '.join(problems[:4])}")
    for table, most in MAX_ROWS.items():
        if table != "ratings" and _rows(connection, table) > READ_FACTOR * most:  # ratings are read period by period
            raise DamagedLeagueError(
                f"{folder / DATABASE_FILE}: the table {table!r} has more than {READ_FACTOR * most:,} rows, or its ids "
                "are that far apart"
            )


def check_room(connection: sqlite3.Connection, table: str, rows: int = 1) -> None:
    """Raise LeagueError unless a table has room for more rows. To be called before they are inserted."""
    there, most = _rows(connection, table), MAX_ROWS[table]
    if there + rows > most:
        raise LeagueError(f"the league is full, with {there:,} {table} of at most {most:,}: begin another")


def insert(connection: sqlite3.Connection, table: str, **values: Any) -> int:
    """Add a row and return its id. Raises LeagueError, with nothing added, if the league is full."""
    check_room(connection, table)
    marks = ", ".join("?" * len(values))
    cursor = connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()])
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _rows(connection: sqlite3.Connection, table: str) -> int:
    """Number of rows of a table, or more if some were deleted."""
    if table == "ratings":
        count = "SELECT COUNT(*) FROM ratings"
    else:  # MAX and MIN in queries of their own need no scan
        count = f"SELECT COALESCE((SELECT MAX(rowid) FROM {table}) - (SELECT MIN(rowid) FROM {table}) + 1, 0)"
    (rows,) = connection.execute(count).fetchone()
    return int(rows)


def _check_format(folder: Path, meta: Mapping[str, str]) -> None:
    """Raise LeagueError unless a database is that of a league of this version."""
    if meta.get("format") != FORMAT:
        shown = reprlib.repr(meta.get("format"))
        raise LeagueError(f"{folder}: is no league (format {shown} in {DATABASE_FILE})")
    version = meta.get("version", "")
    if problem := version_problem(int(version) if version.isdecimal() and len(version) < 9 else version, VERSION):
        raise LeagueError(f"{folder}: {problem}")


def check_integrity(connection: sqlite3.Connection, *, quick: bool = False) -> list[str]:
    """Problems of the database file and its rows; empty for a sound one. `quick` does not compare indices with rows."""
    pragma = "quick_check" if quick else "integrity_check"
    problems = [row[0] for row in connection.execute(f"PRAGMA {pragma}(20)") if row[0] != "ok"]
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check").fetchmany(20):
        problems.append(f"a row of {table} refers to a missing row of {parent}")
    return problems


def is_text(value: Any) -> bool:
    """Whether a value is a printable text of at most `MAX_TEXT` characters: it is shown on terminals."""
    return isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()


def check_text(value: Any, what: str) -> str:
    """The value. Raises DamagedLeagueError unless `is_text`."""
    if not is_text(value):
        raise DamagedLeagueError(f"{what}: expected a printable text, got {reprlib.repr(value)}")
    return str(value)


def parse(text: Any, kind: type[T], what: str) -> T:
    """The list or object of a JSON text. Raises DamagedLeagueError for anything else."""
    try:
        value = parse_json(text)
    except (ValueError, AttributeError) as error:
        raise DamagedLeagueError(f"{what}: expected JSON, got {reprlib.repr(text)} ({error})") from error
    if not isinstance(value, kind):
        raise DamagedLeagueError(f"{what}: expected a JSON {kind.__name__}, got {reprlib.repr(value)}")
    return value


_SQL = re.compile(r"""('(?:[^']|'')*'|"[^"]*"|\[[^\]]*\]|`[^`]*`)|(?:--[^\n]*|/\*.*?\*/|[ \t\n\f\r])+""", re.DOTALL)
"""Quoted tokens, which stay, or comments and white space."""


@functools.cache
def _expected_schema(script: str) -> Mapping[str, str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(script)
        return _schema(fresh)


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    """The SQL of each table, index, view and trigger, by name, without comments and line breaks."""
    made = connection.execute("SELECT name, COALESCE(sql, '') FROM sqlite_master LIMIT 1000")
    return {name: _SQL.sub(lambda token: token[1] or " ", sql).strip() for name, sql in made}


def _explained(file: Path, error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary one
    if code == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
    if code == sqlite3.SQLITE_IOERR:
        return OSError(errno.EIO, f"{os.strerror(errno.EIO)} ({error})", str(file))
    if code == sqlite3.SQLITE_BUSY:
        return LeagueError(f"{file}: another process has kept the league locked for {BUSY_SECONDS:g} s")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedLeagueError(f"{file}: damaged ({error}); fsck says more")
    return LeagueError(f"{file}: {error}")
