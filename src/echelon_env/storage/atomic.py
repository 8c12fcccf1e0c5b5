"""Atomic writes of files and new folders: they appear whole or not at all, even after a power failure."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it. Raises OSError with the path."""
    write_parts(path, [data])


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file as `write_bytes`, from parts of it that need not be in memory together."""
    try:
        _write_parts(path, parts)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    _sync_folder(path.parent)


def _write_parts(path: Path, parts: Iterable[bytes]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=_prefix(path), dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes files that only the owner reads
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_json(path: Path, data: Any) -> None:
    """Write data as indented JSON, atomically. Raises OSError, and ValueError for a number that is not finite."""
    write_bytes(path, (json.dumps(data, indent=2, allow_nan=False) + "\n").encode())


def free_path(path: Path) -> Path:
    """The path itself, or the first of ``name-2.end``, ``name-3.end``, ... that does not exist."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate


def check_new_folder(path: Path) -> None:
    """Raise OSError if `new_folder` cannot write at `path`. Call it before a long computation of what goes there."""
    place = Path(os.path.realpath(path))
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        folder = next(parent for parent in place.parents if parent.exists())  # missing folders are created
        if not folder.is_dir():
            raise NotADirectoryError(
                errno.ENOTDIR, "is not a folder, nothing can be written into it", str(folder)
            ) from None
    else:
        folder = place
        if not folder.is_dir():
            raise FileExistsError(errno.EEXIST, "is not an empty folder, choose another name", str(path))
        if (entry := next(folder.iterdir(), None)) is not None:
            reason = f"is not an empty folder (it holds {entry.name!r}), choose another name"
            raise FileExistsError(errno.EEXIST, reason, str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "is not writable, nothing can be written into it", str(folder))


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill. It is renamed to `path` at the end of the block, and removed if the block fails.

    An empty folder at `path` stays: it may be a mount point, a link, or the working directory, which nothing can
    replace. Its new contents are moved into it at the end.

    Raises FileExistsError if `path` exists and is not an empty folder, and as `check_new_folder`. An OSError in the
    block that names a temporary file, or none, is changed to name `path`.
    """
    check_new_folder(path)
    place = Path(os.path.realpath(path))
    empty = place if place.exists() else None
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=_prefix(place), dir=empty or place.parent))  # on the same file system
    try:
        yield temporary
        if empty is None:
            os.chmod(temporary, 0o777 & ~_umask())
            _sync_folder(temporary)
            os.rename(temporary, place)
        else:
            _move_contents(temporary, empty)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and Path(error.filename or temporary).is_relative_to(temporary):
            error.filename, error.filename2 = str(path), None
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(empty or place.parent)


def _move_contents(source: Path, target: Path) -> None:
    """Move all entries of a folder into another one on the same file system, and remove it."""
    entries = sorted(source.iterdir())
    for entry in entries:
        if os.path.lexists(target / entry.name):  # it has come since the folder was found empty
            raise FileExistsError(errno.EEXIST, "exists already", str(target / entry.name))
    for entry in entries:
        os.rename(entry, target / entry.name)
    source.rmdir()


def _prefix(path: Path) -> str:
    """What the names of temporary files for `path` begin with: a part of its name, so that they are not too long."""
    return f".{path.name[:64]}."


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, on systems that can open folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
