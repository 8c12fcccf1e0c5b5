"""Kernels that Numba compiles: the cache of their machine code, and what identifies it."""

import errno
import os
import stat
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numba
import numba.core.caching
import numba.core.options
import pytest

from echelon_env.engine import _jit, geometry


def double(x):
    return 2 * x


def is_kept(monkeypatch, cache) -> bool:
    """Whether the machine code of `double` is in a cache. If not, it is compiled and written there."""
    monkeypatch.setenv("ECHELON_CACHE_DIR", str(cache))
    dispatcher = _jit.compiled(double)
    assert dispatcher(21) == 42
    return bool(dispatcher.stats.cache_hits)


def flip_a_bit(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]


def test_compiled_code_is_kept_and_compiled_again_if_it_is_damaged(monkeypatch, tmp_path, capsys):
    _jit._announce_compilation.cache_clear()
    assert not is_kept(monkeypatch, tmp_path)
    assert capsys.readouterr().err == "echelon_env: compiling kernels (first run only)\n"
    for kind, damage in (("*.nbi", flip_a_bit), ("*.nbc", flip_a_bit), ("*.nbi", lambda data: b"")):
        assert is_kept(monkeypatch, tmp_path)
        (file,) = tmp_path.rglob(kind)
        file.write_bytes(damage(file.read_bytes()))
        assert not is_kept(monkeypatch, tmp_path)


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("change", [("FunctionCache", None), ("IndexDataCacheFile.save", full)])
def test_a_full_disk_or_a_numba_without_its_private_parts_costs_only_the_cache(monkeypatch, tmp_path, capsys, change):
    name, value = change
    monkeypatch.setattr(f"numba.core.caching.{name}", value)
    assert [is_kept(monkeypatch, tmp_path) for _ in range(2)] == [False, False]
    assert ("could not be saved" in capsys.readouterr().err) == (value is full)
    monkeypatch.delattr("numba.core.options.DefaultOptions")
    assert _jit._private_options() == {}


@pytest.mark.skipif(sys.platform == "win32", reason="it has no modes")
def test_a_directory_that_others_can_write_or_own_is_not_used(monkeypatch, tmp_path, capsys):
    """They could leave machine code there, which would be run."""
    cache, home = tmp_path / "cache", tmp_path / "home"
    monkeypatch.setenv("ECHELON_CACHE_DIR", str(cache))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    directory = _jit.cache_directory(double)
    assert directory.parent == cache and stat.S_IMODE(directory.stat().st_mode) == 0o700

    def is_used():
        return _jit.cache_directory(double) == directory

    directory.chmod(0o770)
    assert not is_used()
    directory.chmod(0o700)
    cache.chmod(0o777)  # another user could put a directory of the same name there, after the check
    assert not is_used()
    cache.chmod(0o1777)
    assert is_used()
    cache.chmod(0o755)
    moved = directory.rename(tmp_path / "moved")
    directory.symlink_to(moved)
    assert _jit.cache_directory(double).is_relative_to(home)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    _jit._announce_no_directory.cache_clear()
    assert not is_kept(monkeypatch, cache)
    assert "no folder that you alone can write" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="it has no groups")
def test_a_group_of_others_is_told_from_ones_own(monkeypatch):
    import grp
    import pwd

    own = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwall", lambda: [own])
    for members, others in (([], False), ([own.pw_name], False), ([own.pw_name, "eve"], True)):
        monkeypatch.setattr(grp, "getgrgid", lambda group, members=members: SimpleNamespace(gr_mem=members))
        folder = SimpleNamespace(st_uid=os.getuid(), st_gid=54321, st_mode=0o40775)
        assert _jit._others_can_rename_in(folder) is others
    monkeypatch.setattr(grp, "getgrgid", lambda group: {}[group])
    assert _jit._others_can_rename_in(folder) is True


KERNELS = """
import enum
import numpy as np
from echelon_env.engine import geometry
from echelon_env.engine.kernels import entry_point, kernel

LIMIT, SHARE, SIZES, TABLE = 3, 0.5, (1, (2, 3)), np.arange(3)

class Field(enum.IntEnum):
    FIRST = 0

@kernel
def callee(x, more=1):
    "A text."
    return x * LIMIT + more

@entry_point
def entry(x):
    return callee(x) + SHARE * SIZES[0] + TABLE[0] + Field.FIRST + geometry.TINY
"""


def digest_after(old: str = "", new: str = "") -> str:
    """The digest of `entry` after an edit of its module."""
    assert old in KERNELS
    module = {"__name__": "edited"}
    exec(KERNELS.replace(old, new, 1), module)
    return _jit.kernel_digest(module["entry"].function)


@pytest.mark.parametrize(
    ("old", "new", "recompiles"),
    [
        ("LIMIT, SHARE", "# a comment\n\nLIMIT, SHARE", False),
        ("A text.", "Another text.", False),
        ("class Field", "def further():\n    return 1\n\nclass Field", False),
        ("= 3, 0.5", "= 4, 0.5", True),
        ("= 3, 0.5", "= 3, 0.25", True),
        ("(2, 3)", "(2, 4)", True),
        ("np.arange(3)", "np.arange(4)", True),
        ("np.arange(3)", "np.arange(3.0)", True),
        ("FIRST = 0", "FIRST = 1", True),
        ("FIRST = 0", "FIRST = 0\n    SECOND = 1", True),
        ("x * LIMIT", "x + LIMIT", True),
        ("more=1", "more=2", True),
    ],
)
def test_only_edits_of_kernels_and_of_what_they_read_recompile(old, new, recompiles):
    """Numba freezes globals and would continue with the old value."""
    assert (digest_after(old, new) != digest_after()) == recompiles


def test_a_constant_of_another_module_and_another_compiler_or_setting_recompile(monkeypatch):
    digests = [digest_after()]
    monkeypatch.setattr(geometry, "TINY", 0.5)
    digests.append(digest_after())
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    digests.append(digest_after())
    monkeypatch.setattr(_jit.numba, "__version__", "0.0")
    digests.append(digest_after())
    assert len(set(digests)) == len(digests)


def test_pyproject_bounds_numba_by_the_version_that_is_tested():
    """The digest and the cache use private parts of Numba, so a newer version is allowed only after a test."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [numba_line] = project["optional-dependencies"]["jit"]
    major, minor = numba.__version__.split(".")[:2]
    assert numba_line == f"numba>=0.68,<{major}.{int(minor) + 1}"
