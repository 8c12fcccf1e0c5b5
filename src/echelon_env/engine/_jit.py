"""The package's only door to Numba: how kernels are compiled and where the compiled code is kept.

Numba's on-disk cache does not notice an edit in a callee that lives in another file, so the cache directory is named
by a hash of every source that an entry point can call and of the Numba version. Only entry points are cached: they
carry their callees.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import platformdirs
from numba import _dynfunc
from numba.core import config as numba_config
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.options import DefaultOptions
from numba.core.typed_passes import NativeLowering

Function = TypeVar("Function", bound=Callable[..., Any])

Row = Any
"""A record of one of the state's or the tables' arrays (see `state` and `tables`)."""

integer: Any = np.int64
"""The one integer type that kernels hand on: Numba compiles them anew for every narrower type and every constant."""

JIT_DISABLED = bool(numba_config.DISABLE_JIT)


def bit_length(value: int) -> int:
    """One more than the place of the highest bit of a non-negative integer that is 1; 0 of 0."""
    return int(value).bit_length()


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _leading_zeros(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], context.get_constant(numba.types.boolean, False))

    return numba.types.int64(numba.types.int64), generate


@numba.extending.overload(bit_length, strict=False)  # type: ignore[untyped-decorator]
def _compiled_bit_length(value: Any) -> Any:
    return lambda value: 64 - _leading_zeros(np.int64(value))


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}
if hasattr(DefaultOptions, "_nrt"):
    # Kernels allocate nothing and their arrays belong to the caller, so counting references to them is wasted: without
    # it a decision of 10 v 10 takes 58 us, with it 142 (the tuple of state arrays is counted at every call).
    _OPTIONS["_nrt"] = False


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):  # type: ignore[misc]
    """Lowers a function that becomes machine code within its callers only.

    Numba optimises and assembles every function by itself first, and again whatever it calls: a quarter of the
    compilation, for code that nobody runs.
    """

    _name = "echelon_inner_lowering"

    def run_pass(self, state: Any) -> Any:
        context = state.targetctx
        library = state.library = context.codegen().create_library(state.func_id.func_qualname)
        library.enable_object_caching()

        def finalize() -> None:
            library._finalize_dynamic_globals()
            library._finalized = True

        def get_executable(library: Any, description: Any, environment: Any) -> Any:
            library._ensure_finalized()
            name = description.qualname.split(".")[-1]
            return _dynfunc.make_function(description.lookup_module(), name, "", NO_ADDRESS, environment, (library,))

        library._optimize_final_module = lambda: None
        library._finalize_final_module = finalize
        state.targetctx = copy.copy(context)
        state.targetctx.get_executable = get_executable
        try:
            return super().run_pass(state)
        finally:
            state.targetctx = context


class _InnerCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (_InnerLowering if step is NativeLowering else step, description) for step, description in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]


NO_ADDRESS = 1  # of functions that have no machine code of their own

_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INSIDES = (
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_ensure_finalized",
    "_finalized",
)
if all(hasattr(CPUCodeLibrary, name) for name in _INSIDES):
    _INNER["pipeline_class"] = _InnerCompiler


def kernel(function: Function) -> Function:
    """Compile a function that other kernels call.

    One that takes the state can be called by kernels only (a call from Python crashes the process): unpacking all the
    state's arrays in a wrapper for Python, and machine code apart from its callers', would take half the compilation.
    """
    inner = _INNER if "state" in inspect.signature(function).parameters else {}
    compiled: Function = numba.njit(**_OPTIONS, **inner, forceinline=True)(function)
    return compiled


def source_hash(folder: Path) -> str:
    """Hash of all sources that code compiled for a folder depends on, and of the versions that compile it."""
    engine = Path(__file__).resolve().parent
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for path in sorted({*engine.parent.glob("*.py"), *engine.glob("*.py"), *folder.glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def imported_hash(folder: Path) -> str:
    """The hash of a folder's sources as they were when this process began to import them."""
    return source_hash(folder)


def cache_directory(folder: Path) -> Path | None:
    """Where code for a folder is kept: in ``$ECHELON_CACHE_DIR``, the user's cache, or the temporary directory."""
    candidates = [
        Path(os.environ["ECHELON_CACHE_DIR"]) if os.environ.get("ECHELON_CACHE_DIR") else None,
        Path(platformdirs.user_cache_dir("echelon_env")),
        Path(tempfile.gettempdir()) / f"echelon_env-{os.getuid() if hasattr(os, 'getuid') else 'user'}",
    ]
    for candidate in candidates:
        if candidate is None:
            continue
        directory = candidate / f"kernels-{imported_hash(folder)}"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                return directory
        except OSError:
            continue
    return None


@functools.cache
def _announce_compilation() -> None:
    print("echelon_env: compiling kernels (first run only)", file=sys.stderr, flush=True)


class _TolerantCache:
    """Numba's cache of one function, with failed reads and writes (full disk, damaged file) costing only the cache."""

    def __init__(self, cache: Any, folder: Path) -> None:
        self._cache = cache
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *args: Any) -> Any:
        try:
            loaded = self._cache.load_overload(*args)
        except Exception:  # a damaged cache can fail in any way that unpickling can
            loaded = None
            self._cache.flush()
        if loaded is None:
            _announce_compilation()
        return loaded

    def save_overload(self, *args: Any) -> None:
        if source_hash(self._folder) != imported_hash(self._folder):
            return  # a source was edited since: what was compiled may be older or newer than the directory's name says
        try:
            self._cache.save_overload(*args)
        except OSError as error:
            print(f"echelon_env: compiled kernels could not be kept ({error})", file=sys.stderr, flush=True)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls, keeping the machine code on disk where a directory can be written.

    Without the JIT (``NUMBA_DISABLE_JIT=1``) structured arrays among the arguments are viewed as record arrays, so
    that the same source runs in plain Python.
    """
    if JIT_DISABLED:
        return _uncompiled(function)
    folder = Path(inspect.getfile(function)).resolve().parent
    directory = cache_directory(folder)
    if directory is None:
        uncached: Function = numba.njit(**_OPTIONS)(function)
        return uncached
    previous = numba_config.CACHE_DIR
    numba_config.CACHE_DIR = str(directory)
    try:
        compiled: Any = numba.njit(cache=True, **_OPTIONS)(function)
    finally:
        numba_config.CACHE_DIR = previous
    compiled._cache = _TolerantCache(compiled._cache, folder)
    result: Function = compiled
    return result


def _uncompiled(function: Function) -> Function:
    def call(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*[_as_records(arg) for arg in args])

    return call  # type: ignore[return-value]


def _as_records(arg: Any) -> Any:
    if isinstance(arg, tuple):
        return type(arg)(*[_as_records(item) for item in arg])
    if isinstance(arg, np.ndarray) and arg.dtype.names is not None:
        return arg.view(np.recarray)
    return arg
