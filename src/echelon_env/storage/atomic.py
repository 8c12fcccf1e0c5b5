"""Atomic writes of files and folders: they appear whole or not at all, even after a power failure."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it. Raises OSError with the path."""
    try:
        _write_bytes(path, data)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    _sync_folder(path.parent)


def _write_bytes(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
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


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill. It is renamed to `path` at the end of the block, and removed if the block fails.

    Raises FileExistsError if `path` exists and is not an empty folder. An OSError in the block that names a temporary
    file, or none, is changed to name `path`.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(errno.EEXIST, "is not an empty folder, choose another name", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        os.chmod(temporary, 0o777 & ~_umask())
        _sync_folder(temporary)
        if path.exists():
            path.rmdir()  # an empty one
        os.rename(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and Path(error.filename or temporary).is_relative_to(temporary):
            error.filename = str(path)
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(path.parent)


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
