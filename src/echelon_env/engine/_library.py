"""The library of machine code that a wheel brings: checks of its files, and calls of its functions through ctypes.

The folder `machine_code` has the library and ``manifest.json``. The build package `native` writes both; its README
describes them.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import operator
import platform
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

FOLDER = "machine_code"
MANIFEST = "manifest.json"
MODULE = "echelon.wasm"
"""The same functions for browsers."""
PTX = "echelon.ptx"
"""Functions for NVIDIA's GPUs."""


class LibraryError(Exception):
    """Why there is no usable library."""


class _Kind(Protocol):
    """The type of an argument: how it becomes words."""

    def words(self, name: str, value: Any) -> bytes: ...


class _Scalar:
    """An integer, a truth value or a float: one word."""

    def __init__(self, name: str) -> None:
        self.code = "d" if name == "float64" else "q"
        self._pack = struct.Struct(f"<{self.code}").pack
        self._read: Callable[[Any], Any] = operator.methodcaller("__float__") if name == "float64" else operator.index
        self._name = name

    def words(self, name: str, value: Any) -> bytes:
        try:
            return self._pack(self._read(value))
        except (TypeError, AttributeError, struct.error):
            raise TypeError(f"{name}: expected {self._name}, got {value!r}") from None


class _Array:
    """An array: two empty words, the numbers of entries and of bytes of one, the address, the shape, the strides."""

    def __init__(self, dtype: np.dtype[Any], axes: int) -> None:
        self._dtype, self._axes = dtype, axes
        self._pack = struct.Struct(f"<{5 + 2 * axes}q").pack

    def words(self, name: str, value: Any) -> bytes:
        if not (isinstance(value, np.ndarray) and value.dtype == self._dtype and value.ndim == self._axes):
            got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(type(value))
            raise TypeError(f"{name}: expected an array of {self._dtype} with {self._axes} axes, got {got}")
        if not value.flags.carray:
            raise TypeError(f"{name}: expected an aligned, C-contiguous, writable array, got {value.flags}")
        return self._pack(0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)


class _Tuple:
    """A named tuple: the words of its fields."""

    def __init__(self, fields: dict[str, _Kind]) -> None:
        self._fields = fields

    def words(self, name: str, value: Any) -> bytes:
        names = getattr(value, "_fields", None)
        if not isinstance(value, tuple) or names != tuple(self._fields):
            raise TypeError(f"{name}: expected a named tuple of {', '.join(self._fields)}, got {names or type(value)}")
        return b"".join(
            kind.words(f"{name}.{field}", each) for (field, kind), each in zip(self._fields.items(), value, strict=True)
        )


def _kind(described: Any) -> _Kind:
    """An argument's type from the manifest."""
    if isinstance(described, str):
        return _Scalar(described)
    if "fields" in described:
        return _Tuple({name: _kind(each) for name, each in described["fields"].items()})
    return _Array(dtype_of(described["dtype"]), described["axes"])


def dtype_of(described: Any) -> np.dtype[Any]:
    """A dtype from its description, see `describe_dtype`."""
    if isinstance(described, str):
        return np.dtype(described)
    if "shape" in described:
        return np.dtype((dtype_of(described["base"]), tuple(described["shape"])))
    fields = {name: (dtype_of(each), offset) for name, (each, offset) in described["fields"].items()}
    names, parts = list(fields), list(fields.values())
    formats, offsets = [part for part, _ in parts], [offset for _, offset in parts]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": described["size"]})


