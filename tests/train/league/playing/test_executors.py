"""Processes that play matches, and are killed or interrupted."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time

import pytest

from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import ATTEMPTS, Executor
from echelon_train.league.playing.jobs import run_job, worker_name
from train.league.matches import job, long_job, playing_league

JOBS = [job("novice", "otter"), job("otter", "heron"), job("heron", "trivial"), job("novice", "trivial", maps=3)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return playing_league(tmp_path_factory.mktemp("leagues") / "league").path


@pytest.fixture(scope="module")
def two():
    """Two running workers that have played."""
    with contextlib.closing(Executor(2)) as executor:
        yield executor


def results(matches):
    return {played.uuid: played.match for played in matches}


def process_of(played):
    return int(played.worker.rpartition(":")[2])


def workers():
    return {process.pid for process in multiprocessing.active_children()}


@pytest.fixture(scope="module")
def expected(path):
    return {order.uuid: run_job(path, order).match for order in (*JOBS, long_job())}


@pytest.mark.long
def test_matches_end_the_same_wherever_they_are_played(path, two, expected):
    here, there = list(Executor(1).run(path, JOBS)), list(two.run(path, JOBS))
    assert {played.worker for played in here} == {worker_name()}
    assert len(there) == len(here) == len(JOBS)
    assert results(there) == results(here) == {order.uuid: expected[order.uuid] for order in JOBS}
    again = list(two.run(path, JOBS))
    assert {process_of(played) for played in [*there, *again]} <= workers() and len(workers()) == 2, "the workers stay"
    assert list(two.run(path, [])) == []


@pytest.mark.long
def test_a_match_whose_worker_is_killed_in_the_middle_is_played_again(path, two, expected):
    list(two.run(path, JOBS))  # starts both workers, so that both begin at once
    matches = two.run(path, [long_job(), *JOBS])
    soon = next(matches)
    (busy,) = workers() - {process_of(soon)}
    os.kill(busy, signal.SIGKILL)
    rest = list(matches)
    assert results([soon, *rest]) == expected
    last = next(played for played in rest if played.uuid == long_job().uuid)
    assert process_of(last) in workers() and busy not in workers()


def test_a_match_whose_workers_are_always_killed_is_given_up(path):
    before, over = workers(), threading.Event()
    killed = set()

    def kill():
        while not over.is_set():
            for process in workers() - before - killed:
                os.kill(process, signal.SIGKILL)
                killed.add(process)
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with contextlib.closing(Executor(2)) as executor, pytest.raises(LeagueError) as caught:
            list(executor.run(path, [long_job()]))
    finally:
        over.set()
        killer.join()
    assert len(killed) == ATTEMPTS
    assert str(caught.value).startswith(f"{long_job()}: given up: 3 processes") and "code -9;" in str(caught.value)
    assert workers() == before


def test_errors_in_a_worker_are_reported_and_it_continues(path, two, expected):
    unknown = job("absent", "otter")
    with pytest.raises(LeagueError, match="'absent' is no member") as caught:
        list(two.run(path, [unknown]))
    assert f"{unknown}, in the worker" in caught.value.__notes__[0] and "run_job" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="seeds: expected at least one"):
        list(two.run(path, [job(maps=0)]))
    assert results(two.run(path, JOBS[:1])) == {JOBS[0].uuid: expected[JOBS[0].uuid]}


def test_abandoned_matches_are_ended(path, two):
    list(two.run(path, JOBS))
    before = workers()
    matches = two.run(path, [long_job(), *JOBS])
    soon = next(matches)
    matches.close()
    assert workers() < before and process_of(soon) in workers()
