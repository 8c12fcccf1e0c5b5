"""A cluster by Ray, of this machine alone."""

import contextlib
import os
import sys
import tempfile

import pytest

from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.errors import ClusterError
from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.executors import LocalExecutor
from echelon_train.league.playing.ray_executor import RayExecutor
from echelon_train.league.playing.runner import play_jobs
from train.league.matches import job

JOBS = [job("novice", "otter"), job("otter", "heron"), job("heron", "trivial")]


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    with tempfile.TemporaryDirectory(prefix="ray") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8, _temp_dir=folder)
        yield ray
        ray.shutdown()


def results(matches):
    return {played.uuid: played.match for played in matches}


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


@pytest.mark.slow
def test_errors_are_reported(ray, league):
    executor = RayExecutor()
    for order, error, reason in (
        (job(maps=0), ValueError, "seeds: expected at least one"),
        (job("absent"), LeagueError, "no member 'absent'"),
    ):
        with pytest.raises(error, match=reason) as caught:
            list(executor.run(league.path, [order]))
        assert type(caught.value) is error
    file = league.member_policy("heron") / WEIGHTS_FILE
    file.write_bytes(b"altered" + file.read_bytes()[7:])
    with pytest.raises(LeagueError, match=r"'heron' cannot be used: .*altered"):
        list(executor.run(league.path, JOBS))


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"Ray is not installed: pip install 'echelon-env\[ray\]'"):
        RayExecutor()
