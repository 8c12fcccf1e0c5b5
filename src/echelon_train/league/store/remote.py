"""A league that one actor of a Ray cluster keeps: learners on other machines use it without its folder.

Its address is ``ray:NAME``, where NAME is that of the actor. The actor is the only process that opens the database.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from echelon_env.networks.checkpoint import JSON_FILE, MAX_WEIGHTS_BYTES, WEIGHTS_FILE, find_checkpoint, read_file
from echelon_train.league.errors import LeagueError
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import Member, member_folder
from echelon_train.league.store.registry import League
from echelon_train.ray_cluster import connect

ADDRESS: Final = "ray:"
NAMESPACE: Final = "echelon"
"""Ray's namespace of the actors' names."""

Files = Mapping[str, bytes]
"""Contents of a policy's files, by name."""


def is_remote(path: str | Path) -> bool:
    """Whether a league's address is that of an actor."""
    return str(path).startswith(ADDRESS)


def read_policy(folder: Path) -> dict[str, bytes]:
    """The files of a checkpoint's policy. Raises CheckpointError."""
    return {name: read_file(folder / name, MAX_WEIGHTS_BYTES) for name in (WEIGHTS_FILE, JSON_FILE)}


def write_policy(folder: Path, files: Files) -> None:
    """Write the files of a policy into a new folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS_FILE, JSON_FILE):
        (folder / name).write_bytes(files[name])


def open_league(path: str | Path) -> League:
    """The league in a folder, or at an address ``ray:NAME``. Raises LeagueError as `League.open` does."""
    return _remote(str(path)) if is_remote(path) else League.open(Path(path))


@functools.cache
def _remote(address: str) -> RemoteLeague:
    """One object for each address in a process: its copies of policies stay as long as the process."""
    return RemoteLeague(address)


class RemoteLeague(League):
    """A league that an actor keeps. It has the methods of `League` that learners use; others raise LeagueError.

    Policies are copied to this machine when they are first used.

    Parameters
    ----------
    address
        Address of the league, ``ray:NAME``. The cluster is that of the environment variable ``RAY_ADDRESS``, unless
        this process is connected already.

    Raises
    ------
    TrainError
        If Ray is not installed, or there is no such cluster or actor.
    """

    def __init__(self, address: str) -> None:
        self._ray, _ = connect(os.environ.get("RAY_ADDRESS", "auto"), NAMESPACE)
        try:
            self._actor = self._ray.get_actor(address.removeprefix(ADDRESS), namespace=NAMESPACE)
        except ValueError as error:
            raise LeagueError(f"{address}: no process of the cluster keeps this league") from error
        self._copies = Path(tempfile.mkdtemp(prefix="echelon-league-"))
        weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
        super().__init__(Path(address), self._get(self._actor.settings))

    @property
    def address(self) -> str:
        """See `League.address`."""
        return str(self.path)

    def members(self) -> list[Member]:
        """See `League.members`."""
        found: list[Member] = self._get(self._actor.members)
        return found

    def member(self, name: str) -> Member:
        """See `League.member`."""
        found: Member = self._get(self._actor.member, name)
        return found

    def ratings(self) -> dict[str, Rating]:
        """See `League.ratings`."""
        found: dict[str, Rating] = self._get(self._actor.ratings)
        return found

    def member_policy(self, name: str) -> Path:
        """See `League.member_policy`: the folder of a copy."""
        member = self.member(name)
        folder = member_folder(self._copies, str(member.weights_sha256))
        if not folder.exists():
            write_policy(folder, self._get(self._actor.policy, name))
        return folder

    def add_checkpoint(
        self, path: Path, kind: str, name: str | None = None, parent: str | None = None, *, numbered: bool = False
    ) -> Member:
        """See `League.add_checkpoint`."""
        files = read_policy(find_checkpoint(path))
        member: Member = self._get(self._actor.add_policy, files, kind, name, parent, numbered)
        return member

    def _get(self, method: Any, *arguments: Any) -> Any:
        """The result of a method of the actor. Raises what the method raises, and LeagueError if the actor is lost."""
        try:
            return self._ray.get(method.remote(*arguments))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            raise LeagueError(
                f"{self.path}: the process that keeps the league is lost: {type(error).__name__}"
            ) from error
