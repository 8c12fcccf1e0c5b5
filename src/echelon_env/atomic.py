"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path


def free_path(path: Path) -> Path:
    """The path itself, or the first of ``name-2.end``, ``name-3.end``, ... that nothing is at yet."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary name to write a file under, renamed to `path` at the end of the block, gone if the block fails.

    An OSError that names no file, or the temporary one, is made to name `path`. Raises FileExistsError if there is
    something at `path` already, and FileNotFoundError if its folder is missing.
    """
    if path.exists():
        raise FileExistsError(errno.EEXIST, "exists already, choose another name", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    with _renamed(path) as temporary:
        yield temporary


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill, renamed to `path` at the end of the block, gone with its files if the block fails.

    Errors as of `new_file`; an empty folder may be at `path` already, and the folders above it are made.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(errno.EEXIST, "is not an empty folder, choose another name", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _renamed(path) as temporary:
        temporary.mkdir()
        yield temporary
        if path.exists():
            path.rmdir()


@contextlib.contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        os.rename(temporary, path)
    except OSError as error:
        if error.filename is None or Path(error.filename).is_relative_to(temporary):
            error.filename = str(path)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
