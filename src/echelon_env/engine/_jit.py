"""Compilation of kernels by Numba, and the cache of their machine code. Only this module imports Numba.

Numba's own cache does not notice when a function or a constant changes that an entry point takes from another file. So
the cache directory of an entry point is named by a digest of everything that determines its machine code: the bytecode
of every kernel that it calls, the value of every global that these read, and the versions of the compilers. Only entry
points are cached; their machine code contains their callees.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
import platformdirs
from numba import config as numba_config

from echelon_env.engine.intrinsics import bit_length, take


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _leading_zeros(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], context.get_constant(numba.types.boolean, False))

    return numba.types.int64(numba.types.int64), generate


@numba.extending.overload(bit_length, strict=False)  # type: ignore[untyped-decorator]
def _compiled_bit_length(value: Any) -> Any:
    return lambda value: 64 - _leading_zeros(np.int64(value))


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _fetch_add(typing_context: Any, array: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.atomic_rmw("add", place, arguments[1], "monotonic")

    return numba.types.int64(array, numba.types.int64), generate


@numba.extending.overload(take, strict=False)  # type: ignore[untyped-decorator]
def _compiled_take(turn: Any, count: Any) -> Any:
    return lambda turn, count: _fetch_add(turn, np.int64(count))


def _private_options() -> dict[str, Any]:
    """Options of Numba that are not public. A version without one of them compiles slower code; nothing else changes.

    ``_nrt``: kernels allocate nothing and the caller owns their arrays, so reference counting is not needed. A decision
    of 10 v 10 takes 58 us without it and 142 us with it: the tuple of state arrays is counted at every call.
    """
    try:
        from numba.core.options import DefaultOptions
    except ImportError:
        return {}
    return {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False, **_private_options()}


@numba.extending.typeof_impl.register(FunctionType)  # type: ignore[untyped-decorator]
def _type_of(function: Any, context: Any) -> Any:
    """Numba's type of a kernel that another one calls."""
    return numba.types.Dispatcher(callee(function)) if hasattr(function, "is_kernel") else None


@functools.cache
def callee(function: Callable[..., Any]) -> Any:
    """A kernel for other kernels' calls. It has no wrapper for Python, which would be compiled for every kernel."""
    inline = not hasattr(function, "is_shared")
    return numba.njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=inline)(function)


_LIBRARIES = ("math", "numpy")  # modules that their versions identify
_COMPILER_SETTINGS = ("NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO", "NUMBA_OPT")


def kernel_digest(function: Callable[..., Any]) -> str:
    """16 hexadecimal digits of a SHA-256 over everything that determines an entry point's machine code.

    Comments, docstrings, annotations and the installation folder are not part of it.

    Raises TypeError for a kernel that reads a global of an unsupported type.
    """
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}\n".encode())
    digest.update(str([os.environ.get(name) for name in _COMPILER_SETTINGS]).encode())
    digest.update(Path(__file__).read_bytes())  # intrinsics and options
    for line in sorted(set(_ingredients(function, set()))):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()[:16]


def _ingredients(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    """Lines for the code of a function, for each global that it reads, and for the functions that it calls."""
    plain = _plain(function)
    if id(plain) in seen:
        return
    seen.add(id(plain))
    where = f"{plain.__module__}.{plain.__qualname__}"
    yield f"{where} = {_code(plain.__code__, plain.__doc__)} {plain.__defaults__!r}"
    for name, value in _globals_of(plain):
        if isinstance(_plain(value), FunctionType):
            yield f"{where} calls {name} = {value.__module__}.{value.__qualname__}"
            yield from _ingredients(value, seen)
        else:
            yield f"{where} reads {name} = {_constant(value)}"


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals that a function may read, by name; those of this package's modules by dotted names."""
    names = set(_names(function.__code__))
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType) and value.__name__ not in _LIBRARIES:
            yield from ((f"{name}.{each}", vars(value)[each]) for each in names & vars(value).keys())


def _plain(function: Any) -> Any:
    """The Python function of an entry point; any other object unchanged."""
    return getattr(function, "function", function)


def _code(code: CodeType, documentation: str | None = None) -> str:
    """What a code object does, as text without line numbers and docstring."""
    constants = [
        _code(constant) if isinstance(constant, CodeType) else repr(constant)
        for constant in code.co_consts
        if documentation is None or constant != documentation
    ]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"


