"""Leagues that are large, or full, or used by others while their ratings are computed."""

import dataclasses
import sys
from types import SimpleNamespace

import pytest

from echelon_env import make_config
from echelon_env.evaluate.stamps import battle_hash
from echelon_train.league.errors import LeagueError
from echelon_train.league.store import database, periods
from echelon_train.league.store.database import writing
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.members import Promotion, insert_promotion
from echelon_train.league.store.promotion import conservative_score
from echelon_train.league.store.registry import League
from train.league.leagues import CONFIG, played


def add_match(league):
    assert league.record(played("novice", "expert", (1, 1), 50))


@pytest.mark.parametrize(("meanwhile", "left"), [(add_match, 1), (League.rate_matches, 0), (League.rebuild, 0)])
def test_a_league_is_used_while_a_period_is_computed(league, monkeypatch, meanwhile, left):
    """A match that is added belongs to the next period. If what the ratings follow from has changed, they do, too."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    derive = periods.derive
    calls = []

    def derive_slowly(inputs):
        calls.append(inputs.period.number)
        if len(calls) == 1:
            meanwhile(league)
        return derive(inputs)

    league.record(played("novice", "trivial", (1, 1), 49))
    if meanwhile is League.rebuild:
        with writing(league.path) as connection:
            connection.execute("UPDATE ratings SET rating = 1600 WHERE member = 2")
    monkeypatch.setattr(periods, "derive", derive_slowly)
    assert league.rate_matches() == (meanwhile is not League.rate_matches)
    assert league.periods()[-1] == calls[-1] and (len(calls) > 1) == (meanwhile is not add_match)
    assert league.unrated_matches() == left and fsck(league.path) == []


def test_a_league_is_used_while_its_ratings_are_computed_again(league, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    derive_all = periods.derive_all
    calls = []

    def derive_slowly(events):
        derived = [*derive_all(events)]
        calls.append(len(derived))
        if len(calls) == 1:
            league.rate_matches()
        return derived

    league.record(played("novice", "trivial", (1, 1), 49))
    with writing(league.path) as connection:
        connection.execute("UPDATE ratings SET rating = 1600 WHERE member = 2")
    monkeypatch.setattr(periods, "derive_all", derive_slowly)
    assert league.rebuild() > 0
    assert calls == [1, 2], "the period that was closed meanwhile is computed, too"
    assert fsck(league.path) == [] and league.rebuild() == 0


def test_a_league_is_used_while_it_is_checked(league, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)

    def derive_slowly(events):
        add_match(league)
        return periods.derive_all(events)

    monkeypatch.setattr(sys.modules[fsck.__module__], "derive_all", derive_slowly)
    assert fsck(league.path) == []
    assert league.unrated_matches() == 1


def test_a_check_needs_room_for_its_copy(league, monkeypatch):
    """A stranger's file may have more bytes than it takes."""
    monkeypatch.setattr(database.shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000))
    with pytest.raises(OSError, match=r"no room for a copy of [\d,]+ bytes"):
        fsck(league.path)


def other_config():
    silent = make_config(CONFIG, abilities={"messages": False})
    one = played("novice", "trivial", number=9)
    return dataclasses.replace(
        one, match=dataclasses.replace(one.match, config_hash=battle_hash(silent)), config=silent
    )


def promote(league):
    score = conservative_score(league.ratings()["expert"])
    with writing(league.path) as connection:
        insert_promotion(connection, Promotion(1, "expert", None, None, league.periods()[-1], 1.0, score, None))


WRITERS = {
    "members": lambda league: league.add_scripted("veteran"),
    "matches": lambda league: league.record(played("novice", "expert", (1, 1), 50)),
    "configs": lambda league: league.record(other_config()),
    "periods": League.rate_matches,
    "ratings": League.rate_matches,
    "promotions": promote,
}


def rows(league, table):
    with writing(league.path) as connection:
        return connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]


@pytest.mark.parametrize("table", WRITERS)
def test_writers_refuse_what_a_league_has_no_room_for(league, monkeypatch, table):
    league.record(played("novice", "trivial", (1, 1), 49))
    counts = {name: rows(league, name) for name in WRITERS}
    monkeypatch.setitem(database.MAX_ROWS, table, counts[table])
    with pytest.raises(LeagueError, match=rf"the league is full, with {counts[table]} {table} of at most"):
        WRITERS[table](league)
    assert {name: rows(league, name) for name in WRITERS} == counts, "nothing is added"
    monkeypatch.undo()
    WRITERS[table](league)
    assert rows(league, table) > counts[table]


def test_a_league_over_its_limits_is_read_and_repaired(league, monkeypatch):
    league.record(played("novice", "trivial", (1, 1), 49))
    league.rate_matches()
    promote(league)
    for table in WRITERS:
        monkeypatch.setitem(database.MAX_ROWS, table, max(1, rows(league, table) - 1))
    opened = League.open(league.path)
    assert opened.standings() and opened.matches() and len(opened.history()) == 2
    with writing(league.path) as connection:
        connection.execute("UPDATE ratings SET rating = 1600 WHERE member = 2")
    assert fsck(league.path)
    assert opened.rebuild() == 2
    assert fsck(league.path) == []
