"""Several processes that write to one league at the same time."""

import json
import os

import pytest

from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.registry import League
from train.league.leagues import number_uuid, run_script, small_league, uuids

WRITERS, OWN, SHARED = 4, 6, 4

WRITING = """
import json, os, sys, traceback
from pathlib import Path
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.registry import League
from train.league.leagues import played, saved

folder, writers, own, shared = Path(sys.argv[1]), *map(int, sys.argv[2:])
for seed in range(writers):
    saved(folder / f"checkpoint{seed}", seed)
saved(folder / "shared", 99)
start = os.pipe()

def write(writer):
    os.close(start[1])
    os.read(start[0], 1)  # all start together
    league = League.open(folder / "league")
    reported = {"new": [], "periods": 0, "added": 0, "refused": 0}
    for n in range(own + shared):
        number = 1000 + n if n < shared else 100 * (writer + 1) + n
        if league.record(played("novice", "expert", (1, n % 2), number, worker=str(writer))):
            reported["new"].append(number)
        if n in (own // 2, own):
            reported["periods"] += league.rate_matches()
        if n == own // 2:
            league.add_checkpoint(folder / f"checkpoint{writer}", "main")
            try:
                league.add_checkpoint(folder / "shared", "past", "common")
                reported["added"] += 1
            except LeagueError as error:
                assert "its weights are those of the member 'common'" in str(error), error
                reported["refused"] += 1
    (folder / f"reported{writer}.json").write_text(json.dumps(reported))

children = []
for writer in range(writers):
    child = os.fork()
    if not child:
        try:
            write(writer)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
os.close(start[0]), os.close(start[1])
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")
def test_writers_lose_nothing_and_count_nothing_twice(tmp_path):
    before = uuids(small_league(tmp_path / "league"))
    ended = run_script(WRITING, tmp_path, WRITERS, OWN, SHARED)
    assert ended.returncode == 0, ended.stderr
    reported = [json.loads((tmp_path / f"reported{writer}.json").read_text()) for writer in range(WRITERS)]
    league = League.open(tmp_path / "league")
    numbers = sorted(number for each in reported for number in each["new"])
    assert len(numbers) == WRITERS * OWN + SHARED, "each was new to one of them"
    assert sorted(uuids(league)) == sorted([*before, *map(number_uuid, numbers)])
    assert league.periods() == [*range(1, 2 + sum(each["periods"] for each in reported))]
    assert sum(each["added"] for each in reported) == 1 and sum(each["refused"] for each in reported) == WRITERS - 1
    assert len(league.members()) == 3 + WRITERS + 1
    assert fsck(league.path) == []
    assert league.rebuild() == 0
    league.rate_matches()
    assert sum(standing.games for standing in league.standings()) == 2 * (6 + len(numbers))
