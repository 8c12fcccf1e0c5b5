import contextlib
import sqlite3
import threading

import pytest

from echelon_train.league.errors import LeagueError
from echelon_train.league.store import database
from echelon_train.league.store.database import DATABASE_FILE, reading, writing
from echelon_train.league.store.registry import League
from train.league.leagues import played, uuids


def raw(league):
    """A connection without the league's settings."""
    return sqlite3.connect(league.path / DATABASE_FILE, isolation_level=None)


def test_settings_of_a_connection_and_a_transaction_that_fails(league):
    def fail():
        with writing(league.path) as connection:
            connection.execute("UPDATE members SET state = 'retired'")
            raise KeyError

    with reading(league.path) as connection:
        names = ("synchronous", "foreign_keys", "journal_mode")
        values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    assert values == [3, 1, "delete"]
    with pytest.raises(KeyError):
        fail()
    assert {member.state for member in league.members()} == {"active"}


def test_a_write_ahead_log_is_given_up(league):
    """Before SQLite 3.51.3 a race loses transactions of one."""
    before = uuids(league)
    with contextlib.closing(raw(league)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal"
    assert league.record(played("novice", "expert", number=9))
    with reading(league.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    assert uuids(league) == [*before, played("novice", "expert", number=9).uuid]


def test_a_writer_waits_for_another_one_before_it_reads(league, monkeypatch):
    """So what it has read is still true when it writes."""
    started, seen = threading.Event(), []

    def count():
        started.set()
        with writing(league.path) as connection:
            seen.append(connection.execute("SELECT COUNT(*) FROM configs").fetchone()[0])

    other = threading.Thread(target=count)
    with writing(league.path) as connection:
        other.start()
        started.wait()
        connection.execute("INSERT INTO configs VALUES ('x', '{}')")
        other.join(0.2)
        assert not seen
    other.join()
    assert seen == [2]


def test_a_lock_that_is_kept_ends_in_an_error(league, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    with writing(league.path):
        assert len(league.members()) == 3, "reading continues"
        with pytest.raises(LeagueError, match=r"another process has kept the league locked for 0\.01 s"):
            league.record(played("novice", "expert", number=9))
    assert league.record(played("novice", "expert", number=9))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE matches SET first = 1",
        "UPDATE matches SET outcomes = '[]'",
        "DELETE FROM matches",
        "INSERT OR REPLACE INTO matches SELECT * FROM matches",
        "UPDATE members SET name = 'x' WHERE id = 1",
        "DELETE FROM members",
        "UPDATE configs SET document = '{}'",
        "DELETE FROM configs",
        "UPDATE periods SET last_match = 0",
        "DELETE FROM periods",
        "INSERT INTO members (name, kind, state, age, created_at, origin) VALUES ('x', 'main', 'active', 0, '', '{}')",
        "INSERT INTO ratings VALUES (1, 99, 1500, 350, 0.06)",
        "INSERT INTO ratings VALUES (2, 1, 1500, 350, 0.06)",
    ],
)
def test_events_cannot_be_changed(league, change):
    with (
        pytest.raises(LeagueError, match=r"never|only the state|constraint failed"),
        writing(league.path) as connection,
    ):
        connection.execute(change)
    assert uuids(league) == [played("novice", "expert", number=n).uuid for n in (1, 2, 3)]


def test_what_is_no_league(tmp_path):
    for path, reason in ((tmp_path / "missing", "no such folder"), (tmp_path, r"no league\.db")):
        with pytest.raises(LeagueError, match=rf"is no league \({reason}\)"):
            League.open(path)
    assert list(tmp_path.iterdir()) == [], "reading creates none"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("version", f"'{database.VERSION + 1}'", r"version \d of .*, this release reads \d: a newer release made it"),
        ("version", f"'{database.VERSION - 1}'", r"version \d of .*, this release reads \d: a release before 0.3"),
        ("version", "'x'", "version 'x' of the format"),
        ("version", "x'32'", "version '' of the format"),
        ("format", "x'32'", "is no league"),
        ("settings", "x'32'", "its settings cannot be read"),
    ],
)
def test_another_version_and_values_that_are_no_texts(league, key, value, reason):
    connection = raw(league)
    connection.execute(f"UPDATE meta SET value = {value} WHERE key = '{key}'")
    connection.close()
    with pytest.raises(LeagueError, match=reason):
        League.open(league.path)


@pytest.mark.parametrize("damage", ["text", "half", "zeros", "nothing"])
def test_a_damaged_database_is_refused(league, damage):
    file = league.path / DATABASE_FILE
    data = file.read_bytes()
    new = {
        "text": b"not a database " * 1000,
        "half": data[: len(data) // 2],
        "zeros": data[:8192] + bytes(len(data) - 8192),
        "nothing": b"",
    }[damage]
    file.write_bytes(new)
    with pytest.raises(LeagueError, match=r"damaged|is no league \(format None"):
        League.open(league.path)
    assert file.read_bytes() == new


def test_comments_are_no_part_of_the_schema(league, monkeypatch):
    monkeypatch.setattr(database, "_SCHEMA", database._SCHEMA.replace("-- ", "-- newly: ").replace("    ", "  "))
    assert League.open(league.path).members() == league.members()


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {} FROM n"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (f"ALTER TABLE meta RENAME TO m; CREATE VIEW meta AS {ENDLESS.format('x AS key, x AS value')}", "is no league"),
        (f"DROP TABLE ratings; CREATE VIEW ratings AS {ENDLESS.format('x')}", "'ratings' has been changed"),
        (
            # as long as comments are stripped without regard to quotes, this is the schema's trigger
            "DROP TRIGGER members_stay; CREATE TRIGGER members_stay BEFORE DELETE ON members BEGIN "
            "SELECT RAISE(ABORT, 'members--') WHERE 0 AND '' = ('\n are never deleted'); END",
            "'members_stay' has been changed",
        ),
        (
            "DROP TRIGGER matches_stay; CREATE TRIGGER mine AFTER INSERT ON matches BEGIN SELECT 1; END;"
            "DROP INDEX matches_of_first; CREATE INDEX matches_of_first ON matches (second);",
            "'matches_of_first' has been changed; .*'matches_stay' is missing; .*'mine' is foreign",
        ),
        (
            f"CREATE TRIGGER endless AFTER INSERT ON matches BEGIN INSERT INTO meta {ENDLESS.format('x, x')}; END",
            "'endless' is foreign",
        ),
    ],
)
def test_views_and_triggers_of_strangers_are_not_run(league, script, message):
    connection = raw(league)
    connection.executescript(script)
    connection.close()
    for use in (League.open, lambda path: league.members(), lambda path: league.record(played("novice", "trivial"))):
        with pytest.raises(LeagueError, match=message):
            use(league.path)
