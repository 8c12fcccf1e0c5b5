"""The same machine code for browsers: ``python -m native.wasm FOLDER`` writes ``echelon.wasm`` and ``echelon.json``.

The module imports its memory (``env.memory``) and exports a function ``echelon_NAME`` for each entry point, and
``__heap_base``, from which on the memory is free. A call takes the address of the argument words, see README.md; an
address in them is one of the module's memory. The JSON file has the types of the arguments, with the offsets of all
fields of records, and the names behind the numbers in them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from native.build import FOLDER, _library, build_all, is_current, lower_all, target_of


def build_wasm(out: Path) -> None:
    """Write the module and its table into a folder."""
    target = target_of(None)
    if not is_current(target):
        build_all({target: FOLDER})
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(FOLDER / _library.MODULE, out)
    entries = lower_all()
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
