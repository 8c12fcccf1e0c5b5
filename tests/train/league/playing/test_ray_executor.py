"""A cluster by Ray, of this machine alone."""

import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.errors import ClusterError
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import LocalExecutor
from echelon_train.league.playing.jobs import run_job
from echelon_train.league.playing.ray_executor import RayExecutor
from echelon_train.league.playing.runner import play_jobs
from train.league.matches import job, long_job, playing_league

JOBS = [job("novice", "otter"), job("otter", "heron"), job("heron", "trivial")]

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for the workers in /proc")


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    with tempfile.TemporaryDirectory(prefix="ray") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8, _temp_dir=folder)
        yield ray
        ray.shutdown()


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    return playing_league(tmp_path_factory.mktemp("leagues") / "league")


def results(matches):
    return {played.uuid: played.match for played in matches}


def running():
    """Processes of this cluster that are playing a match."""
    parents, playing = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[folder.name] = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if folder.joinpath("cmdline").read_bytes().startswith(b"ray::_play"):
                playing.append(folder.name)
    ours = []
    for process in playing:
        ancestor = process
        while ancestor in parents and ancestor != str(os.getpid()):
            ancestor = parents[ancestor]
        if ancestor == str(os.getpid()):
            ours.append(int(process))
    return ours


def wait_for_one():
    while not running():
        time.sleep(0.05)
    return running()[0]


@pytest.mark.long
def test_matches_end_as_in_this_process_and_only_this_one_records(ray, league):
    with contextlib.closing(RayExecutor()) as executor:
        there = list(executor.run(league.path, JOBS))
        assert len(there) == 3 and results(there) == results(LocalExecutor(1).run(league.path, JOBS))
        assert all(played.worker.rpartition(":")[2] != str(os.getpid()) for played in there)
        assert league.matches() == []
        assert play_jobs(league, JOBS, executor) == len(league.matches()) == 3
        assert list(executor.run(league.path, [])) == []
    assert ray.is_initialized(), "the executor did not start it"


@linux
@pytest.mark.slow
def test_a_match_whose_worker_is_killed_in_the_middle_is_played_again(ray, league):
    matches = RayExecutor().run(league.path, [JOBS[0], long_job()])
    soon = next(matches)
    killed = wait_for_one()
    os.kill(killed, signal.SIGKILL)
    (last,) = matches
    assert results([soon, last]) == {
        order.uuid: run_job(league.path, order, "").match for order in (JOBS[0], long_job())
    }
    assert last.worker.rpartition(":")[2] != str(killed)


@linux
@pytest.mark.slow
def test_abandoned_matches_are_ended(ray, league):
    matches = RayExecutor().run(league.path, [JOBS[0], *(long_job(seed=seed) for seed in range(1, 40))])
    next(matches)
    matches.close()
    while running():
        time.sleep(0.05)
    assert len(list(RayExecutor().run(league.path, JOBS))) == 3


def test_a_member_whose_files_are_altered_is_not_sent(ray, tmp_path):
    league = playing_league(tmp_path / "league")
    file = league.member_policy("heron") / WEIGHTS_FILE
    file.write_bytes(b"altered" + file.read_bytes()[7:])
    with pytest.raises(LeagueError, match=r"'heron' cannot be used: .*altered"):
        list(RayExecutor().run(league.path, JOBS))


def test_errors_in_a_worker_are_reported(ray, league):
    with pytest.raises(ValueError, match="seeds: expected at least one") as caught:
        list(RayExecutor().run(league.path, [job(maps=0)]))
    assert type(caught.value) is ValueError
    with pytest.raises(LeagueError, match="no member 'absent'"):
        list(RayExecutor().run(league.path, [job("absent")]))


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"Ray is not installed: pip install 'echelon-env\[ray\]'"):
        RayExecutor()
