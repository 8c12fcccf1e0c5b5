"""Stage 1: every entry point as unoptimised LLVM bitcode, and the types of its arguments. Needs Numba.

It runs in a process of its own, ``python native/lower.py FOLDER [NAME]``, because it imports the package without the
package's ``__init__`` files. So it needs neither Gymnasium nor SciPy, and exactly the modules that the kernels need are
imported: the manifest names them all.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import tempfile
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SOURCE / "echelon_env"
ENTRIES = {
    "step_range": "echelon_env.engine.tick",
    "pack_terrain": "echelon_env.engine.tick",
    "begin_battle": "echelon_env.engine.tick",
    "command_and_aim": "echelon_env.engine.tick",
    "find_possibilities": "echelon_env.engine.possibilities",
    "write_global_states": "echelon_env.engine.global_state",
    "report_agents": "echelon_env.engine.agents",
    "load_maps": "echelon_env.engine.playing",
    "play_range": "echelon_env.engine.playing",
    "act_rows": "echelon_env.opponents.scripted",
    "rotate_directions": "echelon_env.opponents.handicap",
    "act_by_network": "echelon_env.networks.forward",
}
"""The entry points, by function, with their modules."""


def builder(*files: str) -> str:
    """A digest of files of this folder and of the compilers' versions."""
    versions = " ".join(metadata.version(name) for name in ("numba", "llvmlite", "numpy"))
    contents = b"".join(Path(__file__).with_name(file).read_bytes() for file in files)
    return hashlib.sha256(versions.encode() + contents).hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Write a file or nothing. One that a process has loaded is replaced, not changed."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def import_without_init(*packages: str) -> None:
    """Let modules of these packages be imported without the packages' own code."""
    sys.path.insert(0, str(SOURCE))
    for name in packages:
        package = ModuleType(name)
        package.__path__ = [str(SOURCE / name.replace(".", "/"))]
        sys.modules[name] = package


def sample_arguments() -> dict[str, tuple[Any, ...]]:
    """Arguments of each entry point. All configurations have the same types."""
    import numpy as np

    from echelon_env.config.battle import BattleConfig
    from echelon_env.config.biomes import Biome, register_biome
    from echelon_env.config.catalog import MOUNTS
    from echelon_env.config.skill import LEVELS
    from echelon_env.engine.agents import AGENT, EPISODE, Players, allocate_results
    from echelon_env.engine.allocation import allocate, allocate_outputs
    from echelon_env.engine.playing import SLOT, Cleared, MapBytes, Starts
    from echelon_env.engine.possibilities import allocate_possibilities
    from echelon_env.engine.state import COUNTERS
    from echelon_env.engine.tables import build_tables
    from echelon_env.layout.actions import ACTION_DIM
    from echelon_env.layout.observations import OBSERVATION_DIM
    from echelon_env.layout.parts import CHOICES
    from echelon_env.networks.config import NetworkConfig
    from echelon_env.networks.forward import prepare_network
    from echelon_env.networks.weights import load_network, tensor_shapes
    from echelon_env.opponents.knowledge import make_knowledge
    from echelon_env.opponents.memory import MEMORY, PLAN, allocate_scratch

    register_biome(Biome(name="none", brush=lambda plot, rng: None, shares={}, order=1))  # the terrain is not imported
    config = BattleConfig()
    tables, state = build_tables(config), allocate(config, 1)
    out = allocate_outputs(1, config.num_mechs)
    actions, observations = np.zeros((1, ACTION_DIM), np.float32), np.zeros((1, OBSERVATION_DIM), np.float32)
    skills = np.concatenate([skill.record() for skill in LEVELS.values()])
    number, bytes_ = np.zeros(1, np.int64), np.zeros((1, 1), np.uint8)
    spawns = np.zeros((1, 2, 1, 2))
    agents, results = np.zeros((1, 1), AGENT), allocate_results(1, 1)
    players = Players(state.statistics.view(COUNTERS), number[None], np.zeros((1, 1), EPISODE), agents)
    starts, slots = Starts(state.battles, spawns, number), np.zeros(1, SLOT)
    maps, cleared = MapBytes(*[bytes_] * len(MapBytes._fields)), Cleared(*[bytes_] * len(Cleared._fields))
    layers = NetworkConfig(encoder="flat", width=1, head=1)
    zeros = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(layers).items()}
    network = load_network(layers, zeros)
    return {
        "step_range": (tables, state, actions[None], out, number, number[None], observations, 0, 1, 0, 0),
        "pack_terrain": (tables, state, 0, 0),
        "begin_battle": (tables, state, spawns, number, 0, 0),
        "command_and_aim": (tables, state, 0, 0, actions[0], np.zeros(len(MOUNTS), np.int64)),
        "find_possibilities": (tables, state, allocate_possibilities(1, config.num_mechs), 0, 1),
        "write_global_states": (tables, state, number, number, np.zeros((1, 1), np.float32), 0, 0, 1),
        "report_agents": (state, out, players, results, number, 1, False),
        "load_maps": (state, bytes_[None], bytes_, cleared, maps, maps, slots, 1, 0, 1),
        "play_range": (
            *(tables, state, actions[None], out, number[None], observations),
            *(starts, slots, players, results, 1, 1, 0, 0, 1),
        ),
        "act_rows": (
            *(make_knowledge(config), skills, allocate_scratch(), np.zeros(1, PLAN)),
            *(number, number, observations, np.zeros(1, MEMORY), actions, 0),
        ),
        "rotate_directions": (observations, np.zeros(1, np.uint64), number, 0.0),
        "act_by_network": (
            *(*prepare_network(network, config), 0, number, observations, np.zeros((1, 2, 1))),
            *(
                np.zeros(1, np.uint64),
                number,
                actions,
                np.zeros((1, CHOICES), np.float32),
                np.zeros((1, CHOICES), bool),
                0,
            ),
        ),
    }


