import re
import shutil

import pytest

from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import database
from echelon_train.league.store.database import DATABASE_FILE, reading, writing
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.records import read_rows
from echelon_train.league.store.registry import League
from train.league.leagues import change, number_uuid, played, saved, small_league


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leagues")
    league = small_league(folder / "league")
    league.add_checkpoint(saved(folder / "a"), "main", "learner")
    league.record(played("learner", "novice", (1, 0), 4))
    league.rate_matches()
    league.record(played("learner", "expert", (1, 0), 5))
    return league


@pytest.fixture
def league(sound, tmp_path):
    """A copy that may be damaged."""
    shutil.copytree(sound.path, tmp_path / "league")
    return League.open(tmp_path / "league")


def problems(league):
    return [(finding.subject, finding.problem) for finding in fsck(league.path)]


def test_a_sound_league(league):
    before = (league.path / DATABASE_FILE).read_bytes()
    assert fsck(league.path) == []
    assert (league.path / DATABASE_FILE).read_bytes() == before
    change(league)
    assert fsck(league.path) == [], "after removing and restoring the triggers, as below"


@pytest.mark.parametrize(
    ("statement", "subject", "problem"),
    [
        ("UPDATE matches SET outcomes = '[-1, 0]' WHERE id = 4", f"match {number_uuid(4)}", "altered: its SHA-256"),
        ("UPDATE members SET name = 'x' WHERE id = 2", f"match {number_uuid(1)}", "altered: its SHA-256"),
        ("UPDATE matches SET first = 99 WHERE id = 2", f"match {number_uuid(2)}", "orphaned: one of its players is no"),
        ("DELETE FROM matches WHERE id = 5", "matches", "5 were recorded and 4 remain: some were deleted"),
        ("DELETE FROM members WHERE id = 3", "members", "4 were recorded and 3 remain: some were deleted"),
        ("UPDATE configs SET document = '{}'", "config ", "altered: its SHA-256"),
        ("DELETE FROM periods WHERE number = 1", "period 2", "found where period 1 was expected: a period is missing"),
        ("UPDATE periods SET last_match = 2 WHERE number = 2", "period 2", "ends before the previous period"),
        ("UPDATE periods SET last_match = 77 WHERE number = 2", "period 2", "refers to a missing match or member"),
        ("UPDATE periods SET pinned = '[99]' WHERE number = 1", "periods",
         "no ratings can be computed from them: period 1: names"),
        ("UPDATE periods SET tau = 9", "periods", "no ratings can be computed from them: tau: expected a number"),
        ("UPDATE members SET origin = '?'", DATABASE_FILE, "cannot be read completely"),
        ("UPDATE meta SET value = '?' WHERE key = 'settings'", DATABASE_FILE, "its settings cannot be read"),
        ("UPDATE ratings SET rating = rating + 0.01 WHERE member = 3", "ratings of period 1",
         "matches: expert (1 in all)"),
        ("DELETE FROM ratings WHERE period = 2 AND member = 1", "ratings of period 2",
         "the matches: novice (1 in all)"),
        ("UPDATE ratings SET deviation = -0.0005 WHERE member = 1", "ratings of period 2",
         "'deviation': expected a number from 0.0"),
        ("UPDATE ratings SET volatility = volatility * 1.001", "ratings of period 2", "are not those computed"),
        ("CREATE TABLE mine (x)", DATABASE_FILE, "the table, index or trigger 'mine' is foreign"),
        ("UPDATE members SET name = char(27) || '[2J' WHERE id = 2", DATABASE_FILE, r"member 2: name: got '\x1b[2J'"),
        ("UPDATE members SET name = hex(zeroblob(5000000)) WHERE id = 2", DATABASE_FILE, "string or blob too big"),
        ("UPDATE members SET name = '../../x' WHERE id = 2", DATABASE_FILE, "member 2: name: got '../../x'"),
        ("UPDATE members SET parent = 4 WHERE id = 4", DATABASE_FILE, "member 4: parent: got 4"),
        ("UPDATE members SET age = 1e30 WHERE id = 4", DATABASE_FILE, "member 4: age: got 1e+30"),
        ("UPDATE members SET origin = '[]' WHERE id = 1", DATABASE_FILE, "expected a JSON dict, got []"),
        ("UPDATE matches SET scenario = char(27) WHERE id = 1", DATABASE_FILE,
         r"expected a printable text, got '\x1b'"),
        ("UPDATE periods SET drifting = '[\"x\"]'", DATABASE_FILE, "expected a list of integers"),
    ],
)  # fmt: skip
def test_changed_rows_are_found(league, statement, subject, problem):
    change(league, statement)
    found = problems(league)
    assert any(s.startswith(subject) and problem in p for s, p in found), found
    assert all(p.isprintable() and len(p) < 500 for _, p in found)


