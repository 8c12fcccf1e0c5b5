import dis
import itertools
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import numba
import numpy as np
import pytest

import echelon_env
from echelon_env.engine import _jit
from echelon_env.engine.kernels import EntryPoint

TESTS = str(Path(__file__).parent.parent)


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment | {"PYTHONPATH": TESTS}, capture_output=True, text=True, check=False,
    )  # fmt: skip


LOAD = """
from echelon_env.engine import _jit
from echelon_env.engine.kernels import entry_point
@entry_point
def double(x):
    return 2 * x
assert double(21) == 42
print(_jit.cache_directory(double.function))
"""


def compiles(result: subprocess.CompletedProcess) -> bool:
    assert result.returncode == 0, result.stderr
    return "compiling kernels (first run only)" in result.stderr


@pytest.fixture
def script(tmp_path):
    """A file with an entry point, because Numba caches only functions from files."""
    path = tmp_path / "load.py"
    path.write_text(LOAD)

    def call(**environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, str(path)], env=os.environ | environment, capture_output=True, text=True, check=False
        )

    return call


def flip_a_bit(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "damage"), [("*.nbi", flip_a_bit), ("*.nbc", flip_a_bit), ("*.nbi", lambda data: b"")]
)
def test_compiled_code_is_kept_and_compiled_again_if_it_is_damaged(script, tmp_path, kind, damage):
    cache = tmp_path / "cache"
    assert compiles(script(ECHELON_CACHE_DIR=str(cache)))
    assert not compiles(script(ECHELON_CACHE_DIR=str(cache)))
    (file,) = cache.rglob(kind)
    file.write_bytes(damage(file.read_bytes()))
    assert compiles(script(ECHELON_CACHE_DIR=str(cache)))
    assert not compiles(script(ECHELON_CACHE_DIR=str(cache)))


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="it has no modes")
def test_a_directory_that_others_can_write_or_own_is_not_used(script, tmp_path):
    """They could leave machine code there, which would be run."""
    cache, home = tmp_path / "cache", tmp_path / "home"
    (directory,) = (Path(line) for line in script(ECHELON_CACHE_DIR=str(cache)).stdout.splitlines())
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o770)
    assert str(home) in script(ECHELON_CACHE_DIR=str(cache), XDG_CACHE_HOME=str(home)).stdout
    directory.chmod(0o700)
    cache.chmod(0o777)  # another user could put a directory of the same name there, after the check
    assert str(home) in script(ECHELON_CACHE_DIR=str(cache), XDG_CACHE_HOME=str(home)).stdout
    cache.chmod(0o1777)
    assert str(cache) in script(ECHELON_CACHE_DIR=str(cache), XDG_CACHE_HOME=str(home)).stdout
    cache.chmod(0o755)
    moved = directory.rename(tmp_path / "moved")
    directory.symlink_to(moved)
    assert str(home) in script(ECHELON_CACHE_DIR=str(cache), XDG_CACHE_HOME=str(home)).stdout
    result = script(ECHELON_CACHE_DIR=str(cache), XDG_CACHE_HOME="/dev/null")
    assert compiles(result)
    assert "no folder that you alone can write" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="it has no groups")
def test_a_group_of_others_is_told_from_ones_own(monkeypatch):
    import grp
    import pwd

    own = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwall", lambda: [own])
    for members, others in (([], False), ([own.pw_name], False), ([own.pw_name, "eve"], True)):
        monkeypatch.setattr(grp, "getgrgid", lambda group, members=members: SimpleNamespace(gr_mem=members))
        assert _jit._has_others(own.pw_gid) is others
        folder = SimpleNamespace(st_uid=os.getuid(), st_gid=54321, st_mode=0o40775)
        assert _jit._others_can_rename_in(folder) is others
    monkeypatch.setattr(grp, "getgrgid", lambda group: {}[group])
    assert _jit._has_others(own.pw_gid) is True


@pytest.mark.long
def test_a_full_disk_costs_only_the_cache(script, tmp_path):
    code = f"""
import errno, runpy
from numba.core.caching import IndexDataCacheFile
def full(self, *args):
    raise OSError(errno.ENOSPC, "No space left on device")
IndexDataCacheFile.save = full
runpy.run_path({str(tmp_path / "load.py")!r})
"""
    result = run(code, ECHELON_CACHE_DIR=str(tmp_path / "cache"))
    assert result.returncode == 0, result.stderr
    assert "could not be saved" in result.stderr


