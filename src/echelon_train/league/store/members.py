"""Members of a league: scripted levels, and policies pinned by the hash of their weights; and champions among them.

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
from dataclasses import astuple, dataclass, field, fields
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
from echelon_env.storage.text import printable
from echelon_train.league.errors import DamagedLeagueError, LeagueError
from echelon_train.league.store.database import DATABASE_FILE, MAX_TEXT, check_room, insert, is_text, parse

MEMBERS_FOLDER = "members"
MAX_NAME_LENGTH = 32
"""Characters of a name, so that tables fit on a terminal."""

_NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MAX_NAME_LENGTH - 1}}}")
_SHA256 = re.compile("[0-9a-f]{64}")

Kind = Literal["scripted", "main", "exploiter", "past"]
"""What a member joined as; it never changes. ``past``: a policy whose training was over when it joined."""

State = Literal["active", "retired"]


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
    values = {each.name: getattr(member, each.name) for each in fields(member) if each.name != "id"}
    return insert(connection, "members", **{**values, "parent": parent, "origin": json.dumps(dict(member.origin))})


@dataclass(frozen=True)
class Promotion:
    """The start of a champion's reign, and the comparison that led to it."""

    id: int  # in the order of the reigns
    member: str
    previous: str | None  # the previous champion; None for the first one
    validation: str | None  # uuid of the match of the two; None for the first champion
    period: int  # the rating period after which they were compared
    k: float  # a score is the rating - k x the deviation
    score: float  # of the member, points
    previous_score: float | None  # of the previous champion, points
    promoted_at: str = field(default_factory=now)  # UTC


def read_promotions(connection: sqlite3.Connection) -> list[Promotion]:
    """All promotions in their order; the champion is the member of the last one."""
    rows = connection.execute(
        "SELECT r.id, m.name, p.name, r.validation, r.period, r.k, r.score, r.previous_score, r.promoted_at"
        " FROM promotions r JOIN members m ON m.id = r.member LEFT JOIN members p ON p.id = r.previous ORDER BY r.id"
    )
    return [Promotion(*row) for row in rows]


def insert_promotion(connection: sqlite3.Connection, promotion: Promotion) -> None:
    """Add a promotion to a database. Raises LeagueError, with nothing added, if the league is full."""
    check_room(connection, "promotions")
    connection.execute(
        "INSERT INTO promotions VALUES"
        " (?, (SELECT id FROM members WHERE name = ?), (SELECT id FROM members WHERE name = ?), ?, ?, ?, ?, ?, ?)",
        astuple(promotion),
    )


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
    texts = {"checkpoint": str(folder.resolve()), "opponent": checkpoint.opponent}
    origin = {name: printable(text)[:MAX_TEXT] for name, text in texts.items()}
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


def check_files(league: Path, member: Member) -> list[str]:
    """Problems of a member's files in a league; empty if they are those that joined, and for a scripted member."""
    if member.weights_sha256 is None:
        return []
    folder = member_folder(league, member.weights_sha256)
    if not folder.is_dir():
        return [f"{folder}: the folder is missing"]
    pins = {
        WEIGHTS_FILE: (member.weights_sha256, MAX_WEIGHTS_BYTES),
        JSON_FILE: (member.document_sha256 or "", MAX_JSON_BYTES),
    }
    problems = [f"{entry}: is no part of a member" for entry in sorted(folder.iterdir()) if entry.name not in pins]
    for name, (pinned, limit) in pins.items():
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
