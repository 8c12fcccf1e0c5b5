"""Jobs: matches to play, in any process."""

from __future__ import annotations

import functools
import os
import platform
import uuid as uuids
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import ActionMode, Player, baseline, play_match
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.evaluate.stamps import battle_hash, document_hash
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.database import reading
from echelon_train.league.store.members import Member, check_files, member_folder, read_members
from echelon_train.league.store.records import PlayedMatch

LOADED: Final = 16
"""Largest number of policies that a process keeps loaded: the last used."""


@dataclass(frozen=True)
class Job:
    """A match to play between two members of a league."""

    first: str  # name of the member
    second: str
    config: BattleConfig
    scenario: str  # name of the configuration
    seeds: tuple[int, ...]  # of the maps, each played from both sides

    @cached_property
    def uuid(self) -> str:
        """UUID of the match. It follows from the job, so a job that is ordered twice is one match."""
        content = {
            "first": self.first,
            "second": self.second,
            "config": battle_hash(self.config),
            "scenario": self.scenario,
            "seeds": list(self.seeds),
        }
        return str(uuids.uuid5(uuids.NAMESPACE_OID, document_hash(content)))

    def __str__(self) -> str:
        return f"match {self.uuid} of {self.first!r} against {self.second!r}"


@dataclass(frozen=True)
class _Pin:
    """Cache key of a policy's player: the content of its files, wherever they are."""

    league: Path = field(compare=False)
    member: Member = field(compare=False)
    weights_sha256: str
    document_sha256: str | None
    action_mode: ActionMode


def run_job(path: Path, job: Job) -> PlayedMatch:
    """Play a match of the league in a folder, without recording it.

    Raises LeagueError if there is no league, or a damaged one; if a player is no member, or its files are missing or
    altered; ValueError for invalid seeds of maps, as `play_match`.
    """
    with reading(path) as connection:
        members = {member.name: member for member in read_members(connection)}
    for name in (job.first, job.second):
        if name not in members:
            raise LeagueError(f"{job}: {name!r} is no member of the league")
    first, second = (member_player(path, members[name]) for name in (job.first, job.second))
    match = play_match(first, second, job.config, job.seeds, scenario=job.scenario)
    return PlayedMatch(job.uuid, match, job.config, worker=worker_name())


def member_player(league: Path, member: Member, *, action_mode: ActionMode = "sampled") -> Player:
    """The player of a member, by its name. `action_mode` is that of a network.

    A policy's files are checked against the hashes in the database when they are loaded. The last `LOADED` policies
    stay loaded. Raises LeagueError if files are missing or altered, and CheckpointError if this release cannot use
    them.
    """
    if member.weights_sha256 is None:
        return baseline(member.origin["level"])
    pin = _Pin(league, member, member.weights_sha256, member.document_sha256, action_mode)
    return as_member(_load(pin), member.name)


def as_member(player: Player, name: str) -> Player:
    """A checkpoint's player with a member's name, identified by its weights instead of its path."""
    identity: Mapping[str, str | int] = {key: value for key, value in player.identity.items() if key != "checkpoint"}
    return replace(player, name=name, identity=identity)


def worker_name() -> str:
    """Names of the machine and of the process, for the record."""
    return f"{platform.node()}:{os.getpid()}"


@functools.lru_cache(maxsize=LOADED)
def _load(pin: _Pin) -> Player:
    problems = check_files(pin.league, pin.member)
    if problems:
        raise LeagueError(f"{pin.member.name!r} cannot be used: {'; '.join(problems)}")
    return checkpoint_player(member_folder(pin.league, pin.weights_sha256), action_mode=pin.action_mode)