def entry_points():
    modules = [module for name, module in sys.modules.items() if name.startswith("echelon_env.")]
    functions = {
        entry.__qualname__: entry.function
        for module in modules
        for entry in vars(module).values()
        if isinstance(entry, EntryPoint)
    }
    assert {"step_range", "begin_battle", "act_rows"} <= functions.keys()
    return functions


def constants_of(function, seen):
    """(namespace, name) of every constant that an entry point's kernels read, from their bytecode."""
    plain = getattr(function, "function", function)
    if plain in seen:
        return
    seen.add(plain)
    instructions = list(dis.get_instructions(plain.__code__))
    for load, following in itertools.pairwise([*instructions, None]):
        if load.opname != "LOAD_GLOBAL" or load.argval not in plain.__globals__:
            continue
        space, name = plain.__globals__, load.argval
        if isinstance(space[name], ModuleType) and space[name].__name__.startswith("echelon_env"):
            space, name = vars(space[name]), following.argval
        value = space[name]
        if isinstance(value, FunctionType):
            yield from constants_of(value, seen)
        elif isinstance(value, int | float | tuple | np.ndarray) and not isinstance(value, bool):
            yield space, name


@pytest.mark.parametrize("name", sorted(entry_points()))
def test_every_constant_that_a_kernel_reads_changes_the_digest(monkeypatch, name):
    """Numba freezes globals and would continue with the old value."""
    function = entry_points()[name]
    before = _jit.kernel_digest(function)
    constants = {(id(space), name): space for space, name in constants_of(function, set())}
    for (_, read), space in constants.items():
        value = space[read]
        with monkeypatch.context() as patch:
            patch.setitem(space, read, (value, 1) if isinstance(value, tuple) else value + 1)
            assert _jit.kernel_digest(function) != before, f"{space['__name__']}.{read}"
    assert constants
    assert _jit.kernel_digest(function) == before


def digest_after(folder, *edits):
    """The digest of `step_range` in a copy of the package with edits (file, old text, new text)."""
    package = shutil.copytree(Path(echelon_env.__file__).parent, folder / "echelon_env")
    for path, old, new in edits:
        text = (package / path).read_text()
        assert old in text
        (package / path).write_text(text.replace(old, new, 1))
    code = "from echelon_env.engine import _jit, tick; print(_jit.kernel_digest(tick.step_range.function))"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.mark.parametrize(
    ("edits", "recompiles"),
    [
        (
            [
                ("layout/observations.py", "EGO_SIDE = ", "# a comment\nEGO_SIDE = "),
                ("engine/zone.py", '"""', '"""A docstring. '),
                ("spaces/describe.py", "def describe_action(", "ONE = 1\n\n\ndef describe_action("),
            ],
            False,
        ),
        (
            [("layout/observations.py", "class Objective(Feature):\n", "class Objective(Feature):\n    ONE = '1'\n")],
            True,
        ),
        ([("engine/zone.py", "<= battle.zone_radius", "< battle.zone_radius")], True),
    ],
    ids=["no kernel", "an enum", "a callee"],
)
def test_only_edits_of_kernels_recompile(tmp_path, edits, recompiles):
    unedited = _jit.kernel_digest(entry_points()["step_range"])
    assert (digest_after(tmp_path, *edits) != unedited) == recompiles


def test_another_compiler_version_or_setting_recompiles(monkeypatch):
    function = entry_points()["step_range"]
    before = _jit.kernel_digest(function)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    checked = _jit.kernel_digest(function)
    monkeypatch.setattr(_jit.numba, "__version__", "0.0")
    assert len({before, checked, _jit.kernel_digest(function)}) == 3


@pytest.mark.long
def test_a_numba_without_its_private_parts_still_compiles(tmp_path):
    """Without private parts the machine code is slower or not cached; everything else works."""
    code = """
import numba.core.caching, numba.core.options
del numba.core.options.DefaultOptions
numba.core.caching.FunctionCache = None
from echelon_env.engine import _jit
from echelon_env.engine.kernels import entry_point
assert "_nrt" not in _jit._OPTIONS
@entry_point
def double(x):
    return 2 * x
assert double(21) == 42
"""
    cache = tmp_path / "cache"
    result = run(code, ECHELON_CACHE_DIR=str(cache))
    assert result.returncode == 0, result.stderr
    assert not list(cache.rglob("*.nbi"))


def test_pyproject_bounds_numba_by_the_version_that_is_tested():
    """The digest and the cache use private parts of Numba, so a newer version is allowed only after a test."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [numba_line] = project["optional-dependencies"]["jit"]
    major, minor = numba.__version__.split(".")[:2]
    assert numba_line == f"numba>=0.68,<{major}.{int(minor) + 1}"