def describe_dtype(dtype: np.dtype[Any]) -> Any:
    """A dtype as JSON, with the offsets of its fields."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": describe_dtype(base), "shape": list(shape)}
    if dtype.fields is None:
        return dtype.str
    fields = {name: [describe_dtype(dtype.fields[name][0]), dtype.fields[name][1]] for name in dtype.names or ()}
    return {"fields": fields, "size": dtype.itemsize}


class LibraryFunction:
    """An entry point in the library."""

    def __init__(self, name: str, symbol: Any, arguments: dict[str, Any]) -> None:
        symbol.argtypes, symbol.restype = [ctypes.c_char_p], ctypes.c_int32
        self._name, self._symbol = name, symbol
        self._kinds = [(argument, _kind(described)) for argument, described in arguments.items()]

    def bind(self, *first: Any) -> Callable[..., None]:
        """See `kernels.EntryPoint.bind`."""
        bound, left = self._words(self._kinds[: len(first)], *first), self._kinds[len(first) :]
        symbol, name, pack = self._symbol, self._name, self._packer(left)

        def call(*rest: Any) -> None:
            # The arrays stay where they are: NumPy resizes none that another object, `call.arrays`, refers to.
            try:
                words = pack(*rest)
            except struct.error:  # say which one is wrong
                words = self._words(left, *rest)
            status = symbol(bound + words)
            if status != 0:
                raise RuntimeError(f"{name} failed with status {status}: please report this as a bug")

        call.arrays = list(_arrays(first))  # type: ignore[attr-defined]
        return call

    def _packer(self, kinds: list[tuple[str, _Kind]]) -> Callable[..., bytes]:
        """What turns arguments of these types into words; scalars, which most calls pass, all at once."""
        codes = [kind.code for _, kind in kinds if isinstance(kind, _Scalar)]
        at_once = struct.Struct(f"<{''.join(codes)}").pack
        return at_once if len(codes) == len(kinds) else functools.partial(self._words, kinds)

    def _words(self, kinds: list[tuple[str, _Kind]], *values: Any) -> bytes:
        if len(kinds) != len(values):
            names = ", ".join(name for name, _ in kinds)
            raise TypeError(f"{self._name}: expected {len(kinds)} arguments ({names}), got {len(values)}")
        return b"".join([kind.words(name, value) for (name, kind), value in zip(kinds, values, strict=True)])


def _arrays(values: tuple[Any, ...]) -> Iterator[Any]:
    """The arrays among values and in their tuples."""
    for value in values:
        yield from _arrays(value) if isinstance(value, tuple) else (value,)


class Library:
    """The loaded library. Its functions release the global interpreter lock."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        try:
            self._loaded = ctypes.CDLL(str(folder / manifest["library"]))
        except OSError as error:
            raise LibraryError(f"the library cannot be loaded ({error})") from None
        self._entries = manifest["entries"]
        level = self._loaded.echelon_level()
        # the processor's levels for which there is machine code, and the one that is used
        self.levels = [name for name, needs in manifest["levels"].items() if needs <= level]
        if not self.levels:
            raise LibraryError(f"the processor is older than {next(iter(manifest['levels']))}")
        self.level = self.levels[-1]
        self.description = f"machine code for {manifest['target']}, {self.level}"

    def find(self, function: Callable[..., Any]) -> LibraryFunction | None:
        """The function's machine code, or None if the library has none."""
        name = f"{function.__module__}.{function.__qualname__}"
        if name not in self._entries:
            return None
        symbol = getattr(self._loaded, f"{self._entries[name]['symbol']}_{self.level}".replace("-", "_"))
        return LibraryFunction(function.__qualname__, symbol, self._entries[name]["arguments"])


def load(package: Path) -> Library:
    """The library in a package's folder.

    Raises `LibraryError` if there is none, if it is for another machine, if a file is not the one that was built, or if
    a source file of the kernels has changed since.
    """
    folder = package / FOLDER
    manifest = read_manifest(folder)
    if manifest["target"] != machine():
        raise LibraryError(f"the library is for {manifest['target']}, this machine is {machine()}")
    _check(package, manifest, folder / manifest["library"], manifest["sha256"])
    return Library(folder, manifest)


def read_built(package: Path, name: str) -> bytes:
    """A file of a package's folder that is for any machine: MODULE or PTX. Raises `LibraryError` as `load`."""
    folder = package / FOLDER
    manifest = read_manifest(folder)
    _check(package, manifest, folder / name, manifest[{MODULE: "module_sha256", PTX: "ptx_sha256"}[name]])
    return (folder / name).read_bytes()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest in a folder. Raises `LibraryError` if there is none, and if it is not the one that was built."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(_read(path))
        damaged = manifest["manifest_sha256"] != manifest_digest(manifest)
    except FileNotFoundError:
        raise LibraryError(f"no library is installed for {machine()}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LibraryError(f"{path} cannot be read ({error!r})") from None
    if damaged:
        raise LibraryError(f"{path} is damaged")
    return manifest


def manifest_digest(manifest: dict[str, Any]) -> str:
    """The SHA-256 of all entries of a manifest but that of this digest. Wrong arguments would be wrong addresses."""
    entries = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def _check(package: Path, manifest: dict[str, Any], built: Path, digest: str) -> None:
    """Raise LibraryError if a source file has changed since a file was built, or the file itself."""
    sources = manifest["sources"].items()  # an installation of compiled modules only has none
    changed = [name for name, expected in sources if file_digest(package / name) not in (expected, None)]
    if changed:
        raise LibraryError(f"{changed[0]} has changed since the library was built")
    if file_digest(built) != digest:
        raise LibraryError(f"{built} is damaged")


def machine() -> str:
    """The machine's system and processor, as in a manifest's `target`: ``"linux-x86_64"``."""
    processor, bits = platform.machine().lower(), 8 * struct.calcsize("P")
    same = {"amd64": "x86_64", "arm64": "aarch64"}
    return f"{platform.system().lower()}-{same.get(processor, processor)}{'' if bits == 64 else f'-{bits}bit'}"


def file_digest(path: Path) -> str | None:
    """The SHA-256 of a file's contents, whatever the line ends of a source file; None if it cannot be read."""
    try:
        data = _read(path)
    except OSError:
        return None
    return hashlib.sha256(data.replace(b"\r\n", b"\n") if path.suffix == ".py" else data).hexdigest()


def _read(path: Path) -> bytes:
    """The contents of a regular file. Reading a pipe would wait, and a device may have no end. Raises OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("not a regular file")
    return path.read_bytes()
