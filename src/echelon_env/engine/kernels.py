"""Kernels: functions of numbers and arrays that run as machine code, and the backend that it comes from.

A kernel is an ordinary function: Python calls it as such. Kernels run as machine code where an entry point calls them.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from echelon_env.engine import _library

Function = TypeVar("Function", bound=Callable[..., Any])

Row = Any
"""A record of one of the state's or the tables' arrays (see `state` and `tables`)."""

integer: Any = np.int64
"""The integer type that kernels pass on. Numba compiles a kernel again for every narrower type and every constant."""


class Backend(NamedTuple):
    """Where the kernels' machine code comes from."""

    name: str
    """``"library"``: machine code that the package brings; ``"jit"``: Numba compiles it and caches it on disk;
    ``"python"``: no machine code, about 1,000 times slower; ``"none"``: no kernel can run."""

    reason: str
    """Why it was chosen, in words."""


class BackendError(RuntimeError):
    """Raised by a kernel's call if there is neither a library for this machine nor Numba."""


def kernel(function: Function) -> Function:
    """Mark a function that entry points and other kernels may call."""
    function.is_kernel = True  # type: ignore[attr-defined]
    return function


def shared_kernel(function: Function) -> Function:
    """Mark a large kernel that many others call: it is compiled once, not into each of its callers."""
    function.is_shared = True  # type: ignore[attr-defined]
    return kernel(function)


def backend() -> Backend:
    """The backend of this process, and why it is that one.

    It is the library unless ``ECHELON_JIT=1`` is set, it has no machine code for this processor, its file is damaged,
    or a source file of a kernel has changed since it was built. Then Numba compiles, if it is installed.
    ``NUMBA_DISABLE_JIT=1`` chooses Python.
    """
    return _choose()[0]


def browser_module() -> bytes:
    """The kernels as a WebAssembly module. Raises `BackendError` if there is none of the present kernels."""
    return _built(_library.MODULE, "WebAssembly module")


def gpu_code() -> str:
    """PTX of the kernels for NVIDIA's GPUs. Raises `BackendError` if there is none of the present kernels."""
    return _built(_library.PTX, "machine code for GPUs").decode()


def _built(name: str, what: str) -> bytes:
    try:
        return _library.read_built(Path(__file__).parents[1], name)
    except _library.LibraryError as error:
        raise BackendError(f"no {what}: {error}; in a checkout run 'make library'") from None


@functools.cache
def _choose() -> tuple[Backend, _library.Library | None]:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return Backend("python", "NUMBA_DISABLE_JIT is set"), None
    if os.environ.get("ECHELON_JIT", "0") not in ("", "0"):
        reason = "ECHELON_JIT is set"
    else:
        try:
            library = _library.load(Path(__file__).parents[1])
            return Backend("library", library.description), library
        except _library.LibraryError as error:
            reason = str(error)
    if importlib.util.find_spec("numba"):
        return Backend("jit", reason), None
    return Backend("none", reason), None


class EntryPoint:
    """A kernel that Python calls. `bind` prepares its first arguments, which costs more than a call does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return self._bind()(*arguments)

    def bind(self, *first: Any) -> Bound:
        """A function of the remaining arguments. The arrays among the first ones must keep their shapes.

        Raises
        ------
        TypeError
            If an argument is not of the type that the machine code expects: the dtype, the number of axes, a
            C-contiguous and writable array. The calls raise it for the remaining arguments.
        BackendError
            If there is no machine code for this machine and no Numba.
        """
        return Bound(self, first)

    @functools.cached_property
    def _bind(self) -> Callable[..., Callable[..., Any]]:
        chosen, library = _choose()
        found = None if library is None else library.find(self.function)
        if found is not None:
            return found.bind
        if chosen.name == "python":
            return functools.partial(functools.partial, _on_records(self.function))
        if chosen.name == "none" or not importlib.util.find_spec("numba"):
            why = chosen.reason if library is None else f"the library has no {self.function.__qualname__}"
            raise BackendError(f"no machine code: {why}; install Numba, pip install 'echelon-env[jit]'")
        from echelon_env.engine import _jit

        return functools.partial(functools.partial, _jit.compiled(self.function))

    def __reduce__(self) -> str:
        return self.function.__qualname__


class Bound:
    """An entry point with its first arguments. A copy or a pickle binds the copied arrays.

    Attributes
    ----------
    call
        The function of the remaining arguments, without this object.
    """

    def __init__(self, entry: EntryPoint, first: tuple[Any, ...]) -> None:
        self._entry, self._first = entry, first
        self.call: Callable[..., Any] = entry._bind(*first)

    def __call__(self, *rest: Any) -> Any:
        """Run the machine code."""
        return self.call(*rest)

    def __reduce__(self) -> tuple[type[Bound], tuple[EntryPoint, tuple[Any, ...]]]:
        return Bound, (self._entry, self._first)


def entry_point(function: Callable[..., Any]) -> EntryPoint:
    """A kernel that Python calls. The library has those of the package, which return nothing; Numba compiles others."""
    return EntryPoint(kernel(function))


def _on_records(function: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point in Python: it gets structured arrays as record arrays, so that the same source runs."""

    def call(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*[_as_records(arg) for arg in args])

    return call


def _as_records(arg: Any) -> Any:
    if isinstance(arg, tuple):
        return type(arg)(*[_as_records(item) for item in arg])
    if isinstance(arg, np.ndarray) and arg.dtype.names is not None:
        return arg.view(np.recarray)
    return arg
