"""A battle as plain Python objects, read from one row of the engine's state.

Every number of a rule is taken from the configuration and the catalogue, not from the kernels' tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MATERIALS, MOUNTS, Material, MechClass, Weapon
from echelon_env.engine.state import BLOCK, BLOCK_SIDE, BY_DISTANCE, NO_MECH, SILENT, STATISTIC_NAMES, State
from echelon_env.layout.actions import COMM_DIM
from echelon_env.layout.observations import INTEL_ROWS

TOLERANCE = 1e-6
"""m; boxes with a smaller overlap only touch."""

GRAZING = "a decision within rounding"
"""Counted where rounding may change the result: a line along a voxel's edge, a burst just in reach."""

Point = tuple[float, float, float]
Voxel = tuple[int, int, int]


@dataclass(eq=False)
class Mech:
    """One mech: identity, condition, commands, and counters of this decision."""

    index: int
    place: int
    team: int
    pack: int
    kind: MechClass
    weapons: list[Weapon | None]
    x: float
    y: float
    z: float
    yaw: float
    vx: float
    vy: float
    vz: float
    armour: float
    legs: float
    stability: float
    heat: float
    quality: float
    jam: float
    alive: bool
    shutdown: bool
    on_ground: bool
    cooldown: list[int]
    charges: list[int]
    anti_missile_cooldown: int
    suppressed: int
    fallen: int
    wreck_ticks: int
    wreck_low: int
    wreck_high: int
    contacts: list[int]
    potential: float
    statistics: Counter[str]
    shots: list[int]  # by weapon
    hits: list[int]
    intel: list[int] = field(default_factory=lambda: [NO_MECH] * INTEL_ROWS)
    speed_factor: float = 1.0
    throttle: float = 0.0
    strafe: float = 0.0
    jet: float = 0.0
    turn: float = 0.0
    vent: bool = False
    radiates: int = SILENT  # its command; see `electronics.radiation`
    trigger: list[bool] = field(default_factory=lambda: [False] * len(MOUNTS))
    target: int = NO_MECH
    display: int = BY_DISTANCE
    message: list[float] = field(default_factory=lambda: [0.0] * COMM_DIM)
    transmits: bool = False  # whether its message was sent
    hurt_x: float = 0.0
    hurt_y: float = 0.0
    damage_dealt: float = 0.0
    friendly_damage: float = 0.0
    kills: float = 0.0
    assists: float = 0.0
    loss: float = 0.0
    shutdown_ticks: int = 0
    bad_actions: int = 0
    died: bool = False

    @property
    def in_control(self) -> bool:
        return self.alive and not self.shutdown and self.fallen == 0

    @property
    def centre(self) -> Point:
        return self.x, self.y, self.z + self.kind.height / 2

    @property
    def box(self) -> tuple[Point, Point]:
        """Lowest and highest corner."""
        return self.box_at(self.x, self.y, self.z)

    def box_at(self, x: float, y: float, z: float) -> tuple[Point, Point]:
        half_x, half_y = self.kind.length / 2, self.kind.width / 2
        return (x - half_x, y - half_y, z), (x + half_x, y + half_y, z + self.kind.height)


@dataclass(eq=False)
class Projectile:
    """A projectile in flight."""

    position: Point
    velocity: Point
    reach: float
    owner: int
    weapon: Weapon
    aim: float = 0.0  # homing: height that it aims at, as a share of the target's
    target: int = NO_MECH  # homing
    phase: int = 0  # homing: DIRECT, CLIMB or CRUISE


@dataclass(eq=False)
class Cloud:
    """A smoke cloud."""

    centre: Point
    radius: float
    ticks: int
    team: int


@dataclass
class Mark:
    """A pack's paint on a mech."""

    ticks: int
    painter: int


@dataclass
class Sighting:
    """What a pack remembers of an enemy."""

    centre: Point
    velocity: tuple[float, float]
    armour: float
    age: int  # ticks


@dataclass
class Team:
    score: float
    share: float
    inside: int
    quarter_turns: int


@dataclass(eq=False)
class Hit:
    """A pending effect on a mech. `dx, dy` is the planar unit direction of travel (or zero)."""

    target: Mech
    kind: int  # HIT, SPLASH or HAZARD
    body: float
    shooter: Mech | None = None  # None: a hazard
    weapon: Weapon | None = None
    legs: float = 0.0
    stability: float = 0.0
    dx: float = 0.0
    dy: float = 0.0
    at: Point | None = None  # the event's place


