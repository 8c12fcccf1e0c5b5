"""The configuration and the catalogue as the record arrays that kernels read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import (
    PACK,
    REWARD_COMPONENTS,
    AbilityConfig,
    BattleConfig,
    CombatConfig,
    PhysicsConfig,
    RewardConfig,
    SensorConfig,
    ZoneConfig,
)
from echelon_env.config.catalog import MOUNTS, Material
from echelon_env.config.flights import FLIGHTS
from echelon_env.engine.geometry import PI, cosine_sine
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.observations import CLASS_NAMES, EGO_SIDE

CEILING_CLEARANCE = 0.5
"""m; homing projectiles cruise this far below the map's height."""


def _of_classes(config: BattleConfig, name: str) -> list[float]:
    return [getattr(mech_class, name) for mech_class in config.catalog.mech_classes]


def _half_arc_cos(arc_degrees: float) -> float:
    """Cosine of half an arc. For the full circle -2, below every cosine, so that rounding excludes nothing."""
    if arc_degrees >= 360.0:
        return -2.0
    return float(cosine_sine(arc_degrees / 2 * PI / 180)[0])


def _decisions(config: BattleConfig, seconds: float) -> int:
    """The number of decisions that begin before a time, against rounding of the quotient."""
    return math.ceil(round(seconds / config.decision_seconds, 9))


_DERIVED: dict[str, tuple[str, Callable[[BattleConfig], float]]] = {
    "dt": ("f8", lambda config: config.dt),  # s
    "decision_seconds": ("f8", lambda config: config.decision_seconds),  # s
    "decision_repeat": ("i8", lambda config: config.decision_repeat),  # ticks
    "max_steps": ("i8", lambda config: config.max_steps),  # decisions
    "clock_terminates": ("i8", lambda config: config.time_limit == "terminate"),  # 0: the time limit truncates
    "shown_decisions": ("i8", lambda config: _decisions(config, config.zone.shown_seconds)),  # 0: all
    # 1: not all mechs observe the zone, or not always
    "zone_hidden": ("i8", lambda config: bool(config.classes_without_zone) or config.zone.shown_seconds > 0),
    "full_observability": ("i8", lambda config: config.observability == "full"),
    "dead_persist": ("i8", lambda config: config.dead_agents == "persist"),
    "num_blue": ("i8", lambda config: len(config.blue)),  # mechs of team blue
    "map_size": ("i8", lambda config: config.terrain.size),  # m
    "map_height": ("i8", lambda config: config.terrain.height),  # m
    "map_diagonal": ("f8", lambda config: config.terrain.size * math.sqrt(2.0)),  # m
    "vertical_keep": ("f8", lambda config: 1.0 - config.physics.vertical_damping),  # share of the vertical velocity
    "fall_ticks": ("i8", lambda config: config.ticks(config.physics.fall_duration)),
    "rear_cos": ("f8", lambda config: _half_arc_cos(config.combat.rear_arc)),
    "cruise_height": ("f8", lambda config: config.terrain.height - CEILING_CLEARANCE),  # m
    "anti_missile_cooldown": ("i8", lambda config: config.ticks(config.combat.anti_missile_cooldown)),
    "wreck_ticks": ("i8", lambda config: config.ticks(config.combat.wreck_duration)),
    "intel_ticks": ("i8", lambda config: config.ticks(config.sensors.intel_memory)),
    "speed_scale": ("f8", lambda config: max(_of_classes(config, "top_speed")) or 1.0),  # m/s
    "height_scale": ("f8", lambda config: max(_of_classes(config, "height"))),  # m
    "least_radar": ("f8", lambda config: min(_of_classes(config, "sensor_range_factor"))),
    "radar_span": ("f8", lambda config: float(np.ptp(_of_classes(config, "sensor_range_factor")))),
    "range_scale": ("f8", lambda config: max((weapon.range for weapon in config.catalog.weapons), default=1.0)),  # m
    "zone_scale": ("f8", lambda config: config.map_config.max_zone_radius),  # m
}
"""What else kernels read: a type, and the number. It replaces one of a section that has its name."""


def _numbers(*sections: Any) -> dict[str, float]:
    """The numbers of sections of the configuration by name; a weight of the rewards is ``weight_NAME``."""
    numbers = {each.name: getattr(section, each.name) for section in sections for each in fields(section)}
    assert len(numbers) == sum(len(fields(section)) for section in sections), "two numbers have the same name"
    return {f"weight_{name}" if name in REWARD_COMPONENTS else name: number for name, number in numbers.items()}


