"""The supervisor of a league run, with fake learners."""

import dataclasses
import io
import threading
import time

import pytest
from rich.console import Console

from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import Executor
from echelon_train.league.store.registry import League
from echelon_train.runs.folder import locked
from echelon_train.supervisor import supervisor as module
from echelon_train.supervisor.metrics import Progress
from echelon_train.supervisor.plan import LeaguePlan, read_plan, runs_folder
from echelon_train.supervisor.screen import WIDTH, line, render
from echelon_train.supervisor.supervisor import Supervisor, TaskStatus
from train.league.leagues import saved

PLAN = LeaguePlan(config="quickstart", settings=("battles=2",), maps=1)


@pytest.fixture
def fast(monkeypatch, children):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "READ_SECONDS", 0.01)
    monkeypatch.setattr(module, "STOP_SECONDS", 1.0)


@pytest.fixture
def alone(tmp_path) -> League:
    return League.create(tmp_path / "league")


def supervisor(league, plan=PLAN, minutes=None):
    return Supervisor(league, plan, Executor(), minutes)


def running(league, plan=PLAN, minutes=None):
    """A supervisor that runs in a thread, its last status, and its results."""
    found, seen = supervisor(league, plan, minutes), []
    results = []

    def work():
        try:
            results.append(found.run(seen.append))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return found, seen, results, thread


