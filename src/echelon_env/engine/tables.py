"""The configuration and the catalogue as the record arrays that kernels read."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
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
    SensorConfig,
)
from echelon_env.config.catalog import MOUNTS, Material
from echelon_env.config.flights import FLIGHTS
from echelon_env.engine.geometry import PI, cosine_sine, log1p
from echelon_env.engine.state import NO_MECH
from echelon_env.layout.observations import CLASS_NAMES, EGO_SIDE

_DERIVED = [
    ("dt", "f8"),  # s
    ("decision_seconds", "f8"),  # s
    ("decision_repeat", "i8"),  # ticks
    ("max_steps", "i8"),  # decisions
    ("clock_terminates", "i8"),  # 1: the time limit terminates, 0: it truncates
    ("full_observability", "i8"),
    ("dead_persist", "i8"),
    ("num_blue", "i8"),  # mechs of team blue
    ("map_size", "i8"),  # m
    ("map_height", "i8"),  # m
    ("map_diagonal", "f8"),  # m
    ("vertical_keep", "f8"),  # share of the vertical velocity kept each tick
    ("fall_ticks", "i8"),
    ("rear_cos", "f8"),  # cosine of half the rear arc
    ("cruise_height", "f8"),  # m
    ("anti_missile_cooldown", "i8"),  # ticks
    ("wreck_ticks", "i8"),
    ("intel_ticks", "i8"),  # memory of sightings
    ("zone_max_feet", "f8"),  # m
    ("contested_share", "f8"),
    ("contested_kill", "f8"),  # factor
    ("contested_death", "f8"),  # factor
    ("team_spirit", "f8"),
    ("score_to_win", "f8"),  # s
    ("gamma", "f8"),
    ("approach_kept", "f8"),  # share
    *[(f"weight_{name}", "f8") for name in REWARD_COMPONENTS],
    ("speed_scale", "f8"),  # m/s, top speed of the fastest class
    ("height_scale", "f8"),  # m, height of the tallest class
    ("least_radar", "f8"),  # least radar factor of the catalogue
    ("radar_span", "f8"),  # greatest minus least
    ("range_scale", "f8"),  # m, longest weapon range
    ("zone_scale", "f8"),  # m, largest zone radius
    ("sound_scale", "f8"),  # logarithm of the noise that the noisier roster can make
]
_AS_THEY_ARE = {
    each.name: "i8" if isinstance(each.default, int) else "f8"
    for section in (PhysicsConfig, CombatConfig, SensorConfig, AbilityConfig)
    for each in fields(section)
}
RULES = np.dtype([*(_AS_THEY_ARE | dict(_DERIVED)).items()], align=True)
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
        ("legs", "f8"),  # hit points
        ("heat_capacity", "f8"),
        ("heat_dissipation", "f8"),  # heat/s
        ("tonnage", "f8"),  # t
        ("noise", "f8"),  # noise per m/s
        ("wreck_probability", "f8"),
        ("radar_factor", "f8"),
        ("electronics", "i8"),  # 1: carries ECM and ECCM
        ("anti_missile", "i8"),  # 1: carries an anti-missile system
        ("contact_slots", "i8"),
        ("one_hot", "i8"),  # position in CLASS_NAMES, -1 for a custom class
        ("weapon", "i8", (len(MOUNTS),)),  # index into the weapons, -1 for an empty mount
    ],
    align=True,
)

WEAPON = np.dtype(
    [
        ("flight", "i8"),  # place in FLIGHTS
        ("projectile", "i8"),  # 0: it hits in the tick in which it is fired
        ("needs_target", "i8"),
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

CEILING_CLEARANCE = 0.5
"""m; homing projectiles cruise this far below the map's height."""


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
    terrain, physics, combat, sensors, zone = config.terrain, config.physics, config.combat, config.sensors, config.zone
    classes, weapons = config.catalog.mech_classes, config.catalog.weapons
    radar_factors = [mech_class.sensor_range_factor for mech_class in classes]
    values: dict[str, float] = {
        **asdict(physics),
        **asdict(combat),
        **asdict(sensors),
        **asdict(config.abilities),
        "dt": config.dt,
        "decision_seconds": config.decision_seconds,
        "decision_repeat": config.decision_repeat,
        "max_steps": config.max_steps,
        "clock_terminates": config.time_limit == "terminate",
        "full_observability": config.observability == "full",
        "dead_persist": config.dead_agents == "persist",
        "num_blue": len(config.blue),
        "map_size": terrain.size,
        "map_height": terrain.height,
        "map_diagonal": terrain.size * math.sqrt(2.0),
        "vertical_keep": 1.0 - physics.vertical_damping,
        "fall_ticks": config.ticks(physics.fall_duration),
        "rear_cos": _half_arc_cos(combat.rear_arc),
        "cruise_height": terrain.height - CEILING_CLEARANCE,
        "anti_missile_cooldown": config.ticks(combat.anti_missile_cooldown),
        "wreck_ticks": config.ticks(combat.wreck_duration),
        "intel_ticks": config.ticks(sensors.intel_memory),
        "zone_max_feet": zone.max_feet_height,
        "contested_share": zone.contested_share,
        "contested_kill": config.rewards.contested_kill,
        "contested_death": config.rewards.contested_death,
        "team_spirit": config.rewards.team_spirit,
        "score_to_win": zone.score_to_win,
        "gamma": config.rewards.gamma,
        "approach_kept": config.rewards.approach_kept,
        "speed_scale": max(mech_class.top_speed for mech_class in classes) or 1.0,
        "height_scale": max(mech_class.height for mech_class in classes),
        "least_radar": min(radar_factors),
        "radar_span": max(radar_factors) - min(radar_factors),
        "range_scale": max((weapon.range for weapon in weapons), default=1.0),
        "zone_scale": config.map_config.max_zone_radius,
        "sound_scale": _sound_scale(config),
    }
    values |= {f"weight_{name}": getattr(config.rewards, name) for name in REWARD_COMPONENTS}
    rules = np.zeros(1, RULES)
    for name in rules.dtype.names or ():
        rules[name] = values[name]
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
        row["projectile"], row["needs_target"], row["guided"] = rules.projectile, rules.needs_target, rules.guided
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


def _sound_scale(config: BattleConfig) -> float:
    """Logarithm of 1 plus the noise of the noisier roster at full speed."""
    catalog = config.catalog
    loudest = 0.0
    for roster in config.rosters:
        classes = [catalog.mech_classes[catalog.class_index(name)] for name in roster]
        loudest = max(loudest, sum(mech_class.top_speed * mech_class.noise for mech_class in classes))
    return log1p(loudest) or 1.0


def _half_arc_cos(arc_degrees: float) -> float:
    """Cosine of half an arc. For the full circle -2, below every cosine, so that rounding excludes nothing."""
    if arc_degrees >= 360.0:
        return -2.0
    return float(cosine_sine(arc_degrees / 2 * PI / 180)[0])
