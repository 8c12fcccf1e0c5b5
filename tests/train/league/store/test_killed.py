"""Processes that are gone from one moment to the next while they write to a league."""

import os
import signal
import subprocess

import pytest

from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.store.database import DATABASE_FILE
from echelon_train.league.store.fsck import fsck
from train.league.leagues import (
    SCRIPT_ENVIRONMENT,
    number_uuid,
    played,
    run_script,
    saved,
    script_command,
    small_league,
    uuids,
)

FORKING = """
import os, sys
from echelon_train.league.store import database, members, registry
from train.league import leagues

for line in sys.stdin:
    script, *arguments = eval(line)
    child = os.fork()
    if not child:
        sys.argv[1:] = arguments
        exec(script)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs scripts in processes of their own, each of which has imported everything already."""

KILLED = """
import functools, os, signal, sqlite3, sys
from pathlib import Path
from echelon_train.league.store import database, members, registry
from echelon_train.league.store.registry import League
from train.league.leagues import played

def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

class Killed(sqlite3.Connection):
    def execute(self, sql, *args):
        if sql == "BEGIN IMMEDIATE":
            super().execute("PRAGMA cache_size = 1")  # what is changed gets into the file before it is committed
        if sql == "COMMIT":
            {before_commit}
            super().execute(sql)
            kill()
        return super().execute(sql, *args)

league = League.open(Path(sys.argv[1]))
database.sqlite3.connect = functools.partial(sqlite3.connect, factory=Killed)
{patch}
{act}
"""

RECORD = 'league.record(played("novice", "expert", (1, 0), 77, padding=200_000))'
CLOSE = "league.close_period()"
ADD = 'league.add_checkpoint(Path(sys.argv[2]), "main", "new")'

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked")


@pytest.fixture(scope="module")
def forking():
    with subprocess.Popen(
        script_command(FORKING), env=SCRIPT_ENVIRONMENT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process


@pytest.fixture
def killed(forking, league):
    def run(act, *arguments, before_commit="kill()", patch=""):
        script = KILLED.format(act=act, before_commit=before_commit, patch=patch)
        print([script, str(league.path), *map(str, arguments)], file=forking.stdin, flush=True)
        assert int(forking.stdout.readline()) == -signal.SIGKILL

    return run


@pytest.fixture
def league(tmp_path):
    return small_league(tmp_path / "league")


def test_recording(league, killed):
    before, history = uuids(league), league.history()
    size = (league.path / DATABASE_FILE).stat().st_size
    killed(RECORD)
    assert (league.path / DATABASE_FILE).stat().st_size > size + 100_000, "some of it has been written"
    assert fsck(league.path) == []
    assert (uuids(league), league.history()) == (before, history)
    again = played("novice", "expert", (1, 0), 77, padding=200_000)
    assert league.record(again)
    assert not league.record(again)


def test_recording_whose_answer_is_lost(league, killed):
    """It is delivered again, and counted once."""
    killed(RECORD, before_commit="pass")
    assert uuids(league)[-1] == number_uuid(77)
    assert not league.record(played("novice", "expert", (1, 0), 77, padding=200_000))
    assert fsck(league.path) == []


@pytest.mark.parametrize(("before_commit", "closed"), [("kill()", 1), ("pass", 2)])
def test_closing_a_period(league, killed, before_commit, closed):
    league.record(played("novice", "expert", (1, 0), 7))
    history = league.history()
    killed(CLOSE, before_commit=before_commit)
    assert fsck(league.path) == []
    assert len(league.history()) == closed and league.history()[1] == history[1]
    if closed == 1:
        assert league.close_period() == 2
    assert league.rebuild() == 0
    assert league.ratings(2)["expert"] != league.ratings(1)["expert"]


def test_closing_a_period_before_its_ratings_are_there(league, killed):
    killed(CLOSE, patch="registry.insert_ratings = kill")
    assert fsck(league.path) == [] and len(league.history()) == 1


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ({"patch": "members.new_folder = kill"}, ""),
        ({"patch": "members.write_bytes = kill"}, "left by a process that was killed"),
        ({"patch": "registry.place_files = lambda *args: (members.place_files(*args), kill())"}, "left by a process"),
        ({}, "left by a process"),
    ],
)
def test_adding_a_member(league, killed, tmp_path, moment, left):
    """What is left of it is found, and is not in the way."""
    checkpoint = saved(tmp_path / "a")
    killed(ADD, checkpoint, **moment)
    assert [member.name for member in league.members()] == ["novice", "trivial", "expert"]
    assert [left in finding.problem for finding in fsck(league.path)] == [True] * bool(left)
    member = league.add_checkpoint(checkpoint, "main", "new")
    assert load_checkpoint(league.member_policy("new")).steps == member.age
    assert fsck(league.path) == []


