"""Both stages and the link: the library for one target, the WebAssembly module, and their manifest."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from native import cuda
from native.emit import emit
from native.lower import ENTRIES, PACKAGE, builder, write_whole
from native.targets import TARGETS, Target

HERE = Path(__file__).resolve().parent


def _import_library() -> Any:
    """The module that loads the library, without the package, whose requirements a build does not have."""
    spec = importlib.util.spec_from_file_location("_library", PACKAGE / "engine" / "_library.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_library = _import_library()
FOLDER = PACKAGE / _library.FOLDER
"""Where the package looks for its library."""


@functools.cache
def bitcode_folder() -> Path:
    """Where bitcode and objects are kept: in the source tree, or in a temporary folder if that cannot be written."""
    folder = HERE.parent / "build" / "bitcode"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="echelon-bitcode-"))


def read_bitcode(name: str) -> bytes:
    """The bitcode of an entry point, after `lower_all`."""
    return (bitcode_folder() / f"{name}.bc").read_bytes()


STAGES = ("lower.py", "emit.py", "cuda.py", "build.py", "targets.py", "support.c")


def lower_all() -> dict[str, dict[str, Any]]:
    """The descriptions of all entry points, whose bitcode `read_bitcode` then returns. What is current is kept.

    One process for each entry point, as many at a time as there are cores.
    """

    def lower(name: str) -> dict[str, Any]:
        described = _described(name)
        if described is None or not _unchanged(described, "lower.py"):
            environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
            command = [sys.executable, str(HERE / "lower.py"), str(bitcode_folder()), name]
            subprocess.run(command, check=True, env=environment)
            described = _described(name)
            assert described is not None
        return described

    bitcode_folder()  # before threads could make several
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return dict(zip(ENTRIES, threads.map(lower, ENTRIES), strict=True))


def _described(name: str) -> dict[str, Any] | None:
    """The description of an entry point's bitcode; None if there is none."""
    try:
        described: dict[str, Any] = json.loads((bitcode_folder() / f"{name}.json").read_text())
        return described if described["sha256"] == hashlib.sha256(read_bitcode(name)).hexdigest() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unchanged(built: dict[str, Any], *files: str) -> bool:
    """Whether a description or a manifest was made from the present sources by the present files of this folder."""
    sources = built["sources"].items()
    return built["builder"] == builder(*files) and all(_library.file_digest(PACKAGE / n) == d for n, d in sources)


WASM_TRIPLE = "wasm32-unknown-unknown"
WASM_LINKER = (
    "-target", "wasm32-freestanding", "-nostdlib", "-s", "-O2", "-fno-builtin", "-fno-sanitize=all",
    "-fvisibility=hidden", "-Wl,--no-entry", "-Wl,--import-memory", "-Wl,--export=__heap_base",
)  # fmt: skip


class Job(NamedTuple):
    """An object file to emit."""

    name: str  # of the entry point
    triple: str
    processor: str


def emit_all(entries: dict[str, dict[str, Any]], jobs: dict[str, Job]) -> dict[str, bytes]:
    """The object files of jobs by what they export. One that was emitted from the same bitcode before is kept.

    So the targets share the objects of the WebAssembly module, and after an edit only the entry points that it changes
    are optimised again. Raises RuntimeError if another process has lowered an entry point again meanwhile.
    """
    objects, running = {}, {}
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for export, (name, triple, processor) in jobs.items():
            file = bitcode_folder() / f"{export}.{triple}.{processor}.o"
            digest, symbol = entries[name]["sha256"], entries[name]["symbol"]
            key = f"{digest} {symbol} {builder('emit.py')}".encode()
            kept = _kept(file, key)
            if kept is not None:
                objects[export] = kept
                continue
            bitcode = read_bitcode(name)
            if hashlib.sha256(bitcode).hexdigest() != digest:
                raise RuntimeError("a source file has changed during the build")
            running[export] = file, key, processes.submit(emit, bitcode, symbol, export, triple, processor)
        for export, (file, key, emitted) in running.items():
            objects[export] = data = emitted.result()
            with contextlib.suppress(OSError):  # it is emitted again the next time
                write_whole(file, hashlib.sha256(key + data).digest() + data)
    return objects


def _kept(file: Path, key: bytes) -> bytes | None:
    """The object in a file that was written for a key; None if there is none."""
    try:
        kept = file.read_bytes()
    except OSError:
        return None
    digest, data = kept[:32], kept[32:]
    return data if digest == hashlib.sha256(key + data).digest() else None


