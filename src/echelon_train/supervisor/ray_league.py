"""A league run on a Ray cluster: one actor keeps the league and supervises, other nodes train and play."""

from __future__ import annotations

import contextlib
import hashlib
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.ray_executor import RayExecutor
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import Member
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League
from echelon_train.league.store.remote import ADDRESS, NAMESPACE, Files, read_policy, write_policy
from echelon_train.ray_cluster import check_reachable, connect
from echelon_train.supervisor.plan import LeaguePlan
from echelon_train.supervisor.ray_children import RayLauncher, last_text
from echelon_train.supervisor.supervisor import POLL_SECONDS, Status, Supervisor

LOST_SECONDS: Final = 60.0
"""Time without an answer after which the cluster counts as lost."""

_THREADS = 16  # of the actor: the supervisor, and learners that ask for members at the same time


class LeagueActor:
    """Keeps a league and supervises its run. It is an actor, and the only process that opens the database."""

    def __init__(self, path: Path, plan: LeaguePlan, max_minutes: float | None, cores: float, name: str) -> None:
        import ray

        self._league = League.open(path)
        launcher = RayLauncher(ray, f"{ADDRESS}{name}", cores)
        at_once = max(1, int(sum(cores_of_nodes(ray))) - len(plan.agents))
        executor = RayExecutor(cores=cores, at_once=at_once)
        self._supervisor = Supervisor(self._league, plan, launcher, executor, max_minutes)
        self._status: Status | None = None

    def run(self) -> bool:
        """See `Supervisor.run`."""
        return self._supervisor.run(self._keep)

    def stop(self) -> None:
        """See `Supervisor.stop`."""
        self._supervisor.stop()

    def status(self) -> Status | None:
        """The last status; None before the first."""
        return self._status

    def settings(self) -> LeagueSettings:
        """See `League.settings`."""
        return self._league.settings

    def members(self) -> list[Member]:
        """See `League.members`."""
        return self._league.members()

    def member(self, name: str) -> Member:
        """See `League.member`."""
        return self._league.member(name)

    def ratings(self) -> dict[str, Rating]:
        """See `League.ratings`."""
        return self._league.ratings()

    def policy(self, name: str) -> Files:
        """The files of `League.member_policy`."""
        return read_policy(self._league.member_policy(name))

    def add_policy(self, files: Files, kind: str, name: str | None, parent: str | None, numbered: bool) -> Member:
        """See `League.add_checkpoint`."""
        with tempfile.TemporaryDirectory(prefix="echelon-") as folder:
            write_policy(Path(folder), files)
            return self._league.add_checkpoint(Path(folder), kind, name, parent, numbered=numbered)

    def _keep(self, status: Status) -> None:
        self._status = status


class RayLeagueRun:
    """A league run on the cluster at an address (see `connect`), controlled from this process as a `Supervisor` is.

    The actor that keeps the league is on this process's node, which has the league's folder. It ends with this process.

    Raises LeagueError if Ray is not installed, the cluster cannot be reached, or another process runs this league on
    it.
    """

    def __init__(self, path: Path, plan: LeaguePlan, max_minutes: float | None, address: str | None) -> None:
        if (address or "").startswith("ray://"):
            raise LeagueError(f"--ray {address}: expected HOST:PORT of the cluster, on a machine that belongs to it")
        ray, self._connected = connect(address, NAMESPACE)
        self._ray = ray
        node = ray.get_runtime_context().get_node_id()
        self._head: str = ray.get_runtime_context().gcs_address
        name = f"league-{hashlib.sha256(f'{node} {path.resolve()}'.encode()).hexdigest()[:12]}"
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        cores = cores_of_a_task(cores_of_nodes(ray), len(plan.agents) + bool(plan.probe_steps) + 1)
        options = {"name": name, "max_concurrency": _THREADS, "num_cpus": 0, "scheduling_strategy": here}
        try:
            self._actor: Any = (
                ray.remote(LeagueActor).options(**options).remote(path.resolve(), plan, max_minutes, cores, name)
            )
        except ValueError as error:  # the name is taken
            raise LeagueError(f"{path}: another process runs this league on the cluster") from error
        self._path, self._stops = path, 0

    def stop(self) -> None:
        """See `Supervisor.stop`."""
        self._stops += 1

    def run(self, show: Callable[[Status], None]) -> bool:
        """See `Supervisor.run`. Raises LeagueError also if the cluster is lost; the league is intact then."""
        sent, heard = 0, time.monotonic()
        running = self._actor.run.remote()
        try:
            while True:
                ready, _ = self._ray.wait([running], timeout=POLL_SECONDS)
                for _ in range(self._stops - sent):
                    self._actor.stop.remote()
                sent = self._stops
                status = self._status()
                if status is not None:
                    heard = time.monotonic()
                    with contextlib.suppress(OSError):  # a display that fails does not end the run
                        show(status)
                if ready:
                    ended: bool = self._ray.get(running)
                    return ended
                if time.monotonic() - heard > LOST_SECONDS:
                    raise LeagueError(f"{self._path}: the Ray cluster has not answered for {LOST_SECONDS:g} s")
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise LeagueError(f"{self._path}: the Ray cluster is lost: {last_text(error)}") from error
        finally:
            with contextlib.suppress(Exception):
                self._ray.kill(self._actor)
            if self._connected:
                self._ray.shutdown()

    def _status(self) -> Status | None:
        """The present status; None if there is no answer, or before the first.

        Raises LeagueError if the cluster's head is lost: Ray would end this process after a minute, without a word.
        """
        try:
            check_reachable(self._head)
            found: Status | None = self._ray.get(self._actor.status.remote(), timeout=10.0)
        except self._ray.exceptions.GetTimeoutError:
            return None
        except OSError as error:  # a broken pipe to a process of Ray
            raise LeagueError(f"{self._path}: the Ray cluster is lost: {error}") from error
        return found


def cores_of_nodes(ray: Any) -> list[float]:
    """The cores of a cluster's nodes."""
    return [each["Resources"].get("CPU", 0.0) for each in ray.nodes() if each["Alive"]]


def cores_of_a_task(nodes: Sequence[float], tasks: int) -> float:
    """Cores that a learner, a probe or a match reserves: 1, or less so that all fit also without the largest node.

    `nodes` are the cores of the cluster's nodes.
    """
    left = sorted(nodes)[:-1] if len(nodes) > 1 else nodes
    shares = (share / 100 for share in range(100, 1, -1))
    return next((share for share in shares if sum(math.floor(each / share + 1e-9) for each in left) >= tasks), 0.01)
