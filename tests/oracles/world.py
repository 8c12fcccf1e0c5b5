"""A battle as plain Python objects, read from one row of the engine's state.

Every number of a rule is taken from the configuration and the catalogue, not from the kernels' tables.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.catalog import MATERIALS, MOUNTS, MechClass, Weapon
from echelon_env.config import BattleConfig
from echelon_env.engine.state import NO_MECH, State

TOLERANCE = 1e-6
"""Overlaps in metres up to which two boxes only touch."""

Point = tuple[float, float, float]


@dataclass(eq=False)
class Mech:
    """One mech: what it is, where it is, what it was told, what happened to it in this decision."""

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
    heat: float
    alive: bool
    shutdown: bool
    on_ground: bool
    cooldown: list[int]
    contacts: list[int]
    potential: float
    total_damage: float
    total_kills: float
    throttle: float = 0.0
    strafe: float = 0.0
    jet: float = 0.0
    turn: float = 0.0
    vent: bool = False
    trigger: list[bool] = field(default_factory=lambda: [False] * len(MOUNTS))
    target: int = NO_MECH
    hurt_x: float = 0.0
    hurt_y: float = 0.0
    damage_dealt: float = 0.0
    kills: float = 0.0
    shutdown_ticks: int = 0
    bad_actions: int = 0
    died: bool = False

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
    """A shot in flight; `direction` is a unit vector."""

    position: Point
    direction: Point
    reach: float
    owner: int
    weapon: Weapon


@dataclass
class Team:
    score: float
    share: float
    tonnage: float
    quarter_turns: int


@dataclass(eq=False)
class Hit:
    """Hit points and heat on their way to a mech; `dx, dy` is the planar unit direction of travel (or zero)."""

    shooter: Mech
    target: Mech
    weapon: Weapon
    damage: float
    heat: float
    dx: float
    dy: float


@dataclass(eq=False)
class World:
    """One battle. `blocks_movement` and `blocks_sight` are (Z, Y, X) bool."""

    config: BattleConfig
    mechs: list[Mech]  # by index
    teams: list[Team]
    projectiles: list[Projectile]
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
    log: list[tuple[Any, ...]] = field(default_factory=list)  # (kind, tick, actor, target, weapon, amount)
    cases: Counter[str] = field(default_factory=Counter)  # what happened how often, for tests to see what they covered

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
        height, depth, width = self.blocks_movement.shape
        return width, depth, height


def material_mask(voxels: NDArray[np.uint8], attribute: str) -> NDArray[np.bool_]:
    """Which voxels are of a material with the attribute."""
    return np.array([getattr(material, attribute) for material in MATERIALS])[voxels]


def load(state: State, battle: int, config: BattleConfig) -> World:
    """Copy one battle out of the engine's state."""
    row = state.battles[battle]
    return World(
        config=config,
        mechs=[_load_mech(config, index, mech) for index, mech in enumerate(state.mechs[battle])],
        teams=[
            Team(float(team["score"]), float(team["share"]), float(team["tonnage"]), int(team["quarter_turns"]))
            for team in state.teams[battle]
        ],
        projectiles=[
            _load_projectile(config, shot) for shot in state.projectiles[battle, : int(row["num_projectiles"])]
        ],
        blocks_movement=material_mask(state.voxels[battle], "blocks_movement"),
        blocks_sight=material_mask(state.voxels[battle], "blocks_sight"),
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


def _load_mech(config: BattleConfig, index: int, row: Any) -> Mech:
    kind = config.catalog.mech_classes[int(row["mech_class"])]
    weapons = {weapon.name: weapon for weapon in config.catalog.weapons}
    mounted = [getattr(kind, mount) for mount in MOUNTS]
    numbers = ("x", "y", "z", "yaw", "vx", "vy", "vz", "armour", "heat", "potential", "total_damage", "total_kills")
    return Mech(
        index=index,
        place=int(row["place"]),
        team=int(row["team"]),
        pack=int(row["pack"]),
        kind=kind,
        weapons=[None if name is None else weapons[name] for name in mounted],
        alive=bool(row["alive"]),
        shutdown=bool(row["shutdown"]),
        on_ground=bool(row["on_ground"]),
        cooldown=[int(ticks) for ticks in row["cooldown"]],
        contacts=[int(mech) for mech in row["contacts"]],
        throttle=float(row["throttle"]),
        strafe=float(row["strafe"]),
        jet=float(row["jet"]),
        turn=float(row["turn"]),
        vent=bool(row["vent"]),
        trigger=[bool(on) for on in row["trigger"]],
        target=int(row["target"]),
        **{name: float(row[name]) for name in numbers},
    )


def _load_projectile(config: BattleConfig, row: Any) -> Projectile:
    velocity = np.array([row["vx"], row["vy"], row["vz"]], dtype=float)
    direction = velocity / np.linalg.norm(velocity)
    return Projectile(
        position=(float(row["x"]), float(row["y"]), float(row["z"])),
        direction=(float(direction[0]), float(direction[1]), float(direction[2])),
        reach=float(row["reach"]),
        owner=int(row["owner"]),
        weapon=config.catalog.weapons[int(row["weapon"])],
    )
