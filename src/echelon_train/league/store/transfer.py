"""A league as one file, to keep or to hand on.

The file is a zip of uncompressed entries: the database and the members' files. Importing it writes only the files of a
league, and nothing larger than the file itself. The zip has checksums of its entries, and `fsck` compares the members'
files with the hashes in the database. An export is not signed: whoever changes the database and all checksums
consistently makes another valid export.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

from echelon_env.networks.checkpoint import JSON_FILE, WEIGHTS_FILE
from echelon_env.storage.atomic import new_folder
from echelon_env.storage.reading import open_regular_file
from echelon_train.league.errors import LeagueError
from echelon_train.league.store.database import DATABASE_FILE, copy_database, reading
from echelon_train.league.store.fsck import fsck
from echelon_train.league.store.members import MEMBERS_FOLDER, check_files, member_folder, read_members
from echelon_train.league.store.registry import League

_MEMBER_FILE = re.compile(rf"{MEMBERS_FOLDER}/[0-9a-f]{{64}}/({re.escape(WEIGHTS_FILE)}|{re.escape(JSON_FILE)})")
_WRITTEN = "zip"


def export_league(league: League, file: Path) -> None:
    """Write a league, as of one moment, into a new file, as a whole or not at all. The league may be in use.

    Raises FileExistsError if `file` exists, OSError if it cannot be written, and LeagueError for a
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
    """Create a league in a new folder from an exported one, as a whole or not at all.

    Raises LeagueError, with the reason, if the file is no export, is damaged, or holds a damaged league;
    FileExistsError if `path` exists; OSError if something cannot be read or written.
    """
    with new_folder(path) as temporary:
        try:
            with open_regular_file(file) as opened, zipfile.ZipFile(opened) as archive:
                for info in _checked_entries(archive, file):
                    _extract(archive, info, temporary)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
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
    with (folder / _WRITTEN).open("xb") as file:
        with zipfile.ZipFile(file, "w", strict_timestamps=False) as archive:
            archive.write(folder / DATABASE_FILE, DATABASE_FILE)
            for member in members:
                if member.weights_sha256 is None:
                    continue
                problems = check_files(league.path, member)
                if problems:
                    raise LeagueError(f"{member.name!r} cannot be exported: {'; '.join(problems)}")
                for name in (WEIGHTS_FILE, JSON_FILE):
                    source = member_folder(league.path, member.weights_sha256) / name
                    archive.write(source, f"{MEMBERS_FOLDER}/{member.weights_sha256}/{name}")
        file.flush()
        os.fsync(file.fileno())


def _checked_entries(archive: zipfile.ZipFile, file: Path) -> list[zipfile.ZipInfo]:
    """The entries of an archive. Raises LeagueError if one is no part of a league, or could be larger than the file."""
    entries = archive.infolist()
    names = [info.filename for info in entries]
    if DATABASE_FILE not in names:
        raise LeagueError(f"{file}: damaged, or no export of a league (no {DATABASE_FILE})")
    if len(set(names)) < len(names):
        raise LeagueError(f"{file}: damaged: it has a duplicate entry")
    for info in entries:
        if info.filename != DATABASE_FILE and not _MEMBER_FILE.fullmatch(info.filename):
            raise LeagueError(f"{file}: {info.filename!r} is no part of a league")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise LeagueError(f"{file}: {info.filename!r}: expected uncompressed entries")
    if sum(info.file_size for info in entries) > file.stat().st_size:  # some share their bytes
        raise LeagueError(f"{file}: damaged: its entries are larger than the file")
    return entries


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    target = folder / info.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as source, target.open("xb") as written:
        shutil.copyfileobj(source, written)
        written.flush()
        os.fsync(written.fileno())