def emit_gpu(entries: dict[str, dict[str, Any]]) -> bytes:
    """The PTX of what GPUs run. It is kept as the objects are."""
    file = bitcode_folder() / "echelon.ptx"
    key = " ".join([builder("emit.py", "cuda.py"), *(entries[name]["sha256"] for name in cuda.ENTRIES)]).encode()
    data = _kept(file, key)
    if data is None:
        data = cuda.emit_ptx(read_bitcode, entries).encode()
        with contextlib.suppress(OSError):
            write_whole(file, hashlib.sha256(key + data).digest() + data)
    return data


def build(target: Target, entries: dict[str, dict[str, Any]], out: Path) -> None:
    """Write a target's library, the WebAssembly module, the PTX and the manifest into a folder."""
    own = {name: described for name, described in entries.items() if name not in cuda.ONLY}
    pairs = [(name, level) for name in own for level, _ in target.levels]
    jobs = {f"echelon_{name}_{level}".replace("-", "_"): Job(name, target.triple, level) for name, level in pairs}
    browser = {f"echelon_{name}": Job(name, WASM_TRIPLE, "generic") for name in own}
    objects = emit_all(entries, jobs | browser)
    with tempfile.TemporaryDirectory() as work:
        for export, data in objects.items():
            Path(work, f"{export}.o").write_bytes(data)
        library = Path(work, target.library)
        link(target, [Path(work, f"{export}.o") for export in jobs], library)
        data = library.read_bytes()
        module = Path(work, _library.MODULE)
        link_module([Path(work, f"{export}.o") for export in browser], module)
        wasm = module.read_bytes()
    ptx = emit_gpu(entries)
    sources = next(iter(entries.values()))["sources"]
    if any(described["sources"] != sources for described in entries.values()):
        raise RuntimeError("a source file has changed during the build")
    manifest = {
        "target": target.name,
        "levels": dict(target.levels),
        "library": target.library,
        "sha256": hashlib.sha256(data).hexdigest(),
        "module_sha256": hashlib.sha256(wasm).hexdigest(),
        "ptx_sha256": hashlib.sha256(ptx).hexdigest(),
        "sources": sources,
        "entries": {
            described["function"]: {"symbol": f"echelon_{name}", "arguments": described["arguments"]}
            for name, described in own.items()
        },
        "builder": builder(*STAGES),
        "built_with": {name: version(name) for name in ("numba", "llvmlite", "numpy", "ziglang")},
    }
    manifest["manifest_sha256"] = _library.manifest_digest(manifest)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / target.library, data)
    write_whole(out / _library.MODULE, wasm)
    write_whole(out / _library.PTX, ptx)
    write_whole(out / _library.MANIFEST, json.dumps(manifest).encode())


def link(target: Target, objects: list[Path], library: Path) -> None:
    """Link objects and support.c to a shared library."""
    options = ["-shared", "-O2", "-fno-builtin", "-fno-sanitize=all", "-fvisibility=hidden", "-s"]
    command = [sys.executable, "-m", "ziglang", "cc", *target.linker, *options, str(HERE / "support.c")]
    subprocess.run([*command, *map(str, objects), "-o", str(library)], check=True)


def link_module(objects: list[Path], module: Path) -> None:
    """Link objects and support.c to a WebAssembly module."""
    command = [sys.executable, "-m", "ziglang", "cc", *WASM_LINKER, *(f"-Wl,--export={each.stem}" for each in objects)]
    subprocess.run([*command, str(HERE / "support.c"), *map(str, objects), "-o", str(module)], check=True)


def is_current(target: Target) -> bool:
    """Whether the library in the source tree is for a target, and no file that it was built from has changed since."""
    try:
        manifest = _library.read_manifest(FOLDER)
        files = (manifest["library"], "sha256"), (_library.MODULE, "module_sha256"), (_library.PTX, "ptx_sha256")
        whole = all(_library.file_digest(FOLDER / name) == manifest[key] for name, key in files)
        return whole and manifest["target"] == target.name and _unchanged(manifest, *STAGES)
    except _library.LibraryError:
        return False


def build_all(folders: dict[Target, Path]) -> None:
    """Build targets, each into its folder; the kernels are lowered once."""
    entries = lower_all()
    for target, folder in folders.items():
        build(target, entries, folder)


def target_of(name: str | None) -> Target:
    """A target by name; default this machine. Raises ValueError for one that the library is not built for."""
    name = name or _library.machine()
    if name not in TARGETS:
        raise ValueError(f"expected a target of {', '.join(TARGETS)}, got {name!r}")
    return TARGETS[name]
