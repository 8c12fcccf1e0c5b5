"""A league run on a Ray cluster of two nodes of this machine."""

import dataclasses
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from echelon_env.networks.checkpoint import WEIGHTS_FILE
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.errors import ClusterError, TrainError
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.policies import find_policy
from echelon_train.league.store.registry import League
from echelon_train.league.store.remote import ADDRESS, NAMESPACE, open_league
from echelon_train.ray_cluster import connect
from echelon_train.supervisor.plan import LeaguePlan, runs_folder
from echelon_train.supervisor.ray_children import Report, read_files, receive, stamps, write_files
from echelon_train.supervisor.ray_league import LeagueActor, RayLeagueRun, cores_of_a_task
from train.league.leagues import saved
from train.supervisor.test_league_run import SETTINGS

PLAN = LeaguePlan(
    main_exploiter=0,
    league_exploiter=0,
    settings=tuple(each.removeprefix("--set=") for each in SETTINGS),
    maps=1,
    until_rd=150.0,
    probe_steps=0,
)
NODE = {"num_cpus": 2, "object_store_memory": 10**8}


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        found = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
        found.other = found.add_node(**NODE)
        yield found
        found.shutdown()


@pytest.fixture
def alone(tmp_path) -> League:
    return League.create(tmp_path / "league")


@pytest.mark.parametrize(
    ("nodes", "tasks", "cores"),
    [
        ([64.0], 4, 1.0),
        ([2.0], 3, 0.66),
        ([2.0, 2.0], 5, 0.4),
        ([4.0, 2.0], 2, 1.0),
        ([1.0, 1.0], 5, 0.2),
        ([], 1, 0.01),
    ],
)
def test_tasks_reserve_cores_so_that_all_fit_without_the_largest_node(nodes, tasks, cores):
    assert cores_of_a_task(nodes, tasks) == cores


def test_files_of_a_run_come_back_whole(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "checkpoints" / "1").mkdir(parents=True)
    (there / "tensorboard").mkdir()
    for name in ("metrics.jsonl", "checkpoints/1/a", "checkpoints/1/training", "tensorboard/events", ".hidden", "lock"):
        (there / name).write_text(name)
    (there / "last.json").write_text('{"checkpoint": "1"}')
    assert {*read_files(there)} == {"last.json", "metrics.jsonl", "checkpoints/1/a", "checkpoints/1/training"}
    receive(here, Report(None, "", read_files(there), frozenset(stamps(there))))
    assert read_files(here) == read_files(there)
    (there / "checkpoints" / "1" / "training").unlink()
    (there / "checkpoints" / "2").mkdir()
    (there / "checkpoints" / "2" / "a").write_text("2")
    receive(here, Report(None, "", {"checkpoints/2/a": b"2"}, frozenset(stamps(there))))
    (there / "last.json").write_text('{"checkpoint": "2"}')
    assert "checkpoints/1/a" not in read_files(there), "an old checkpoint is not needed"
    shutil.rmtree(there / "checkpoints" / "1")
    receive(here, Report(None, "", {"checkpoints/2/a": b"3"}, frozenset(stamps(there))))
    assert {*stamps(here)} == {"last.json", "metrics.jsonl", "checkpoints/1/a", "checkpoints/2/a"}, "none is lost"


def test_the_name_of_the_last_checkpoint_comes_last(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr("echelon_train.supervisor.ray_children.write_bytes", lambda path, data: order.append(path.name))
    write_files(tmp_path, {"last.json": b"", "checkpoints/1/policy": b"", "z": b""})
    assert order[-1] == "last.json" and len(order) == 3


def test_without_a_cluster_the_error_says_so(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"Ray: no cluster answers at 127\.0\.0\.1:1: .*refused"):
        open_league("ray:x")
    with pytest.raises(ClusterError, match=r"Ray: no cluster answers at 127\.0\.0\.1:2: .*refused"):
        connect("127.0.0.1:2")


def test_the_address_of_a_cluster_that_is_gone_is_not_used(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    found = []
    monkeypatch.setattr(ray, "init", lambda address, **options: found.append(address))
    for last in ("127.0.0.1:1", "", None):
        monkeypatch.setattr(ray._private.utils, "read_ray_address", lambda last=last: last)
        assert connect(None) == (ray, True)
    assert found == ["local"] * 3


@pytest.mark.slow
def test_learners_elsewhere_use_the_league_through_its_actor(cluster, alone, tmp_path):
    ray = pytest.importorskip("ray")
    ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
    try:
        alone.add_checkpoint(saved(tmp_path / "otter", 1), "main", "otter")
        options = {"name": "keeper", "num_cpus": 0, "max_concurrency": 2}
        actor = ray.remote(LeagueActor).options(**options).remote(alone.path, PLAN, None, 1.0, "keeper")
        remote = open_league(f"{ADDRESS}keeper")
        assert remote.settings == alone.settings and remote.address == "ray:keeper"
        assert remote.members() == alone.members() and remote.ratings() == alone.ratings()
        folder = remote.member_policy("otter")
        assert (folder / WEIGHTS_FILE).read_bytes() == (alone.member_policy("otter") / WEIGHTS_FILE).read_bytes()
        assert load_checkpoint(find_policy("ray:keeper/otter")).steps == 100
        added = remote.add_checkpoint(saved(tmp_path / "heron", 2), "main", "main", "otter", numbered=True)
        assert added.name == "main-1" and alone.members()[-1] == added
        with pytest.raises(LeagueError, match="its weights are those of the member 'main-1'"):
            remote.add_checkpoint(tmp_path / "heron", "main", "again")
        with pytest.raises(LeagueError, match="no member 'absent'"):
            remote.member("absent")
        ray.kill(actor)
        with pytest.raises(LeagueError, match="that keeps the league is lost"):
            remote.members()
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_a_league_run_survives_the_loss_of_a_node(cluster, alone, tmp_path):
    alone.add_checkpoint(saved(tmp_path / "start", 1), "main", "start")
    run = RayLeagueRun(alone.path, dataclasses.replace(PLAN, start="start"), None, cluster.address)
    seen, results = [], []

    def work():
        try:
            results.append(run.run(seen.append))
        except TrainError as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    def wait(condition, seconds=240.0):
        end = time.monotonic() + seconds
        while not condition():
            assert thread.is_alive() and time.monotonic() < end, (results, seen[-1:])
            time.sleep(0.2)

    def snapshots():
        return [each.name for each in alone.members() if each.name.startswith("main-")]

    wait(lambda: "main-1" in snapshots() and (runs_folder(alone.path) / "main" / "last.json").exists())
    cluster.remove_node(cluster.other, allow_graceful=False)
    cluster.other = cluster.add_node(**NODE)
    before = len(snapshots())
    wait(lambda: len(snapshots()) >= before + 2)
    run.stop()
    thread.join(240.0)
    assert results == [True]
    assert not [*fsck(alone.path)] and alone.rebuild() == 0
    assert [task.name for task in seen[-1].learners] == ["main"]