def test_adding_a_member_whose_answer_is_lost(league, killed, tmp_path):
    killed(ADD, saved(tmp_path / "a"), before_commit="pass")
    assert load_checkpoint(league.member_policy("new")).steps == 100
    assert fsck(league.path) == []


WHENEVER = """
import functools, os, random, signal, sqlite3, sys, time, traceback
from pathlib import Path
from echelon_train.league.store import database
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from train.league.leagues import number_uuid, played, saved

WRITERS, CHECKPOINTS = 4, 12
folder, kills = Path(sys.argv[1]), int(sys.argv[2])
checkpoints = [saved(folder / f"checkpoint{seed}", seed) for seed in range(CHECKPOINTS)]
league, moments, told = League.open(folder / "league"), random.Random(1), folder / "told"
told.touch()

class Spilling(sqlite3.Connection):
    def execute(self, sql, *args):
        if sql == "BEGIN IMMEDIATE":
            super().execute("PRAGMA cache_size = 1")
        return super().execute(sql, *args)

def write_for_ever(number):
    database.sqlite3.connect = functools.partial(sqlite3.connect, factory=Spilling)
    with told.open("a") as file:
        while True:
            league.record(played("novice", "expert", (1, number % 2), number, padding=20_000))
            print(number, file=file, flush=True)
            if number % 3 == 0:
                league.close_period()
            if number % 5 == 0:
                try:
                    league.add_checkpoint(checkpoints[number // 5 % CHECKPOINTS], "main")
                except LeagueError as error:
                    assert "its weights are those of the member" in str(error), error
            number += 1

def begin(number):
    process = os.fork()
    if not process:
        try:
            write_for_ever(number)
        finally:
            traceback.print_exc()
            os._exit(1)
    return process

def check():
    there = [each.uuid for each in league.matches()]
    heard = [number_uuid(int(line)) for line in told.read_text().split()]
    assert set(heard) <= set(there) and len(set(there)) == len(there)
    found = [finding.problem for finding in fsck(league.path) if "belongs to no member" not in finding.problem]
    assert found == [], found

writers = [begin(1000 * n) for n in range(1, WRITERS + 1)]
for n in range(kills):
    time.sleep(moments.uniform(0.02, 0.4))
    place = moments.randrange(WRITERS)
    os.kill(writers[place], signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(writers[place], 0)[1]) == signal.SIGKILL, "the process failed by itself"
    writers[place] = begin(1000 * (n + WRITERS + 1))
    if n % 10 == 0:
        check()
for process in writers:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
check()
assert league.rebuild() == 0
print(len(league.matches()), len(league.history()), len(league.members()))
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_keeps_what_was_recorded_and_the_other_writers_continue(league, tmp_path):
    ended = run_script(WHENEVER, tmp_path, 60)
    assert ended.returncode == 0, ended.stderr
    matches, periods, members = map(int, ended.stdout.split())
    assert matches > 100 and periods > 30 and members > 6
    assert league.record(played("novice", "expert", (1, 1), 9))
