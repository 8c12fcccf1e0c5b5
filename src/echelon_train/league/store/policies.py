"""The policies that names mean: those of checkpoints, of runs, and of members of leagues."""

from __future__ import annotations

from pathlib import Path

from echelon_env.networks.checkpoint import find_checkpoint
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.database import DATABASE_FILE
from echelon_train.league.store.members import MEMBERS_FOLDER
from echelon_train.league.store.registry import League


def find_policy(name: str | Path) -> Path:
    """The checkpoint folder that a name means.

    ``LEAGUE/MEMBER`` means the checkpoint of a member, whose hashes are checked. All other names are those of
    `find_checkpoint`: a checkpoint, a run for its last one, ``RUN/best``, ``RUN/last``.

    Raises CheckpointError and LeagueError, with the reason.
    """
    path = Path(name)
    if is_league(path.parent):
        return League.open(path.parent).member_policy(path.name)
    if is_league(path):
        raise LeagueError(f"{name}: is a league, expected a member of it: {path / 'MEMBER'}")
    return find_checkpoint(path)


def origin(folder: Path) -> Path:
    """The folder in which training wrote a checkpoint: itself or, for that of a member, the one that joined the league.

    The latter may be gone, or hold other weights by now. Raises LeagueError.
    """
    league = folder.parent.parent
    if folder.parent.name == MEMBERS_FOLDER and is_league(league):
        for member in League.open(league).members():
            if member.weights_sha256 == folder.name:
                return Path(member.origin["checkpoint"])
    return folder


def is_league(folder: Path) -> bool:
    """Whether a folder is a league."""
    return (folder / DATABASE_FILE).is_file()