def wait(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_starts_learners_and_ends_with_them(alone, fast, children):
    _found, seen, results, thread = running(alone)
    wait(lambda: children and seen)
    assert len(children) == 1, "exploiters wait for members"
    assert [task.state for task in seen[-1].learners] == ["running", "waiting"]
    children[0].code = 0
    thread.join(20.0)
    assert results == [False]
    assert read_plan(alone.path) == PLAN
    log = (runs_folder(alone.path) / "run.log").read_text()
    assert "the league run begins" in log and "main is done" in log and log.endswith("the league run ends\n")


def test_members_that_join_start_exploiters_and_are_reported(alone, fast, tmp_path, children):
    found, seen, results, thread = running(alone)
    wait(lambda: seen)
    alone.add_checkpoint(saved(tmp_path / "otter", 1), "main", "main-1")
    wait(lambda: len(children) == 2)
    wait(lambda: any("main-1 joins, after 100 decisions" in event for _, event in seen[-1].events))
    found.stop()
    wait(lambda: all(child.stopped for child in children))
    assert thread.is_alive(), "it waits for learners that save"
    for child in children:
        child.code = 130
    thread.join(20.0)
    assert results == [True] and not any(child.killed for child in children)


@pytest.mark.parametrize("minutes", [None, 0.005])
def test_what_does_not_end_is_killed_at_a_second_stop_or_later(alone, fast, monkeypatch, minutes, children):
    monkeypatch.setattr(module, "STOP_SECONDS", 1000.0 if minutes is None else 1.0)
    found, seen, results, thread = running(alone, minutes=minutes)
    wait(lambda: children and seen)
    if minutes is None:
        found.stop()
        wait(lambda: children[0].stopped)
        found.stop()
    thread.join(30.0)
    assert results == [minutes is None] and children[0].stopped and children[0].killed


def test_two_supervisors_of_a_league_are_refused(alone, fast):
    runs_folder(alone.path).mkdir()
    with locked(runs_folder(alone.path)), pytest.raises(LeagueError, match="another process runs this league"):
        supervisor(alone).run(lambda status: None)
    assert read_plan(alone.path) is None, "the other one's plan stays"


@pytest.mark.parametrize("exploiters", [0, 1])
def test_if_all_learners_fail_the_run_ends_with_the_reason(alone, fast, monkeypatch, exploiters, children):
    """Exploiters wait for a snapshot of the main agent, which does not come."""
    monkeypatch.setattr("echelon_train.supervisor.tasks.FIRST_PAUSE", 0.0)
    children.failing = {"main": "the disk is full"}
    plan = dataclasses.replace(PLAN, exploiter=exploiters)
    _found, _seen, results, thread = running(alone, plan)
    thread.join(30.0)
    assert isinstance(results[0], LeagueError) and "the disk is full" in str(results[0])


@pytest.mark.parametrize("failing", ["main", "exploiter"])
def test_a_learner_that_fails_does_not_end_the_others(alone, fast, monkeypatch, tmp_path, failing, children):
    monkeypatch.setattr("echelon_train.supervisor.tasks.FIRST_PAUSE", 0.0)
    alone.add_checkpoint(saved(tmp_path / "otter", 1), "main", "main-1")
    children.failing = {failing: "gradients were not finite"}
    found, seen, results, thread = running(alone)
    states = {"main": "running", "exploiter": "running", failing: "failed"}
    wait(lambda: seen and {task.name: task.state for task in seen[-1].learners} == states)
    assert "gradients were not finite" in [task.note for task in seen[-1].learners]
    found.stop()
    found.stop()
    thread.join(20.0)
    assert results == [True]


def test_a_display_that_fails_does_not_end_the_run(alone, fast, children):
    found, calls = supervisor(alone), []

    def show(status):
        calls.append(status)
        if len(calls) == 3:
            children[0].code = 0
        raise BrokenPipeError(32, "Broken pipe")

    assert found.run(show) is False
    log = (runs_folder(alone.path) / "run.log").read_text()
    assert log.count("the display fails: BrokenPipeError") == 1 and log.endswith("the league run ends\n")


def test_it_ends_when_snapshots_bring_no_new_champion(alone, fast, children):
    found, seen, results, thread = running(alone, dataclasses.replace(PLAN, patience=2))
    wait(lambda: seen)
    found._ratings.waited = 1
    time.sleep(0.1)
    assert not results
    found._ratings.waited = 2
    thread.join(20.0)
    assert results == [False]
    log = (runs_folder(alone.path) / "run.log").read_text()
    assert "no new champion among 2 snapshots (--patience): the run ends" in log


def test_the_last_snapshots_are_tested_before_it_ends(alone, fast, tmp_path, children):
    alone.add_checkpoint(saved(tmp_path / "otter", 1), "main", "main-1")
    found, _seen, results, thread = running(alone)
    found._ratings._count = lambda settled: None
    wait(lambda: len(children) == 2)
    next(each for each in children if each.name == "main").code = 0
    time.sleep(0.2)
    assert not results
    found._ratings.eligible = frozenset({"main-1"})
    thread.join(20.0)
    assert results == [False]


def texts(status):
    console = Console(width=WIDTH, file=io.StringIO(), color_system=None)
    console.print(render(status))
    return console.file.getvalue().splitlines()


def test_the_screen_fits_80_columns_and_shows_everything(alone, fast, tmp_path):
    for number in range(9):
        alone.add_checkpoint(saved(tmp_path / str(number), number), "main", f"main-{number}-{'long' * 5}")
    found = supervisor(alone, dataclasses.replace(PLAN, exploiter=26))
    found.report("main: killed by signal 9; it starts again in 5 s" + " and so on" * 20)
    found._read_league()
    lines = texts(found.status())
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    for each in ("exploiter-z", "main-0-long", "and 2 more", "killed by signal 9", "matches", "next", "waiting"):
        assert each in text
    assert "main (waiting)" in line(found.status())


@pytest.mark.parametrize(
    ("progress", "state", "shown"),
    [
        (Progress(), "waiting", "main (waiting)"),
        (Progress(51_700, 488.0, 0.09, 0.98), "running", "main 51.7k, score 9 %, snapshot in 1.96M (1:06:56)"),
        (Progress(51_700, 488.0, 0.09, 0.98), "failed", "main 51.7k, score 9 %, snapshot in 1.96M (failed)"),
    ],
)
def test_a_learners_score_and_next_snapshot_are_on_the_screen_and_in_lines(alone, progress, state, shown):
    """A log file has lines only."""
    status = supervisor(alone).status()
    status = dataclasses.replace(status, learners=[TaskStatus("main", state, "", progress)])
    assert line(status).split("; ")[1] == shown
    row = next(each for each in texts(status) if each.startswith("main "))
    if progress.score is not None:
        assert f"{100 * progress.score:.0f} %" in row and row.split()[-1] == state


@pytest.mark.parametrize(
    ("changes", "member", "said"),
    [
        ({"steps": 3_000_000}, None, "first snapshots after 2,000,000 decisions; for another number"),
        ({"steps": 4_000}, None, "first snapshots after 4,000 decisions;"),
        ({"settings": ("league.stage=500",)}, "otter", "first snapshots after 500 decisions;"),
        ({}, "main-1", None),
    ],
)
def test_it_says_at_its_start_when_the_first_snapshot_comes(alone, fast, tmp_path, changes, member, said):
    if member:
        alone.add_checkpoint(saved(tmp_path / member, 1), "main", member)
    supervisor(alone, dataclasses.replace(PLAN, **changes), minutes=1e-6).run(lambda status: None)
    lines = (runs_folder(alone.path) / "run.log").read_text().splitlines()
    assert [said in line for line in lines if "first snapshots" in line] == ([] if said is None else [True])
