"""The same machine code for browsers: ``python -m native.wasm FOLDER`` writes ``echelon.wasm`` and ``echelon.json``.

The module imports its memory (``env.memory``) and exports a function ``echelon_NAME`` for each entry point, and
``__heap_base``, from which on the memory is free. A call takes the address of the argument words, see README.md; an
address in them is one of the module's memory. The JSON file has the types of the arguments, with the offsets of all
fields of records, and the names behind the numbers in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from native.build import HERE, lower_all, read_bitcode
from native.emit import emit

TRIPLE = "wasm32-unknown-unknown"


def build_wasm(out: Path) -> None:
    """Write the module and its table into a folder."""
    entries = lower_all()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        objects = []
        for name, described in entries.items():
            objects.append(Path(work, f"{name}.o"))
            objects[-1].write_bytes(emit(read_bitcode(name), described["symbol"], f"echelon_{name}", TRIPLE, "generic"))
        exports = [*(f"echelon_{name}" for name in entries), "__heap_base"]
        command = [
            *(sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-freestanding", "-nostdlib", "-s", "-O2"),
            *("-fno-builtin", "-fno-sanitize=all", "-fvisibility=hidden", "-Wl,--no-entry", "-Wl,--import-memory"),
            *(f"-Wl,--export={name}" for name in exports),
            *(str(HERE / "support.c"), *map(str, objects), "-o", str(out / "echelon.wasm")),
        ]
        subprocess.run(command, check=True)
    table = {"entries": {name: described["arguments"] for name, described in entries.items()}, "names": names()}
    (out / "echelon.json").write_text(json.dumps(table))


def names() -> dict[str, Any]:
    """The names behind numbers: of codes, of the entries of actions, of the parts of an observation."""
    from echelon_env.config.battle import REWARD_COMPONENTS
    from echelon_env.config.catalog import MATERIALS, MOUNTS
    from echelon_env.config.skill import LEVELS
    from echelon_env.engine.state import EVENT_KINDS, REASONS
    from echelon_env.layout.actions import Action
    from echelon_env.layout.observations import CLASS_NAMES, STREAMS

    return {
        "actions": [entry.name.lower() for entry in Action],
        "classes": list(CLASS_NAMES),
        "events": list(EVENT_KINDS),
        "levels": list(LEVELS),
        "materials": [material.name for material in MATERIALS],
        "mounts": list(MOUNTS),
        "observation": {name: [stream.start, stream.rows, stream.row_width] for name, stream in STREAMS.items()},
        "reasons": list(REASONS),
        "rewards": list(REWARD_COMPONENTS),
    }


if __name__ == "__main__":
    build_wasm(Path(sys.argv[1]))
