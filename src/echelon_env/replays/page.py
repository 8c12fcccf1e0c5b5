"""A replay as one HTML file that simulates the battle again, in WebAssembly, and shows it. It loads nothing.

The file holds the viewer (``viewer/`` in the source tree), the engine as WebAssembly, the replay's own file, and the
*world*: a gzip stream of one line of JSON that describes the battle and its memory, and after it the memory at the
battle's start.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS, BattleConfig
from echelon_env.config.catalog import MATERIALS, MOUNTS
from echelon_env.config.schema import check_integer
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.kernels import browser_module
from echelon_env.engine.possibilities import allocate_possibilities
from echelon_env.engine.state import EVENT_KINDS, REASONS, SCRATCH
from echelon_env.evaluate.stamps import stamp
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import STREAMS
from echelon_env.render.palette import BEDROCK, STYLE_BY_MATERIAL, class_letters
from echelon_env.replays.files import MAX_BYTES, pack
from echelon_env.replays.image import MemoryImage
from echelon_env.replays.replay import VOXELS, Replay, ReplayError
from echelon_env.storage.atomic import write_bytes

BASE = 1 << 21
"""Address of the first byte after the module's own memory."""


def write_page(path: str | os.PathLike[str], replay: Replay) -> None:
    """Write a replay as an HTML file that any browser opens, without a network.

    Raises OSError, ReplayError as `Replay.play` and for a page that would be too large to read, and `BackendError`
    where this installation has no WebAssembly module of the present engine.
    """
    data = make_page(replay).encode()
    if len(data) > MAX_BYTES:
        raise ReplayError(f"{os.fspath(path)}: would have {len(data):,} bytes, expected at most {MAX_BYTES:,}")
    write_bytes(Path(path), data)


def make_page(replay: Replay) -> str:
    """The text of the HTML file, see `write_page`."""
    names = " v ".join(replay.players)
    parts = {
        "title": html.escape(f"{names} - Echelon replay"),
        "engine": _encode(gzip.compress(browser_module(), mtime=0)),
        "replay": _encode(pack(replay)),
        "world": _encode(world(replay)),
        "viewer": _asset("viewer.js"),
        "style": _asset("viewer.css"),
    }
    return re.sub(r"%(\w+)%", lambda found: parts[found[1]], _asset("page.html"))


class Frame:
    """A replay's page as a notebook shows it, see `show`."""

    def __init__(self, page: str, height: int) -> None:
        self._page, self._height = page, height

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self._page)}" width="100%" height="{self._height}"></iframe>'


def show(replay: Replay, height: int = 640) -> Frame:
    """A replay's page, `height` pixels high, as the last expression of a notebook's cell. Raises as `make_page`."""
    return Frame(make_page(replay), check_integer("height", height))


def world(replay: Replay) -> bytes:
    """The description of a replay's battle and its memory at the start, as a gzip stream."""
    engine = next(replay.play())
    image = MemoryImage(BASE)
    can = allocate_possibilities(1, engine.num_mechs)
    arrays = {**engine.state._asdict(), **engine.out._asdict(), "actions": engine._actions}
    arrays |= {f"can_{name}": array for name, array in can._asdict().items()}
    addresses = {name: image.place(array) for name, array in arrays.items()}
    kernels = {
        "step": ("step_range", engine.tables, engine.state, engine._actions, engine.out, 0, 1, False),
        "possibilities": ("find_possibilities", engine.tables, engine.state, can),
    }
    calls = {name: [kernel, image.words(*arguments)] for name, (kernel, *arguments) in kernels.items()}
    memory = image.to_bytes()
    lasting = [name for name in engine.state._fields if name not in SCRATCH]
    document = {
        "memory": {"base": BASE, "bytes": len(memory)},
        "engine": stamp()["engine_hash"],
        "calls": calls,
        "arrays": {name: _array(addresses[name], array) for name, array in arrays.items()},
        "digested": [name for name in lasting if name not in VOXELS],
        "voxels": list(VOXELS),
        "battle": _battle(engine),
        "names": names(),
    }
    return gzip.compress(json.dumps(document, allow_nan=False).encode() + b"\n" + memory, mtime=0)


def _array(address: int, array: NDArray[Any]) -> dict[str, Any]:
    """An array's address, shape without the axis of battles, bytes of an entry, and type or fields."""
    described: dict[str, Any] = {"at": address, "shape": array.shape[1:], "bytes": array.itemsize}
    if array.dtype.names is None:
        return described | {"type": array.dtype.str}
    fields = {}
    for name in array.dtype.names:
        dtype, offset = array.dtype.fields[name][:2]  # type: ignore[index]
        fields[name] = [offset, dtype.base.str, int(np.prod(dtype.shape))]
    return described | {"fields": fields}


def _battle(engine: BattleEngine) -> dict[str, Any]:
    """What the viewer has to know of the rules."""
    config: BattleConfig = engine.config
    classes = [
        {
            "name": each.name, "letter": letter, "size": [each.length, each.width, each.height], "armour": each.armour,
            "legs": each.legs, "heat": each.heat_capacity, "contacts": each.contact_slots,
            "sight": config.sensors.radar_range * each.sensor_range_factor,
            "weapons": [getattr(each, mount) for mount in MOUNTS], "electronics": each.electronics,
        }
        for each, letter in zip(config.mech_classes, class_letters(config.catalog), strict=True)
    ]  # fmt: skip
    weapons = [
        {"name": each.name, "projectile": each.flight_rules.projectile, "splash": each.splash_radius}
        for each in config.catalog.weapons
    ]
    materials = [
        {"name": material.name, "colour": style.colour, "opacity": style.opacity, "accent": style.accent}
        for material, style in zip(MATERIALS, STYLE_BY_MATERIAL, strict=True)
    ]
    return {
        "seconds": config.decision_seconds, "ticks": config.decision_repeat, "max_steps": config.max_steps,
        "size": config.terrain.size, "height": config.terrain.height, "score": config.zone.score_to_win,
        "ecm": config.sensors.electronics_range, "blue": len(config.blue), "red": len(config.red),
        "classes": classes, "weapons": weapons, "materials": materials, "bedrock": BEDROCK,
    }  # fmt: skip


def names() -> dict[str, Any]:
    """The names behind numbers: of codes, of the entries of actions, of the parts of an observation."""
    return {
        "actions": [[entry.name.lower(), entry.meaning] for entry in Action],
        "events": list(EVENT_KINDS),
        "mounts": list(MOUNTS),
        "observation": [
            {
                "name": name, "start": stream.start, "rows": stream.rows, "width": stream.row_width,
                "features": [[feature.name.lower(), feature.unit] for feature in stream.features],
            }
            for name, stream in STREAMS.items()
        ],
        "reasons": list(REASONS),
        "rewards": list(REWARD_COMPONENTS),
    }  # fmt: skip


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