_DEFAULTS = _numbers(PhysicsConfig(), CombatConfig(), SensorConfig(), AbilityConfig(), ZoneConfig(), RewardConfig())
_KINDS = {name: "i8" if isinstance(default, int) else "f8" for name, default in _DEFAULTS.items()}
RULES = np.dtype([*(_KINDS | {name: kind for name, (kind, _) in _DERIVED.items()}).items()], align=True)
"""The numbers of these sections of the configuration, with their units, and what is derived from all of it."""

MECH_CLASS = np.dtype(
    [
        ("half_length", "f8"),  # m along x
        ("half_width", "f8"),  # m along y
        ("height", "f8"),  # m
        ("top_speed", "f8"),  # m/s
        ("turn_rate", "f8"),  # rad/s
        ("jet_acceleration", "f8"),  # m/s2
        ("armour", "f8"),  # hit points
        ("plating", "f8"),  # hit points off every hit
        ("legs", "f8"),  # hit points
        ("heat_capacity", "f8"),
        ("heat_dissipation", "f8"),  # heat/s
        ("wreck_probability", "f8"),
        ("radar_factor", "f8"),
        ("electronics", "i8"),  # 1: carries ECM and ECCM
        ("anti_missile", "i8"),  # 1: carries an anti-missile system
        ("contact_slots", "i8"),
        ("observes_zone", "i8"),  # 1: observes where the zone is
        ("one_hot", "i8"),  # position in CLASS_NAMES, -1 for a custom class
        ("weapon", "i8", (len(MOUNTS),)),  # index into the weapons, -1 for an empty mount
    ],
    align=True,
)

WEAPON = np.dtype(
    [
        ("flight", "i8"),  # place in FLIGHTS
        ("projectile", "i8"),  # 0: it hits in the tick in which it is fired
        ("fires_blind", "i8"),  # 1: it fires ahead without a valid target
        ("guided", "i8"),  # 1: it homes on its target
        ("range", "f8"),  # m
        ("unaided_range", "f8"),  # m, range by line of sight; equals the range except for guided weapons
        ("reach", "f8"),  # m that a projectile flies
        ("longest_flight", "f8"),  # s that an unguided projectile can fly
        ("damage", "f8"),  # hit points
        ("stability", "f8"),
        ("heat", "f8"),
        ("target_heat", "f8"),
        ("cooldown", "i8"),  # ticks
        ("damage_rate", "f8"),  # hit points/s
        ("arc_cos", "f8"),  # cosine of half the arc
        ("speed", "f8"),  # m/s
        ("splash_radius", "f8"),  # m
        ("splash_share", "f8"),
        ("suppression", "i8"),  # ticks
        ("paint", "i8"),  # ticks
        ("smoke_radius", "f8"),  # m
        ("smoke_ticks", "i8"),
        ("charges", "i8"),  # 0: unlimited
    ],
    align=True,
)

MATERIAL = np.dtype(
    [
        ("blocks_movement", "i8"),
        ("blocks_sight", "i8"),
        ("hazard", "i8"),  # 1: slows, heats, cools or burns
        ("hit_points", "i8"),  # 0: cannot be destroyed
        ("rubble", "f8"),  # probability of debris
        ("speed_factor", "f8"),
        ("heat", "f8"),  # heat/s
        ("damage", "f8"),  # hit points/s
        ("harm", "f8"),  # -1 (cools most) to 1 (heats or damages most), as observed
    ],
    align=True,
)


class Tables(NamedTuple):
    """Constants that kernels read."""

    rules: NDArray[Any]  # (1,) RULES
    classes: NDArray[Any]  # (K,) MECH_CLASS
    weapons: NDArray[Any]  # (W,) WEAPON
    materials: NDArray[Any]  # (N,) MATERIAL, by the codes that voxels hold
    mates: NDArray[np.int16]  # (M, M) each mech's team-mates, its pack's first, in the roster's order, then NO_MECH
    ego_grid: NDArray[np.float64]  # (2, cells) cells forward and left of the mech, for each cell of an ego map


