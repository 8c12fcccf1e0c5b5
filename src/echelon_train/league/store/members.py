"""Members of a league: scripted levels, and policies pinned by the hash of their weights.

A policy's files are in ``members/<SHA-256 of its weights>/``: the two of a checkpoint without a training state. The
folder is created before the database refers to it, so a process that is killed in between leaves an unused folder, and
never a member without files.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import reprlib
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from echelon_env.config.opponent import SELF
from echelon_env.evaluate import BASELINES
from echelon_env.evaluate.networks import UNTRAINED
from echelon_env.networks.checkpoint import (
    JSON_FILE,
    MAX_JSON_BYTES,
    MAX_WEIGHTS_BYTES,
    WEIGHTS_FILE,
    find_checkpoint,
    read_document,
    read_file,
)
from echelon_env.networks.weights import CheckpointError
from echelon_env.storage.atomic import new_folder, write_bytes
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.store.database import DATABASE_FILE, check_room
from echelon_train.league.store.values import is_text, parse, printable

MEMBERS_FOLDER = "members"
MAX_NAME_LENGTH = 32
"""Characters of a name, so that tables fit on a terminal."""

_NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MAX_NAME_LENGTH - 1}}}")
_SHA256 = re.compile("[0-9a-f]{64}")

Kind = Literal["scripted", "main", "main_exploiter", "league_exploiter", "past"]
"""What a member joined as; it never changes. ``past``: a policy whose training was over when it joined."""

State = Literal["active", "retired"]

LEARNING_KINDS = "main", "league_exploiter"
"""Kinds of snapshots after which the learner may continue training. A main exploiter always resets."""


@dataclass(frozen=True)
class Member:
    """A player of a league."""

    id: int  # in the order of joining
    name: str
    kind: Kind
    state: State
    parent: str | None  # the member that it was trained from
    age: int  # decisions of its training
    weights_sha256: str | None  # of policy.safetensors; None: scripted
    document_sha256: str | None  # of checkpoint.json; None: scripted
    created_at: str  # UTC
    origin: Mapping[str, Any]
    """Source: ``level`` of a scripted player; ``checkpoint`` (a path) and ``opponent`` of a policy."""


@dataclass(frozen=True)
class Candidate:
    """A policy that may become a member: the contents of its files, already checked."""

    weights: bytes
    document: bytes
    weights_sha256: str
    document_sha256: str
    age: int
    origin: Mapping[str, Any]


def now() -> str:
    """The current time, UTC, ISO 8601 to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def read_members(connection: sqlite3.Connection) -> list[Member]:
    """All members in the order of joining. Raises DamagedLeagueError for a row that no release has written."""
    rows = connection.execute(
        "SELECT m.id, m.name, m.kind, m.state, p.name, m.age, m.weights_sha256, m.document_sha256, m.created_at,"
        " m.origin, m.parent FROM members m LEFT JOIN members p ON p.id = m.parent ORDER BY m.id"
    )
    members = []
    for *columns, origin, parent in rows:
        member = Member(*[*columns, parse(origin, dict, f"origin of member {columns[0]}")])
        _check_row(member, parent)
        members.append(member)
    return members


def _check_row(member: Member, parent: Any) -> None:
    """Raise DamagedLeagueError for values that the schema allows and a league does not."""
    scripted, origin = member.kind == "scripted", member.origin
    hashes = (member.weights_sha256, member.document_sha256)
    for name, valid in (
        ("name", isinstance(member.name, str) and _NAME.fullmatch(member.name)),
        ("kind", member.kind in get_args(Kind) and scripted == (member.weights_sha256 is None)),
        ("state", member.state in get_args(State)),
        ("parent", parent is None or (isinstance(parent, int) and parent < member.id)),
        ("age", isinstance(member.age, int) and member.age >= 0),
        ("hashes", scripted or all(isinstance(each, str) and _SHA256.fullmatch(each) for each in hashes)),
        ("created_at", is_text(member.created_at)),
        ("origin", all(is_text(origin.get(key)) for key in (("level",) if scripted else ("checkpoint", "opponent")))),
    ):
        if not valid:
            value = parent if name == "parent" else hashes if name == "hashes" else getattr(member, name)
            raise DamagedLeagueError(f"{DATABASE_FILE}: member {member.id}: {name}: got {reprlib.repr(value)}")


