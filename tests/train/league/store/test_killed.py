"""Processes that are killed while they write to a league."""

import os
import signal
import subprocess

import pytest

from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.store.database import DATABASE_FILE
from echelon_train.league.store.fsck import fsck
from train.league.leagues import SCRIPT_ENVIRONMENT, number_uuid, played, saved, script_command, uuids

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
CLOSE = "league.rate_matches()"
PLACED = "lambda *args: (members.place_files(*args), kill())"
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
@pytest.mark.parametrize("before_commit", ["kill()", "pass"])
def test_recording(league, killed, before_commit):
    """A match that was recorded, and whose confirmation is lost, is delivered again and counted once."""
    before, history = uuids(league), league.history()
    size = (league.path / DATABASE_FILE).stat().st_size
    killed(RECORD, before_commit=before_commit)
    assert (league.path / DATABASE_FILE).stat().st_size > size + 100_000, "some of it has been written"
    assert fsck(league.path) == []
    kept = [number_uuid(77)] * (before_commit == "pass")
    assert (uuids(league), league.history()) == ([*before, *kept], history)
    again = played("novice", "expert", (1, 0), 77, padding=200_000)
    assert league.record(again) == (not kept) and not league.record(again)


@pytest.mark.parametrize(("before_commit", "closed"), [("kill()", 1), ("pass", 2)])
def test_closing_a_period(league, killed, before_commit, closed):
    league.record(played("novice", "expert", (1, 0), 7))
    history = league.history()
    killed(CLOSE, before_commit=before_commit)
    assert fsck(league.path) == [] and league.history()[1] == history[1]
    assert len(league.history()) == closed and league.rate_matches() == (closed == 1)
    assert league.rebuild() == 0 and league.history()[2]["expert"] != league.history()[1]["expert"]


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        pytest.param({"patch": "members.new_folder = kill"}, "", marks=pytest.mark.long),
        pytest.param({"patch": "members.write_bytes = kill"}, "left by a process", marks=pytest.mark.long),
        pytest.param({"patch": f"registry.place_files = {PLACED}"}, "left by a process", marks=pytest.mark.long),
        ({}, "left by a process that was killed"),
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