def build_tables(config: BattleConfig) -> Tables:
    """The record arrays of a configuration."""
    return Tables(
        rules=_rules(config),
        classes=_classes(config),
        weapons=_weapons(config),
        materials=_materials(config),
        mates=_mates(config),
        ego_grid=np.indices((EGO_SIDE, EGO_SIDE), float).reshape(2, -1) - EGO_SIDE // 2,
    )


def _rules(config: BattleConfig) -> NDArray[Any]:
    rules = np.zeros(1, RULES)
    numbers = _numbers(config.physics, config.combat, config.sensors, config.abilities, config.zone, config.rewards)
    for name, number in (numbers | {name: derive(config) for name, (_, derive) in _DERIVED.items()}).items():
        rules[name] = number
    return rules


def _classes(config: BattleConfig) -> NDArray[Any]:
    table = np.zeros(len(config.catalog.mech_classes), MECH_CLASS)
    for row, mech_class in zip(table, config.mech_classes, strict=True):
        row["half_length"] = mech_class.length / 2
        row["half_width"] = mech_class.width / 2
        for name in set(MECH_CLASS.names or ()) & {f.name for f in fields(mech_class)}:
            row[name] = getattr(mech_class, name)
        row["radar_factor"] = mech_class.sensor_range_factor
        row["one_hot"] = CLASS_NAMES.index(mech_class.name) if mech_class.name in CLASS_NAMES else -1
        row["weapon"] = [config.catalog.weapon_index(getattr(mech_class, mount)) for mount in MOUNTS]
    return table


def _weapons(config: BattleConfig) -> NDArray[Any]:
    table = np.zeros(len(config.catalog.weapons), WEAPON)
    for row, weapon in zip(table, config.catalog.weapons, strict=True):
        for name in set(WEAPON.names or ()) & {f.name for f in fields(weapon)} - {"flight"}:
            row[name] = getattr(weapon, name)
        rules = weapon.flight_rules
        row["flight"] = list(FLIGHTS).index(weapon.flight)
        row["projectile"], row["guided"] = rules.projectile, rules.guided
        row["unaided_range"] = weapon.unaided_range if rules.guided else weapon.range
        row["reach"] = weapon.speed * weapon.lifetime if rules.guided else weapon.range
        row["cooldown"] = config.ticks(weapon.cooldown)
        row["damage_rate"] = weapon.damage / (config.ticks(weapon.cooldown) * config.dt)
        for name in ("suppression", "paint"):
            row[name] = config.ticks(getattr(weapon, name)) if getattr(weapon, name) > 0 else 0
        if rules.projectile and not rules.guided:
            row["longest_flight"] = weapon.range / (rules.slowest * weapon.speed)
        row["smoke_ticks"] = config.ticks(weapon.smoke_duration)
        row["arc_cos"] = _half_arc_cos(weapon.arc)
    return table


def _materials(config: BattleConfig) -> NDArray[Any]:
    table = np.zeros(len(config.catalog.materials), MATERIAL)
    for row, material in zip(table, config.catalog.materials, strict=True):
        for name in set(MATERIAL.names or ()) & {f.name for f in fields(material)}:
            row[name] = getattr(material, name)
        row["hazard"] = material.speed_factor != 1.0 or material.heat != 0.0 or material.damage != 0.0
        row["harm"] = _harm(material, config.catalog.materials)
    return table


def _harm(material: Material, materials: tuple[Material, ...]) -> float:
    """A material's heating or damage, else its cooling (below 0), as a share of that of the worst material."""
    hottest, coldest = max(m.heat for m in materials), min(m.heat for m in materials)
    heat = material.heat / hottest if material.heat > 0 else 0.0
    damage = material.damage / max(m.damage for m in materials) if material.damage > 0 else 0.0
    if heat > 0 or damage > 0:
        return max(heat, damage)
    return material.heat / -coldest if material.heat < 0 else 0.0


def _mates(config: BattleConfig) -> NDArray[np.int16]:
    mates = np.full((config.num_mechs, config.num_mechs), NO_MECH, np.int16)
    for first, roster in ((0, config.blue), (len(config.blue), config.red)):
        for place in range(len(roster)):
            start = place // len(PACK) * len(PACK)
            pack = range(start, min(start + len(PACK), len(roster)))
            others = [o for o in range(len(roster)) if o not in pack]
            listed = [o for o in pack if o != place] + others
            mates[first + place, : len(listed)] = [first + o for o in listed]
    return mates