@pytest.mark.parametrize("table", ["meta", "members", "configs", "periods", "matches"])
def test_a_table_with_too_many_rows_is_not_read(league, monkeypatch, table):
    monkeypatch.setitem(database.MAX_ROWS, table, 0)
    (finding,) = fsck(league.path)
    assert f"the table '{table}' has more than 0 rows" in finding.problem
    with pytest.raises(LeagueError, match="has more than 0 rows"):
        League.open(league.path)


OUTCOMES = ["[7,7]", "[1]", "[]", "[true,0]", "[1,0.5]", '["1",0]', "[1, 0]", "x"]
DOCUMENTS = ["[" * 20_000, "{}", '{"battles":3}', "NaN"]


@pytest.mark.parametrize(
    ("column", "text"), [("outcomes", text) for text in OUTCOMES] + [("document", text) for text in DOCUMENTS]
)
def test_texts_that_no_release_writes_are_found_also_with_a_matching_hash(league, column, text):
    change(league, f"UPDATE matches SET {column} = '{text}' WHERE id = 4")
    with reading(league.path) as connection:
        row = next(row for row in read_rows(connection) if row.uuid == number_uuid(4))
    change(league, f"UPDATE matches SET content_sha256 = '{row.content_sha256}' WHERE id = 4")
    found = [problem for subject, problem in problems(league) if subject == f"match {row.uuid}"]
    assert re.search("is no match|expected JSON|expected a JSON dict", found[0])
    for read in (league.matches, league.pair_scores)[: 1 + (column == "outcomes")]:
        with pytest.raises(LeagueError, match=r"is no match|expected .*JSON|outcomes of a match"):
            read()


def test_ratings_are_computed_again_also_if_a_period_is_missing(league):
    for table, key in (("ratings", "period"), ("periods", "number")):
        change(league, f"DELETE FROM {table} WHERE {key} = 1")
    change(league, "UPDATE ratings SET rating = 1600 WHERE member = 2")
    damaged = League.open(league.path)
    assert damaged.periods() == [2]
    assert damaged.rebuild() == 1 and damaged.rebuild() == 0
    assert problems(league)[0][1].endswith("a period is missing")


def test_matches_of_a_missing_member_are_refused(league):
    change(league, "UPDATE matches SET first = 99 WHERE id = 2")
    for read in (league.rebuild, league.results, league.pair_scores):
        with pytest.raises(LeagueError, match="expected the ids of members, got 99"):
            read()


@pytest.mark.parametrize("name", [WEIGHTS_FILE, JSON_FILE])
def test_files_of_a_member(league, name):
    file = league.member_policy("learner") / name
    file.write_bytes(file.read_bytes() + b" ")
    ((subject, problem),) = problems(league)
    assert subject == "member learner" and problem.startswith(f"{file}: altered")
    for remove, what in ((file, "file"), (file.parent, "folder"), (file.parent.parent, "folder")):
        shutil.rmtree(remove) if remove.is_dir() else remove.unlink()
        gone = file if what == "file" else file.parent
        assert problems(league) == [("member learner", f"{gone}: the {what} is missing")]


def test_stray_files(league):
    folder = league.member_policy("learner")
    stray = [folder / "notes.txt", folder.with_name("0" * 64), folder.with_name(".0.x")]
    for path in stray:
        path.mkdir()
    found = fsck(league.path)
    assert [finding.subject for finding in found] == ["member learner", str(stray[2]), str(stray[1])]
    assert found[0].problem == f"{stray[0]}: is no part of a member"
    assert "belongs to no member: left by a process that was killed" in found[1].problem


def test_damage_to_the_file(league):
    file = league.path / DATABASE_FILE
    data = file.read_bytes()
    file.write_bytes(data[:4096] + b"\xff" * 4096 * 3 + data[4 * 4096 :])
    assert {finding.remedy for finding in fsck(league.path)} == {"restore the league from a copy"}
    file.write_bytes(b"no database " * 1000)
    (finding,) = fsck(league.path)
    assert "file is not a database" in finding.problem


def test_what_is_no_damage_is_refused(tmp_path, league, monkeypatch):
    with pytest.raises(LeagueError, match="is no league"):
        fsck(tmp_path)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    with writing(league.path), pytest.raises(LeagueError, match="another process has kept the league locked"):
        fsck(league.path)
    monkeypatch.setattr(database, "VERSION", 0)
    with pytest.raises(LeagueError, match="a newer release made it"):
        fsck(league.path)