def insert_member(connection: sqlite3.Connection, member: Member, parent: int | None) -> int:
    """Add a member to a database and return its id. `parent` is an id; `member.id` and `member.parent` are ignored.

    Raises LeagueError, with nothing added, if the league is full.
    """
    check_room(connection, "members")
    cursor = connection.execute(
        "INSERT INTO members (name, kind, state, parent, age, weights_sha256, document_sha256, created_at, origin)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            member.name,
            member.kind,
            member.state,
            parent,
            member.age,
            member.weights_sha256,
            member.document_sha256,
            member.created_at,
            json.dumps(dict(member.origin)),
        ),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def check_name(name: str) -> str:
    """Return the name of a policy. Raises LeagueError if it is malformed, or the name of a built-in player."""
    if not _NAME.fullmatch(name):
        raise LeagueError(
            f"name {name!r}: expected 1 to {MAX_NAME_LENGTH} lower-case letters, digits, '-', '_' or '.', "
            "the first a letter or a digit"
        )
    if name in (*BASELINES, UNTRAINED, SELF):
        raise LeagueError(f"name {name!r}: is the name of a built-in player")
    return name


def check_kind(kind: str) -> Kind:
    """Return the kind of a policy. Raises LeagueError if it is unknown."""
    kinds = [each for each in get_args(Kind) if each != "scripted"]
    if kind not in kinds:
        raise LeagueError(f"kind: expected one of {', '.join(kinds)}, got {kind!r}")
    return cast("Kind", kind)


def read_candidate(path: Path) -> Candidate:
    """Read and check the policy of a checkpoint, or of a run's last checkpoint. Raises CheckpointError."""
    from echelon_train.checkpoints.checkpoint import load_checkpoint  # PyTorch, which reading a league does not need

    folder = find_checkpoint(path)
    checkpoint = load_checkpoint(folder)  # all of it, as training against the member does
    weights = read_file(folder / WEIGHTS_FILE, MAX_WEIGHTS_BYTES)
    document = read_document(folder)
    weights_sha256 = hashlib.sha256(weights).hexdigest()
    if weights_sha256 != document["weights_sha256"]:
        raise CheckpointError(f"{folder}: was replaced while it was read")
    text = (json.dumps({**document, "training": None}, indent=2, allow_nan=False) + "\n").encode()
    origin = {"checkpoint": printable(str(folder.resolve())), "opponent": printable(checkpoint.opponent)}
    return Candidate(weights, text, weights_sha256, hashlib.sha256(text).hexdigest(), checkpoint.steps, origin)


def member_folder(league: Path, weights_sha256: str) -> Path:
    """The folder of a policy's files."""
    return league / MEMBERS_FOLDER / weights_sha256


def place_files(league: Path, candidate: Candidate) -> None:
    """Put a policy's files into a league, as a whole or not at all. The caller holds the league's lock.

    Files of the same policy that a killed process has left are removed. Raises OSError.
    """
    folder = member_folder(league, candidate.weights_sha256)
    for left in (*folder.parent.glob(folder.name), *folder.parent.glob(f".{folder.name}.*")):
        shutil.rmtree(left)
    with new_folder(folder) as temporary:
        write_bytes(temporary / WEIGHTS_FILE, candidate.weights)
        write_bytes(temporary / JSON_FILE, candidate.document)


def check_files(league: Path, weights_sha256: str, document_sha256: str) -> list[str]:
    """Problems of a policy's files in a league; empty if they are those that joined."""
    folder = member_folder(league, weights_sha256)
    if not folder.is_dir():
        return [f"{folder}: the folder is missing"]
    problems = [
        f"{entry}: is no part of a member"
        for entry in sorted(folder.iterdir())
        if entry.name not in (WEIGHTS_FILE, JSON_FILE)
    ]
    pins = ((WEIGHTS_FILE, weights_sha256, MAX_WEIGHTS_BYTES), (JSON_FILE, document_sha256, MAX_JSON_BYTES))
    for name, pinned, limit in pins:
        if not (folder / name).is_file():
            problems.append(f"{folder / name}: the file is missing")
            continue
        try:
            found = hashlib.sha256(read_file(folder / name, limit)).hexdigest()
        except CheckpointError as error:
            problems.append(str(error))
            continue
        if found != pinned:
            problems.append(
                f"{folder / name}: altered: its SHA-256 is {found[:12]}..., it joined with {pinned[:12]}..."
            )
    return problems