def describe(value: Any) -> Any:
    """An argument's type as JSON, as `echelon_env.engine._library` reads it."""
    import numpy as np

    from echelon_env.engine._library import describe_dtype

    if isinstance(value, tuple):
        return {"fields": {name: describe(each) for name, each in value._asdict().items()}}  # type: ignore[attr-defined]
    if isinstance(value, np.ndarray):
        return {"dtype": describe_dtype(value.dtype), "axes": value.ndim}
    return "float64" if isinstance(value, float) else "bool" if isinstance(value, bool) else "int64"


def index_without_wrap() -> None:
    """Let this process compile indices as they are. Numba adds the length to negative ones, and kernels have none."""
    import numba
    from numba.np import arrayobj

    def as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, kind, numba.types.intp)

    arrayobj.fix_integer_index = as_it_is


def keep_fills() -> None:
    """Let LLVM keep loops that fill arrays, see `emit`."""
    from llvmlite import binding

    binding.set_option("lower", "-disable-loop-idiom-memset")


def lower(function: Any, arguments: tuple[Any, ...]) -> tuple[bytes, str]:
    """The bitcode of a function and of all that it calls, not optimised, and the function's symbol."""
    import numba
    from numba.core.codegen import CPUCodeLibrary

    from echelon_env.engine import _jit

    found: dict[str, bytes] = {}

    def keep(library: Any) -> None:
        found[library.name] = library._final_module.as_bitcode()

    optimise, CPUCodeLibrary._optimize_final_module = CPUCodeLibrary._optimize_final_module, keep
    try:
        dispatcher = _jit.callee(function)
        dispatcher.compile(tuple(map(numba.typeof, arguments)))
    finally:
        CPUCodeLibrary._optimize_final_module = optimise
    [result] = dispatcher.overloads.values()
    return found[result.library.name], result.fndesc.llvm_func_name


def main(folder: Path, names: list[str]) -> None:
    """Write the bitcode of entry points, and the description of each, into a folder."""
    import_without_init(*(f"echelon_env{each}" for each in ("", ".engine", ".opponents", ".config", ".networks")))
    from echelon_env.engine import _library

    before = {path.relative_to(PACKAGE).as_posix(): _library.file_digest(path) for path in PACKAGE.rglob("*.py")}
    samples = sample_arguments()
    index_without_wrap()
    keep_fills()
    functions = {name: getattr(import_module(module), name).function for name, module in ENTRIES.items()}
    for name in names or ENTRIES:
        arguments = dict(zip(inspect.signature(functions[name]).parameters, samples[name], strict=True))
        bitcode, symbol = lower(functions[name], samples[name])
        described = {argument: describe(value) for argument, value in arguments.items()}
        sources = sorted(
            Path(str(module.__file__)).relative_to(PACKAGE).as_posix()
            for loaded, module in sys.modules.items()
            if loaded.startswith("echelon_env") and getattr(module, "__file__", None) and module is not _library
        )
        if any(_library.file_digest(PACKAGE / source) != before[source] for source in sources):
            raise RuntimeError("a source file has changed during the build")
        write_whole(folder / f"{name}.bc", bitcode)
        entry = {
            "function": f"{ENTRIES[name]}.{name}",
            "symbol": symbol,
            "arguments": described,
            "builder": builder("lower.py"),
            "sha256": hashlib.sha256(bitcode).hexdigest(),
            "sources": {source: before[source] for source in sources},
        }
        write_whole(folder / f"{name}.json", json.dumps(entry).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