def _names(code: CodeType) -> Iterator[str]:
    """Names that a code object or a nested one may read as globals."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _constant(value: Any) -> str:
    """A global that a kernel reads, as text. Different values have different texts."""
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return str([(name, member.value) for name, member in value.__members__.items()])
    if isinstance(value, type) and (hasattr(value, "_fields") or value.__module__ in ("builtins", "numpy")):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, bool | int | float | str | np.generic | np.dtype):
        return repr(value)
    raise TypeError(f"a kernel reads {value!r}: expected a number, a string, an array, a tuple, an enum or a function")


def cache_directory(function: Callable[..., Any]) -> Path | None:
    """Directory of an entry point's machine code, or None if none can be written.

    It lies in ``$ECHELON_CACHE_DIR`` or the user's cache. It belongs to this user, and nobody else can write it or
    replace it: machine code that another one has left there would be run.
    """
    candidates = [os.environ.get("ECHELON_CACHE_DIR"), platformdirs.user_cache_dir("echelon_env")]
    for candidate in candidates:
        if not candidate:
            continue
        directory = Path(candidate) / f"kernels-{kernel_digest(function)}"
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
            directory = directory.parent.resolve(strict=True) / directory.name
            if _is_private(directory):
                with tempfile.TemporaryFile(dir=directory):
                    return directory
        except OSError:
            continue
    return None


def _is_private(directory: Path) -> bool:
    """Whether a directory, no link, belongs to this user, and nobody else can write it or rename one of its parents."""
    if not hasattr(os, "getuid"):
        return True
    found = directory.lstat()
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return own and not any(_others_can_rename_in(parent.lstat()) for parent in directory.parents)


def _others_can_rename_in(found: os.stat_result) -> bool:
    """Whether another user than root can rename entries of a directory: its owner, its group or everybody."""
    if found.st_uid not in (0, os.getuid()):
        return True
    if found.st_mode & stat.S_ISVTX:
        return False
    return bool(found.st_mode & 0o002 or (found.st_mode & 0o020 and found.st_gid != 0 and _has_others(found.st_gid)))


def _has_others(group: int) -> bool:
    """Whether another user belongs to a group, or nobody knows."""
    import grp  # not on Windows, which has no such modes
    import pwd

    try:
        members = {*grp.getgrgid(group).gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == group)}
        return not members <= {pwd.getpwuid(os.getuid()).pw_name}
    except KeyError:
        return True


@functools.cache
def _announce_compilation() -> None:
    print("echelon_env: compiling kernels (first run only)", file=sys.stderr, flush=True)


@functools.cache
def _announce_no_directory() -> None:
    text = "no folder that you alone can write: kernels will be compiled at every start, set ECHELON_CACHE_DIR"
    print(f"echelon_env: {text}", file=sys.stderr, flush=True)


class _KernelCache:
    """The machine code of an entry point on disk. It is looked up at the first call, when all callees are defined.

    After a failed read or write (full disk, damaged file) the code is compiled as if there were no cache.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @functools.cached_property
    def _cache(self) -> Any:
        return _cache_of(self._function)

    @property
    def cache_path(self) -> str | None:
        """Read by Numba's statistics."""
        return None if self._cache is None else str(self._cache.cache_path)

    def load_overload(self, *args: Any) -> Any:
        loaded = None
        if self._cache is not None:
            try:
                loaded = self._cache.load_overload(*args)
            except Exception:  # a damaged cache can fail in any way that unpickling can
                with contextlib.suppress(OSError):
                    self._cache.flush()
        if loaded is None:
            _announce_compilation()
        return loaded

    def save_overload(self, *args: Any) -> None:
        if self._cache is None:
            return
        try:
            self._cache.save_overload(*args)
        except OSError as error:
            print(f"echelon_env: compiled kernels could not be saved ({error})", file=sys.stderr, flush=True)

    def flush(self) -> None:
        if self._cache is not None:
            self._cache.flush()


def _cache_of(function: Callable[..., Any]) -> Any:
    """Numba's cache of an entry point. None without a directory for it, or if this version of Numba caches differently.

    The digest in the directory's name identifies the code. So the cache checks neither the source file's time nor its
    path, and a reinstalled package compiles nothing.
    """
    directory = cache_directory(function)
    if directory is None:
        _announce_no_directory()
        return None
    previous, numba_config.CACHE_DIR = numba_config.CACHE_DIR, str(directory)
    try:
        from numba.core.caching import FunctionCache, IndexDataCacheFile

        cache = FunctionCache(function)
        cache._cache_file = _checked(IndexDataCacheFile)(str(directory), function.__qualname__, directory.name)
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return None
    finally:
        numba_config.CACHE_DIR = previous
    return cache


@functools.cache
def _checked(base: Any) -> Any:
    """A kind of Numba's files whose contents begin with their SHA-256. A flipped bit would crash the process."""

    class Checked(base):  # type: ignore[misc]
        def _dump(self, obj: Any) -> bytes:
            data: bytes = super()._dump(obj)
            return hashlib.sha256(data).digest() + data

        def _load_index(self) -> Any:
            try:
                with open(self._index_path, "rb") as file:
                    same_version = pickle.load(file) == self._version
                    stamp, overloads = _verified(file.read())
            except Exception:  # absent, or damaged in any way
                return {}
            return overloads if same_version and stamp == self._source_stamp else {}

        def _load_data(self, name: str) -> Any:
            with open(self._data_path(name), "rb") as file:
                return _verified(file.read())

    return Checked


def _verified(data: bytes) -> Any:
    """What a file contains. Raises ValueError if it is damaged."""
    size = hashlib.sha256().digest_size
    if hashlib.sha256(data[size:]).digest() != data[:size]:
        raise ValueError("damaged")
    return pickle.loads(data[size:])


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point that Numba compiles at the first call; its machine code is cached on disk if that is possible."""
    dispatcher: Any = numba.njit(**_OPTIONS)(function)
    dispatcher._cache = _KernelCache(function)
    return dispatcher  # type: ignore[no-any-return]
