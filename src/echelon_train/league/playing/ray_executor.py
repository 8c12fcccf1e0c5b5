"""Matches played on a cluster by Ray, https://ray.io, of the extra ``[ray]``."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from echelon_train.league.errors import LeagueError
from echelon_train.league.playing.jobs import ATTEMPTS, Job, member_player, play_job, worker_name
from echelon_train.league.store.members import Member, member_folder
from echelon_train.league.store.records import PlayedMatch
from echelon_train.league.store.registry import League
from echelon_train.league.store.remote import Files, read_policy, write_policy
from echelon_train.ray_cluster import connect


class RayExecutor:
    """Plays matches on the workers of a Ray cluster, one thread each.

    The workers need the same version of this package, but not the league's folder: members' files are sent to them, and
    the matches back. If this process is already connected to a cluster, that cluster is used.

    Parameters
    ----------
    address
        Address of the cluster, see `connect`.
    cores
        Cores that a match reserves.
    at_once
        Largest number of matches in progress; by default as many as the cluster has room for.

    Raises
    ------
    ClusterError
        As `connect`.
    """

    def __init__(self, address: str | None = None, cores: float = 1.0, at_once: int | None = None) -> None:
        self._ray, self._connected = connect(address)
        self._at_once = at_once
        # once: Ray counts every decorated function as a kind of task of its own
        self._play = self._ray.remote(num_cpus=cores, max_retries=ATTEMPTS - 1)(_play)

    def run(self, path: Path, jobs: Sequence[Job]) -> Generator[PlayedMatch, None, None]:
        """See `echelon_train.league.playing.executors.Executor.run`."""
        errors = self._ray.exceptions
        league = League.open(path)
        members = {name: league.member(name) for job in jobs for name in (job.first, job.second)}
        files = {name: self._ray.put(_read(league, member)) for name, member in members.items()}
        pending: dict[Any, Job] = {}
        waiting = deque(jobs)
        try:
            while pending or waiting:
                while waiting and (self._at_once is None or len(pending) < self._at_once):
                    job = waiting.popleft()
                    sides = (members[job.first], members[job.second])
                    pending[self._play.remote(job, sides, files[job.first], files[job.second])] = job
                ready, _ = self._ray.wait(list(pending))
                for reference in ready:
                    job = pending.pop(reference)
                    try:
                        played: PlayedMatch = self._ray.get(reference)
                    except errors.RayTaskError as error:
                        raise error.cause from error
                    except errors.RayError as error:
                        raise LeagueError(f"{job}: given up by Ray: {error}") from error
                    yield played
        finally:
            for reference in pending:
                self._ray.cancel(reference, force=True)

    def close(self) -> None:
        """See `playing.executors.Executor.close`; an existing connection to a cluster stays open."""
        if self._connected:
            self._ray.shutdown()


def _read(league: League, member: Member) -> Files:
    if member.weights_sha256 is None:
        return {}
    return read_policy(league.member_policy(member.name))


def _play(job: Job, members: tuple[Member, Member], first: Files, second: Files) -> PlayedMatch:
    """Play a match on a worker of the cluster."""
    with tempfile.TemporaryDirectory(prefix="echelon-") as temporary:
        league = Path(temporary)
        for member, files in zip(members, (first, second), strict=True):
            if member.weights_sha256 is not None:
                write_policy(member_folder(league, member.weights_sha256), files)
        return play_job(job, member_player(league, members[0]), member_player(league, members[1]), worker_name())
