"""A league as one file, to keep or to hand on.

The file is a zip whose entries are stored as they are: the database, the members' files, and a list of all with their
sizes and hashes. Reading one writes nothing but what a league consists of, and nothing larger than the file itself.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from echelon_env.storage.atomic import new_folder
from echelon_train.checkpoints.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.database import DATABASE_FILE, copy_database, reading
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.members import MEMBERS_FOLDER, check_files, member_folder, read_members
from echelon_train.league.store.registry import League

LIST_FILE = "export.json"
FORMAT = "echelon-league-export"
VERSION = 1
MAX_LIST_BYTES = 1 << 26

_MEMBER_FILE = re.compile(rf"{MEMBERS_FOLDER}/[0-9a-f]{{64}}/({re.escape(WEIGHTS_FILE)}|{re.escape(JSON_FILE)})")
_CHUNK = 1 << 20
_WRITTEN = "zip"


def export_league(league: League, file: Path) -> None:
    """Write a league into a new file, whole or not at all, as it is at one moment; it may be in use meanwhile.

    Raises FileExistsError if there is something at `file`, OSError if it cannot be written, and LeagueError for a
    league with a member whose files are missing or altered.
    """
    if file.exists():
        raise FileExistsError(errno.EEXIST, "exists already, choose another name", str(file))
    with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as name:
        folder = Path(name)
        try:
            _write(league, folder)
            os.replace(folder / _WRITTEN, file)
        except OSError as error:
            if error.errno and Path(error.filename or folder).is_relative_to(folder):
                error.filename = str(file)
            raise


def import_league(file: Path, path: Path) -> League:
    """Make a league in a new folder from an exported one, whole or not at all.

    Raises LeagueError, with the reason, for a file that is no export, or damaged, or holds a damaged league;
    FileExistsError if there is something at `path`; OSError if something cannot be read or written.
    """
    with new_folder(path) as temporary:
        try:
            with zipfile.ZipFile(file) as archive:
                for name, pins in _read_list(archive, file).items():
                    _extract(archive, name, pins, temporary, file)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError) as error:
            raise LeagueError(f"{file}: damaged, or no export of a league ({error})") from error
        except OSError as error:
            if error.errno == errno.EINVAL:  # an entry's offset is negative
                raise LeagueError(f"{file}: damaged ({error})") from error
            raise
        (temporary / MEMBERS_FOLDER).mkdir(exist_ok=True)
        findings = fsck(temporary)
        if findings:
            first = findings[0]
            raise LeagueError(f"{file}: holds a damaged league: {first.subject}: {first.problem}")
        settings = League.open(temporary).settings
    return League(path, settings)


def _write(league: League, folder: Path) -> None:
    copy_database(league.path, folder)
    with reading(folder) as connection:
        members = read_members(connection)
    pins: dict[str, dict[str, str | int]] = {}
    with (folder / _WRITTEN).open("xb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            pins[DATABASE_FILE] = _add(archive, folder / DATABASE_FILE, DATABASE_FILE)
            for member in members:
                if member.weights_sha256 is None or member.document_sha256 is None:
                    continue
                problems = check_files(league.path, member.weights_sha256, member.document_sha256)
                if problems:
                    raise LeagueError(f"{member.name!r} cannot be exported: {'; '.join(problems)}")
                for name in (WEIGHTS_FILE, JSON_FILE):
                    source = member_folder(league.path, member.weights_sha256) / name
                    entry = f"{MEMBERS_FOLDER}/{member.weights_sha256}/{name}"
                    pins[entry] = _add(archive, source, entry)
            archive.writestr(LIST_FILE, json.dumps({"format": FORMAT, "version": VERSION, "files": pins}, indent=2))
        file.flush()
        os.fsync(file.fileno())


def _add(archive: zipfile.ZipFile, source: Path, entry: str) -> dict[str, str | int]:
    """Put a file into an archive. Returns its hash and size."""
    with source.open("rb") as file, archive.open(entry, "w", force_zip64=True) as target:
        digest, size = _copy(file, target)
    return {"sha256": digest, "bytes": size}


def _copy(source: IO[bytes], target: IO[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return digest.hexdigest(), size


def _read_list(archive: zipfile.ZipFile, file: Path) -> dict[str, dict[str, str | int]]:
    """What is in an archive, by name. Raises LeagueError for entries that are no part of a league."""
    entries = {info.filename: info for info in archive.infolist()}
    if len(entries) < len(archive.infolist()):
        raise LeagueError(f"{file}: damaged: it has an entry twice")
    if LIST_FILE not in entries:
        raise LeagueError(f"{file}: is no export of a league (no {LIST_FILE})")
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise LeagueError(f"{file}: {info.filename!r}: expected entries that are stored as they are")
    if entries[LIST_FILE].file_size > MAX_LIST_BYTES:
        raise LeagueError(f"{file}: {LIST_FILE}: larger than the {MAX_LIST_BYTES} bytes that it may have")
    try:
        document = json.loads(archive.read(LIST_FILE))
        if document["format"] != FORMAT:
            raise LeagueError(f"{file}: is no export of a league (format {document['format']!r})")
        if document["version"] != VERSION:
            raise LeagueError(f"{file}: export version {document['version']!r}, this release reads {VERSION}")
        files: dict[str, dict[str, str | int]] = dict(document["files"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LeagueError(f"{file}: {LIST_FILE} cannot be read ({error})") from error
    for name in sorted(files.keys() ^ (entries.keys() - {LIST_FILE})):
        raise LeagueError(f"{file}: damaged: {name!r} is {'missing' if name in files else 'not in its list'}")
    for name in files:
        if name != DATABASE_FILE and not _MEMBER_FILE.fullmatch(name):
            raise LeagueError(f"{file}: {name!r} is no part of a league")
    if DATABASE_FILE not in files:
        raise LeagueError(f"{file}: damaged: it has no {DATABASE_FILE}")
    return files


def _extract(archive: zipfile.ZipFile, name: str, pins: dict[str, str | int], folder: Path, file: Path) -> None:
    """Write an entry of an archive into a folder. Raises LeagueError if it is not what it was."""
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(name) as source, target.open("xb") as written:
        digest, size = _copy(source, written)
        written.flush()
        os.fsync(written.fileno())
    if {"sha256": digest, "bytes": size} != pins:
        raise LeagueError(f"{file}: damaged: {name!r} is not what was exported")
