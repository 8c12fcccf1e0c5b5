"""An empty map on which tests place mechs, walls and smoke, and command mechs by name.

A mech's name ends with its class ("scout", "second medium"). By default decisions last one tick, shots aim at the
middle of their targets, no mech has plating, and the zone is out of reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.config.catalog import DEFAULT_CATALOG, MATERIALS, MOUNTS, Catalog
from echelon_env.config.scenario import make_config
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import DIRECT, EVENT_KINDS, NO_MECH, RED
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import STREAMS
from oracles.world import columns_of, set_columns

SIZE, HEIGHT = 64, 20
PLAIN = {"decision_repeat": 1, "max_steps": 10**6}
PARTS: dict[str, dict[str, Any]] = {
    "terrain": {"size": SIZE, "height": HEIGHT, "biomes": ("barrens",)},
    "combat": {"aim_low": 0.5, "aim_high": 0.5},
    "zone": {"score_to_win": 1e6},
}
BARE = replace(DEFAULT_CATALOG, mech_classes=tuple(replace(c, plating=0.0) for c in DEFAULT_CATALOG.mech_classes))
NEAREST = "nearest"
EXACT = {0: (1.0, 0.0), 90: (0.0, 1.0), 180: (-1.0, 0.0), -90: (0.0, -1.0)}  # facings without rounding


@dataclass(frozen=True)
class Event:
    """An event with names instead of indices; None where there is no mech."""

    kind: str
    tick: int
    actor: str | None
    target: str | None
    weapon: str | None
    amount: float
    place: tuple[float, float, float]
    direction: tuple[float, float]


class Mech:
    """A mech's record, read and written as attributes."""

    def __init__(self, row: Any) -> None:
        object.__setattr__(self, "row", row)

    def __getattr__(self, name: str) -> Any:
        return self.row[name].item() if self.row[name].ndim == 0 else self.row[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self.row[name] = value

    @property
    def speed(self) -> float:
        return math.hypot(self.vx, self.vy)


class Arena:
    """One battle on an empty map. Positions are (x, y) or (x, y, facing in degrees); feet are on the ground."""

    def __init__(
        self,
        blue: Mapping[str, tuple[float, ...]],
        red: Mapping[str, tuple[float, ...]],
        *,
        seed: int = 1,
        catalog: Catalog = BARE,
        **overrides: Any,
    ) -> None:
        parts = {part: {**values, **overrides.pop(part, {})} for part, values in PARTS.items()}
        teams = {"blue": tuple(map(class_of, blue)), "red": tuple(map(class_of, red))}
        self.config = make_config("duel", catalog=catalog, **teams, **{**PLAIN, **parts, **overrides})
        self.engine = BattleEngine(self.config)
        self.engine.reset([seed])
        self.state = self.engine.state
        self.names = [*blue, *red]
        self.actions = np.zeros((1, len(self.names), self.engine.action_dim), np.float32)
        self._targets: dict[str, str] = {}
        self.log: list[Event] = []
        battle = self.state.battles[0]
        battle["zone_x"], battle["zone_y"] = 1.0, 1.0
        self.state.sightings["known"] = 0
        self.fill("air")
        for name, place in {**blue, **red}.items():
            self.put(name, *place)

    def __getitem__(self, name: str) -> Mech:
        return Mech(self.state.mechs[0, self.names.index(name)])

    def put(self, name: str, x: float, y: float, facing: float = 0.0, z: float = 0.0) -> None:
        """Move a mech. With its feet above the ground it is in the air."""
        mech = self[name]
        mech.x, mech.y, mech.z = x, y, z
        mech.yaw = math.radians(facing) if facing < 180 else math.radians(facing - 360)
        mech.facing_x, mech.facing_y = EXACT.get(facing, (math.cos(mech.yaw), math.sin(mech.yaw)))
        mech.on_ground = z == 0.0

    def fill(
        self,
        material: str,
        x: tuple[int, int] = (0, SIZE),
        y: tuple[int, int] = (0, SIZE),
        z: tuple[int, int] = (0, HEIGHT),
    ) -> None:
        """Fill the voxels of the half-open ranges with a material."""
        part = (0, slice(*z), slice(*y), slice(*x))
        self.state.voxels[part] = code_of(material)
        self.state.voxel_damage[part] = 0
        self._pack_columns()

    def _pack_columns(self) -> None:
        set_columns(self.state, 0, columns_of(self.state.voxels[0], self.config.catalog.materials))

    def material(self, x: int, y: int, z: int) -> str:
        """Name of a voxel's material."""
        return MATERIALS[self.state.voxels[0, z, y, x]].name

    def count(self, material: str) -> int:
        """Number of voxels of a material on the map."""
        return int((self.state.voxels[0] == code_of(material)).sum())

    def order(self, name: str, *, target: str | None = NEAREST, **entries: float) -> None:
        """Set a mech's action for all following decisions; other entries are 0.

        A mech that pulls a trigger chooses a target, seen or not: by default the living enemy that is nearest then.
        """
        row = self.actions[0, self.names.index(name)]
        row[:] = 0.0
        for entry, value in entries.items():
            row[Action[entry.upper()]] = value
        self._targets.pop(name, None)
        if target is not None and (target != NEAREST or entries.keys() & {*MOUNTS}):
            row[Action.TARGET_0] = 1.0
            self._targets[name] = target

    def run(self, decisions: int = 1, seconds: float | None = None) -> list[Event]:
        """Run decisions, or seconds of battle; returns the events and appends them to the log."""
        happened: list[Event] = []
        for _ in range(decisions if seconds is None else round(seconds / self.config.decision_seconds)):
            for name, target in self._targets.items():
                self[name].contacts[0] = self._nearest(name) if target == NEAREST else self.names.index(target)
            self.engine.step(self.actions)
            happened += map(self._named, self.engine.events(0))
        self.log += happened
        return happened

    def _nearest(self, name: str) -> int:
        own = self[name]
        living = [(math.dist((own.x, own.y), (o.x, o.y)), m) for m, o in enumerate(map(self.__getitem__, self.names))
                  if o.alive and o.team != own.team]  # fmt: skip
        return min(living, default=(0.0, NO_MECH))[1]

    def _named(self, event: Any) -> Event:
        return Event(
            kind=EVENT_KINDS[event["kind"]],
            tick=int(event["tick"]),
            actor=None if event["actor"] == NO_MECH else self.names[event["actor"]],
            target=None if event["target"] == NO_MECH else self.names[event["target"]],
            weapon=None if event["weapon"] < 0 else self.config.catalog.weapons[event["weapon"]].name,
            amount=float(event["amount"]),
            place=(float(event["x"]), float(event["y"]), float(event["z"])),
            direction=(float(event["dx"]), float(event["dy"])),
        )

    def smoke(self, x: float, y: float, z: float, radius: float = 4.0, seconds: float = 10.0, team: int = RED) -> None:
        """Add a smoke cloud of a team."""
        battle = self.state.battles[0]
        cloud = self.state.clouds[0, battle["num_clouds"]]
        battle["num_clouds"] += 1
        cloud["x"], cloud["y"], cloud["z"], cloud["radius"] = x, y, z, radius
        cloud["ticks"], cloud["team"] = self.config.ticks(seconds), team

    def paint(self, name: str, by: str, seconds: float = 5.0) -> None:
        """Paint a mech for the pack of another."""
        mark = self.state.paint[0, self[by].pack, self.names.index(name)]
        mark["ticks"], mark["painter"] = self.config.ticks(seconds), self.names.index(by)

    def is_painted(self, name: str, pack_of: str) -> bool:
        return bool(self.state.paint[0, self[pack_of].pack, self.names.index(name)]["ticks"] > 0)

    def missile(self, owner: str, target: str, x: float, y: float, z: float, weapon: str = "missiles") -> None:
        """Add a homing projectile that flies straight to its target, with its whole lifetime left."""
        battle, kind = self.state.battles[0], weapon_of(self.config.catalog, weapon)
        row = self.state.projectiles[0, battle["num_projectiles"]]
        battle["num_projectiles"] += 1
        row["x"], row["y"], row["z"], row["aim"] = x, y, z, 0.5
        row["vx"], row["vy"], row["vz"] = kind.speed, 0.0, 0.0
        row["reach"], row["phase"] = kind.speed * kind.lifetime, DIRECT
        row["owner"], row["target"] = self.names.index(owner), self.names.index(target)
        row["weapon"] = self.config.catalog.weapon_index(weapon)

    @property
    def projectiles(self) -> Any:
        """The projectiles in flight."""
        return self.state.projectiles[0, : self.state.battles[0]["num_projectiles"]]

    @property
    def clouds(self) -> Any:
        """The smoke clouds."""
        return self.state.clouds[0, : self.state.battles[0]["num_clouds"]]

    def target(self, name: str) -> str | None:
        """The mech's target."""
        return None if self[name].target == NO_MECH else self.names[self[name].target]

    def sees(self, name: str, other: str) -> bool:
        """Whether a mech saw another at the end of the last decision."""
        return bool(self.state.visible[0, self.names.index(name), self.names.index(other)])

    def contacts(self, name: str) -> list[str]:
        """The contact table, in its order."""
        return [self.names[m] for m in self[name].contacts if m != NO_MECH]

    def intel(self, name: str) -> list[str]:
        """The intel table, in its order."""
        return [self.names[m] for m in self[name].intel if m != NO_MECH]

    def observed(self, name: str, stream: str) -> Any:
        """A mech's observation of a stream, in the stream's shape."""
        table = STREAMS[stream]
        return self.engine.observations[0, self.names.index(name), table.part].reshape(table.shape)

    def earned(self, name: str) -> dict[str, float]:
        """A mech's reward of the last decision, by component."""
        row = self.engine.reward_components[0, self.names.index(name)]
        return dict(zip(REWARD_COMPONENTS, row.tolist(), strict=True))

    def zone(self, x: float, y: float, radius: float = 5.0) -> None:
        """Move the zone."""
        battle = self.state.battles[0]
        battle["zone_x"], battle["zone_y"], battle["zone_radius"] = x, y, radius

    def statistics(self, name: str) -> Any:
        return self.engine.statistics[0, self.names.index(name)]


def class_of(name: str) -> str:
    return name.split()[-1]


def code_of(material: str) -> int:
    return [m.name for m in MATERIALS].index(material)


def weapon_of(catalog: Catalog, name: str) -> Any:
    return catalog.weapons[catalog.weapon_index(name)]


def changed(catalog: Catalog = BARE, **changes: dict[str, Any]) -> Catalog:
    """A catalogue with changed fields of weapons, classes and materials, by their names."""
    return replace(
        catalog,
        weapons=tuple(replace(w, **changes.get(w.name, {})) for w in catalog.weapons),
        mech_classes=tuple(replace(c, **changes.get(c.name, {})) for c in catalog.mech_classes),
        materials=tuple(replace(m, **changes.get(m.name, {})) for m in catalog.materials),
    )


def of_kind(events: list[Event], kind: str, **wanted: Any) -> list[Event]:
    """The events of a kind whose fields have the given values."""
    return [e for e in events if e.kind == kind and all(getattr(e, name) == value for name, value in wanted.items())]
