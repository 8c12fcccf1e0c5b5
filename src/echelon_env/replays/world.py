"""What a page has of a battle: its memory in WebAssembly, the calls of the kernels, and names for what it shows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS, BattleConfig
from echelon_env.config.catalog import MATERIALS, MOUNTS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.possibilities import allocate_possibilities
from echelon_env.engine.state import EVENT_KINDS, REASONS, SCRATCH
from echelon_env.engine.tick import DECIDE
from echelon_env.evaluate.stamps import stamp
from echelon_env.layout.actions import BLOCKS, Action
from echelon_env.layout.observations import STREAMS
from echelon_env.render.palette import BEDROCK, STYLE_BY_MATERIAL, class_letters
from echelon_env.replays.image import MemoryImage
from echelon_env.replays.replay import VOXELS

BASE = 1 << 21
"""Address of the first byte after the module's own memory."""

Call = tuple[Any, ...]
"""The name of a kernel and its arguments."""


class World:
    """The memory of an engine's one battle, and of its players.

    The memory has two parts: what the kernels change, which is a battle's own, and what all battles of the engine
    share. `calls` are further calls of kernels, by the names under which the page makes them, `changing` the further
    arrays that they change, and `settings` those of their arguments that the page may set, by name.
    """

    def __init__(
        self,
        engine: BattleEngine,
        changing: Sequence[NDArray[Any]] = (),
        calls: Mapping[str, Call] | None = None,
        settings: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        can = allocate_possibilities(1, engine.num_mechs)
        self._engine = engine
        observed = engine.observation_rows
        self._arrays = {**engine.state._asdict(), **engine.out._asdict(), "actions": engine.actions}
        self._arrays["observations"] = engine.observations
        self._arrays |= {f"can_{name}": array for name, array in can._asdict().items()}
        self._changing = [*self._arrays.values(), *changing]
        self._settings = dict(settings or {})
        self._calls: dict[str, Call] = {
            "step": (
                *("step_range", engine.tables, engine.state, engine.actions, engine.out),
                *(np.zeros(1, np.int64), observed.places, observed.array, 0, 1, 0, DECIDE),
            ),
            "possibilities": ("find_possibilities", engine.tables, engine.state, can, 0, 1),
            **(calls or {}),
        }

    def start(self) -> bytes:
        """The memory's first part as it is now."""
        return self._image().to_bytes()

    def pack(self, **further: Any) -> bytes:
        """A gzip stream of a line of JSON, the description with `further` entries, and of the memory as it is now."""
        image = self._image()
        changing = len(image)
        calls = {name: [kernel, image.words(*arguments)] for name, (kernel, *arguments) in self._calls.items()}
        memory, engine = image.to_bytes(), self._engine
        lasting = [name for name in engine.state._fields if name not in SCRATCH]
        document = {
            "memory": {"base": BASE, "bytes": len(memory), "changing": changing},
            "engine": stamp()["engine_hash"],
            "calls": calls,
            "arrays": {name: _array(image.place(array), array) for name, array in self._arrays.items()}
            | {name: _array(image.place(array), array[None]) for name, array in self._settings.items()},
            "digested": [name for name in lasting if name not in VOXELS],
            "voxels": list(VOXELS),
            "battle": _battle(engine.config),
            "names": names(),
            **further,
        }
        return gzip.compress(json.dumps(document, allow_nan=False).encode() + b"\n" + memory, mtime=0)

    def _image(self) -> MemoryImage:
        image = MemoryImage(BASE)
        for array in self._changing:
            image.place(array)
        return image


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


def _battle(config: BattleConfig) -> dict[str, Any]:
    """What the viewer has to know of the rules."""
    classes = [
        {
            "name": each.name, "letter": letter, "size": [each.length, each.width, each.height], "armour": each.armour,
            "legs": each.legs, "heat": each.heat_capacity, "contacts": each.contact_slots,
            "sight": config.sensors.radar_range * each.sensor_range_factor,
            "weapons": [getattr(each, mount) for mount in MOUNTS], "electronics": each.electronics,
            "turn": each.turn_rate, "jets": each.jet_acceleration > 0,
        }
        for each, letter in zip(config.mech_classes, class_letters(config.catalog), strict=True)
    ]  # fmt: skip
    weapons = [
        {
            "name": each.name, "projectile": each.flight_rules.projectile, "splash": each.splash_radius,
            "range": each.range, "arc": each.arc, "cooldown": each.cooldown,
        }
        for each in config.catalog.weapons
    ]  # fmt: skip
    materials = [
        {"name": material.name, "colour": style.colour, "opacity": style.opacity, "accent": style.accent}
        for material, style in zip(MATERIALS, STYLE_BY_MATERIAL, strict=True)
    ]
    blocks = [block for block in BLOCKS if block.name in config.abilities.blocks_off]
    off = [  # entries of actions without effect; to sort by distance is the default
        entry.name.lower() for block in blocks for entry in block.entries if entry is not Action.DISPLAY_NEAREST
    ]
    return {
        "seconds": config.decision_seconds, "ticks": config.decision_repeat, "max_steps": config.max_steps,
        "size": config.terrain.size, "height": config.terrain.height, "score": config.zone.score_to_win,
        "ecm": config.sensors.electronics_range, "blue": len(config.blue), "red": len(config.red),
        "off": off, "classes": classes, "weapons": weapons, "materials": materials, "bedrock": BEDROCK,
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
