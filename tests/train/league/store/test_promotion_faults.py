"""Promotion by a process that is killed."""

import os

import pytest

from echelon_train.league.store.promotion import promote
from train.league.leagues import run_script
from train.league.store.test_promotion import challenged, never

KILLED = """
import functools, os, shutil, signal, sqlite3, sys
from pathlib import Path
from echelon_train.league.store import database
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.promotion import promote
from echelon_train.league.store.registry import League
from train.league.leagues import played

original, copy = Path(sys.argv[1]), Path(sys.argv[2])
plain = sqlite3.connect
countdown = 0

def step():
    global countdown
    countdown -= 1
    if countdown == 0:
        os.kill(os.getpid(), signal.SIGKILL)

class Killed(sqlite3.Connection):
    inside = False

    def execute(self, sql, *args):
        if sql == "BEGIN IMMEDIATE":
            super().execute("PRAGMA cache_size = 1")  # what is changed gets into the file before it is committed
            self.inside = True
        if self.inside and sql.startswith(("INSERT", "COMMIT")):
            step()
        result = super().execute(sql, *args)
        if sql == "COMMIT" and self.inside:
            step()
        return result

    def executemany(self, *args):
        step()
        return super().executemany(*args)

def play(first, second):
    games.append((first, second))
    step()
    return played(first, second, (1, 1, 1, -1) * 5, 50)

def killed(moment):
    "Whether promoting ended before its end."
    global countdown
    child = os.fork()
    if not child:
        countdown = moment
        database.sqlite3.connect = functools.partial(plain, factory=Killed)
        promote(League.open(copy), "better", play=play)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code != 0

moment, seen = 0, set()
going = True
while going:
    moment += 1
    shutil.copytree(original, copy)
    games = []
    going = killed(moment)
    league = League.open(copy)
    assert fsck(copy) == [], fsck(copy)
    recorded, periods, reigns = len(league.matches()) - 2, len(league.history()) - 1, len(league.promotions()) - 1
    seen.add((recorded, periods, reigns))
    assert recorded >= periods >= reigns >= 0
    assert (league.champion().name == "better") == bool(reigns)
    decision = promote(league, "better", play=play)
    assert len(games) == 1 - recorded, "what was recorded is not played again"
    assert decision.promotion == league.promotions()[-1] and league.champion().name == "better"
    assert (len(league.matches()), len(league.history()), len(league.promotions())) == (3, 2, 2)
    assert fsck(copy) == [] and league.rebuild() == 0
    shutil.rmtree(copy)
assert seen == {(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)}, seen
print(moment)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to be killed are forked")
def test_a_kill_at_any_moment_leaves_a_whole_promotion_or_none_and_the_next_call_continues(tmp_path):
    """Before everything that writes, before and after the end of its transaction, and in the middle of the match."""
    league = challenged(tmp_path)
    promote(league, "worse", play=never)
    ended = run_script(KILLED, league.path, tmp_path / "copy")
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) == 12