@dataclass(eq=False)
class Burst:
    """A projectile's end on an enemy, a voxel, bedrock or its aim point."""

    at: Point
    shooter: Mech
    weapon: Weapon
    voxel: Voxel | None = None  # the one that it struck
    destroyed: int = 0


@dataclass(eq=False)
class World:
    """One battle. `voxels`, `voxel_damage`, `blocks_movement` and `blocks_sight` are (Z, Y, X)."""

    config: BattleConfig
    mechs: list[Mech]  # by index
    teams: list[Team]
    projectiles: list[Projectile]  # oldest first
    clouds: list[Cloud]
    paint: dict[tuple[int, int], Mark]  # by (pack, mech)
    sightings: dict[tuple[int, int], Sighting]  # by (pack, mech)
    voxels: NDArray[np.uint8]
    voxel_damage: NDArray[np.int64]
    blocks_movement: NDArray[np.bool_]
    blocks_sight: NDArray[np.bool_]
    zone_x: float
    zone_y: float
    zone_radius: float
    seed: int
    tick: int
    step_count: int
    over: bool
    winner: int
    reason: int
    log: list[tuple[Any, ...]] = field(default_factory=list)  # see `record`
    cases: Counter[str] = field(default_factory=Counter)  # counts of situations, from which tests see what they cover

    @property
    def by_place(self) -> list[Mech]:
        return sorted(self.mechs, key=lambda mech: mech.place)

    def living(self) -> list[Mech]:
        return [mech for mech in self.by_place if mech.alive]

    def enemies(self, mech: Mech) -> list[Mech]:
        """Living enemies by spawn place."""
        return [other for other in self.living() if other.team != mech.team]

    @property
    def size(self) -> tuple[int, int, int]:
        """The map's extent along x, y and z."""
        height, depth, width = self.voxels.shape
        return width, depth, height

    def record(
        self,
        kind: int,
        actor: Mech | None = None,
        target: Mech | None = None,
        weapon: Weapon | None = None,
        amount: float = 0.0,
        place: Point | None = None,
        direction: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Log an event: (kind, tick, actor, target, weapon, amount, place or None, direction)."""
        who = [NO_MECH if mech is None else mech.index for mech in (actor, target)]
        which = -1 if weapon is None else self.config.catalog.weapons.index(weapon)
        self.log.append((kind, self.tick, *who, which, amount, place, direction))

    def doubt(self, value: float, bound: float) -> None:
        """Count a comparison of two numbers that rounding may reverse."""
        self.cases[GRAZING] += abs(value - bound) < 1e-9


COLUMN = np.dtype([("opaque", "u4"), ("solid", "u4"), ("hazard", "u4")])
"""The bits of a column of voxels, by the names of the state's arrays."""


def count_bits(words: NDArray[np.uint32]) -> int:
    """Number of set bits in all words."""
    return sum(int(word).bit_count() for word in words.flat)


def set_columns(state: State, battle: int, columns: NDArray[Any]) -> None:
    """Write columns (Y, X) COLUMN, their blocks, and the number of hazards."""
    for name in COLUMN.names or ():
        getattr(state, name)[battle] = columns[name]
    state.blocks[battle] = blocks_of(columns)
    state.battles["num_hazards"][battle] = count_bits(columns["hazard"])


def blocks_of(columns: NDArray[Any]) -> NDArray[Any]:
    """The blocks (Y', X') BLOCK of columns (Y, X) COLUMN."""
    side = int(BLOCK_SIDE)
    blocks = np.zeros([-(-length // side) for length in columns.shape], BLOCK)
    for y in range(side):
        for x in range(side):
            part = columns[y::side, x::side]
            covered = blocks[: part.shape[0], : part.shape[1]]
            covered["obstacle"] |= part["opaque"] | part["solid"]
            covered["hazard"] |= part["hazard"]
    return blocks


def material_mask(
    voxels: NDArray[np.uint8], attribute: str, materials: Sequence[Material] = MATERIALS
) -> NDArray[np.bool_]:
    """Which voxels have a material with the attribute."""
    return np.array([getattr(material, attribute) for material in materials])[voxels]


def columns_of(voxels: NDArray[np.uint8], materials: Sequence[Material] = MATERIALS) -> NDArray[Any]:
    """The columns (Y, X) COLUMN of voxels (Z, Y, X)."""
    columns = np.zeros(voxels.shape[1:], COLUMN)
    bits = 2 ** np.arange(voxels.shape[0], dtype=np.int64)[:, None, None]
    solid = material_mask(voxels, "blocks_movement", materials)
    columns["solid"] = (solid * bits).sum(axis=0)
    columns["opaque"] = (material_mask(voxels, "blocks_sight", materials) * bits).sum(axis=0)
    harmless = [material.speed_factor == 1 and material.heat == 0 == material.damage for material in materials]
    columns["hazard"] = (~np.array(harmless)[voxels] * bits).sum(axis=0)
    return columns


def load(state: State, battle: int, config: BattleConfig) -> World:
    """Copy one battle from the engine's state."""
    row, materials = state.battles[battle], config.catalog.materials
    voxels = state.voxels[battle].copy()
    return World(
        config=config,
        mechs=[_load_mech(config, state, battle, index) for index in range(config.num_mechs)],
        teams=[
            Team(float(team["score"]), float(team["share"]), int(team["inside"]), int(team["quarter_turns"]))
            for team in state.teams[battle]
        ],
        projectiles=[
            _load_projectile(config, shot) for shot in state.projectiles[battle, : int(row["num_projectiles"])]
        ],
        clouds=[
            Cloud(
                (float(cloud["x"]), float(cloud["y"]), float(cloud["z"])),
                float(cloud["radius"]),
                int(cloud["ticks"]),
                int(cloud["team"]),
            )
            for cloud in state.clouds[battle, : int(row["num_clouds"])]
        ],
        paint={
            (int(pack), int(mech)): Mark(
                int(state.paint["ticks"][battle, pack, mech]), int(state.paint["painter"][battle, pack, mech])
            )
            for pack, mech in np.argwhere(state.paint["ticks"][battle] > 0)
        },
        sightings={
            (int(pack), int(mech)): _load_sighting(state.sightings[battle, pack, mech])
            for pack, mech in np.argwhere(state.sightings["known"][battle] > 0)
        },
        voxels=voxels,
        voxel_damage=state.voxel_damage[battle].astype(np.int64),
        blocks_movement=material_mask(voxels, "blocks_movement", materials),
        blocks_sight=material_mask(voxels, "blocks_sight", materials),
        zone_x=float(row["zone_x"]),
        zone_y=float(row["zone_y"]),
        zone_radius=float(row["zone_radius"]),
        seed=int(row["seed"]),
        tick=int(row["tick"]),
        step_count=int(row["step_count"]),
        over=bool(row["over"]),
        winner=int(row["winner"]),
        reason=int(row["reason"]),
    )


def _point(row: Any) -> Point:
    return float(row["x"]), float(row["y"]), float(row["z"])


def _load_sighting(row: Any) -> Sighting:
    return Sighting(_point(row), (float(row["vx"]), float(row["vy"])), float(row["armour"]), int(row["age"]))


_FLOATS = (
    *("x", "y", "z", "yaw", "vx", "vy", "vz", "armour", "legs", "stability", "heat", "quality", "jam", "potential"),
    *("throttle", "strafe", "jet", "turn", "speed_factor"),
)
_INTEGERS = (
    *("place", "team", "pack", "anti_missile_cooldown", "suppressed", "fallen", "radiates", "target", "display"),
    *("wreck_ticks", "wreck_low", "wreck_high"),
)
_FLAGS = ("alive", "shutdown", "on_ground", "vent", "transmits")
_LISTS = ("cooldown", "charges", "contacts", "intel", "message")


def _load_mech(config: BattleConfig, state: State, battle: int, index: int) -> Mech:
    row = state.mechs[battle, index]
    kind = config.catalog.mech_classes[int(row["mech_class"])]
    weapons = {weapon.name: weapon for weapon in config.catalog.weapons}
    mounted = [getattr(kind, mount) for mount in MOUNTS]
    fields: dict[str, Any] = {name: float(row[name]) for name in _FLOATS}
    fields |= {name: int(row[name]) for name in _INTEGERS}
    fields |= {name: bool(row[name]) for name in _FLAGS}
    fields |= {name: row[name].tolist() for name in _LISTS}
    return Mech(
        index=index,
        kind=kind,
        weapons=[None if name is None else weapons[name] for name in mounted],
        trigger=[bool(on) for on in row["trigger"]],
        statistics=Counter({name: state.statistics[name][battle, index].item() for name in STATISTIC_NAMES}),
        shots=state.shots[battle, index].tolist(),
        hits=state.hits[battle, index].tolist(),
        **fields,
    )


def _load_projectile(config: BattleConfig, row: Any) -> Projectile:
    return Projectile(
        position=_point(row),
        velocity=(float(row["vx"]), float(row["vy"]), float(row["vz"])),
        reach=float(row["reach"]),
        owner=int(row["owner"]),
        weapon=config.catalog.weapons[int(row["weapon"])],
        aim=float(row["aim"]),
        target=int(row["target"]),
        phase=int(row["phase"]),
    )
