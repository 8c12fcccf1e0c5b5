"""Processes that are killed while they write to a league."""

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
    saved,
    script_command,
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
"""Runs scripts in new processes, each of which has imported everything already."""

KILLED = """
import functools, os, signal, sqlite3, sys
from pathlib import Path
from echelon_train.league.store import database, members, registry
from echelon_train.league.store.registry import League
from train.league.leagues import played

def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

class Killed(sqlite3.Connection):
    writes = False

    def execute(self, sql, *args):
        if sql == "BEGIN IMMEDIATE":
            self.writes = True
            super().execute("PRAGMA cache_size = 1")  # what is changed gets into the file before it is committed
        if sql == "COMMIT" and self.writes:
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
def exit_code(forking):
    def run(script, *arguments):
        print([script, *map(str, arguments)], file=forking.stdin, flush=True)
        return int(forking.stdout.readline())

    return run


@pytest.fixture
def killed(exit_code, league):
    def run(act, *arguments, before_commit="kill()", patch=""):
        script = KILLED.format(act=act, before_commit=before_commit, patch=patch)
        assert exit_code(script, league.path, *arguments) == -signal.SIGKILL

    return run


@pytest.mark.long
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


def test_a_recorded_match_whose_confirmation_is_lost(league, killed):
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
    """The files that it leaves are found, and do not prevent adding the member again."""
    checkpoint = saved(tmp_path / "a")
    killed(ADD, checkpoint, **moment)
    assert [member.name for member in league.members()] == ["novice", "trivial", "expert"]
    assert [left in finding.problem for finding in fsck(league.path)] == [True] * bool(left)
    member = league.add_checkpoint(checkpoint, "main", "new")
    assert load_checkpoint(league.member_policy("new")).steps == member.age
    assert fsck(league.path) == []


def test_an_added_member_whose_confirmation_is_lost(league, killed, tmp_path):
    killed(ADD, saved(tmp_path / "a"), before_commit="pass")
    assert load_checkpoint(league.member_policy("new")).steps == 100
    assert fsck(league.path) == []


AMONG_WRITERS = """
import os, signal, sys, time
from pathlib import Path
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from train.league.leagues import number_uuid, played

WRITERS = 3
folder, scripts = Path(sys.argv[1]), sys.argv[3:]  # the scripts expect the checkpoint as their second argument
league = League.open(folder)
recorded, stop = os.pipe(), os.pipe()

def fork(act):
    process = os.fork()
    if not process:
        act()
        os._exit(0)
    return process

def write(writer):
    os.close(stop[1])
    os.set_blocking(stop[0], False)
    number = 1000 * (writer + 1)
    while True:
        try:
            os.read(stop[0], 1)
            return
        except BlockingIOError:
            pass
        assert league.record(played("novice", "expert", (1, number % 2), number))
        os.write(recorded[1], f"{number:8}".encode())
        if number % 10 == 1:
            league.close_period()
        number += 1
        time.sleep(0.05)  # SQLite does not queue writers: one that never pauses keeps the others out

def check():
    there = [each.uuid for each in league.matches()]
    assert set(map(number_uuid, reported)) <= set(there) and len(set(there)) == len(there)
    problems = [finding.problem for finding in fsck(folder)]
    assert all("left by a process that was killed" in problem for problem in problems), problems

reported = []
writers = [fork(lambda: write(writer)) for writer in range(WRITERS)]
for script in scripts:
    victim = fork(lambda: exec(script, {}))
    assert os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]) == -signal.SIGKILL
    check()
    there, continuing = {each.uuid for each in league.matches()}, set()
    while len(continuing) < WRITERS:
        reported.append(int(os.read(recorded[0], 8)))
        if number_uuid(reported[-1]) not in there:
            continuing.add(reported[-1] // 1000)
os.close(stop[0]), os.close(stop[1])
assert [os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) for writer in writers] == [0] * WRITERS
os.close(recorded[1])
while number := os.read(recorded[0], 8):
    reported.append(int(number))
check()
"""


@pytest.mark.long
def test_a_killed_writer_neither_harms_nor_stops_the_others(exit_code, league, tmp_path):
    """Five writers are killed, each at another moment, while three others write all the time."""
    placed = "registry.place_files = lambda *args: (members.place_files(*args), kill())"
    moments = [
        (RECORD, "kill()", ""),
        (RECORD, "pass", ""),
        (CLOSE, "kill()", ""),
        (ADD, "kill()", placed),
        (ADD, "pass", ""),
    ]
    before = len(league.history())
    checkpoint = saved(tmp_path / "checkpoint")
    scripts = [KILLED.format(act=act, before_commit=commit, patch=patch) for act, commit, patch in moments]
    assert exit_code(AMONG_WRITERS, league.path, checkpoint, *scripts) == 0
    assert uuids(league).count(number_uuid(77)) == 1, "the second recording was committed"
    assert [member.name for member in league.members()] == ["novice", "trivial", "expert", "new"]
    assert len(league.history()) > before
    assert fsck(league.path) == []
    assert league.rebuild() == 0
    assert league.record(played("novice", "expert", (1, 1), 9)) and league.close_period() == len(league.history())
