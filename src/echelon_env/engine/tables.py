"""The configuration and the catalogue as the record arrays that kernels read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.catalog import MATERIALS, MOUNTS
from echelon_env.config import REWARD_COMPONENTS, BattleConfig, zone_radius_limit
from echelon_env.engine.geometry import PI, cosine_sine

RULES = np.dtype(
    [
        ("dt", "f8"),  # s
        ("decision_seconds", "f8"),  # s
        ("decision_repeat", "i8"),  # ticks
        ("max_steps", "i8"),  # decisions
        ("clock_terminates", "i8"),  # 1: the time limit terminates, 0: it truncates
        ("full_observability", "i8"),
        ("dead_persist", "i8"),
        ("map_size", "i8"),  # m
        ("map_height", "i8"),  # m
        ("map_diagonal", "f8"),  # m
        ("gravity", "f8"),  # m/s2
        ("vertical_keep", "f8"),  # share of the vertical velocity kept each tick
        ("jet_heat", "f8"),  # heat/s
        ("vent_factor", "f8"),
        ("restart_heat", "f8"),  # share of capacity
        ("max_heat", "f8"),  # share of capacity
        ("max_heat_from_enemies", "f8"),  # share of capacity
        ("rear_cos", "f8"),  # cosine of half the rear arc
        ("rear_damage", "f8"),  # factor
        ("radar_range", "f8"),  # m
        ("bloom_heat", "f8"),  # share of capacity
        ("terrain_cell", "f8"),  # m
        ("zone_max_feet", "f8"),  # m
        ("contested_share", "f8"),
        ("score_to_win", "f8"),  # s
        ("gamma", "f8"),
        *[(f"weight_{name}", "f8") for name in REWARD_COMPONENTS],
        ("speed_scale", "f8"),  # m/s, top speed of the fastest class
        ("height_scale", "f8"),  # m, height of the tallest class
        ("range_scale", "f8"),  # m, longest weapon range
        ("zone_scale", "f8"),  # m, largest zone radius
    ],
    align=True,
)

MECH_CLASS = np.dtype(
    [
        ("half_length", "f8"),  # m along x
        ("half_width", "f8"),  # m along y
        ("height", "f8"),  # m
        ("top_speed", "f8"),  # m/s
        ("turn_rate", "f8"),  # rad/s
        ("jet_acceleration", "f8"),  # m/s2
        ("armour", "f8"),  # hit points
        ("heat_capacity", "f8"),
        ("heat_dissipation", "f8"),  # heat/s
        ("tonnage", "f8"),  # t
        ("radar_factor", "f8"),
        ("contact_slots", "i8"),
        ("one_hot", "i8"),  # position in ONE_HOT, -1 for a class of a user's own
        ("weapon", "i8", (len(MOUNTS),)),  # index into the weapons, -1 for an empty mount
    ],
    align=True,
)

WEAPON = np.dtype(
    [
        ("hitscan", "i8"),  # 1: hits at once, 0: fires a projectile
        ("range", "f8"),  # m
        ("damage", "f8"),  # hit points
        ("heat", "f8"),
        ("target_heat", "f8"),
        ("cooldown", "i8"),  # ticks
        ("arc_cos", "f8"),  # cosine of half the arc
        ("speed", "f8"),  # m/s
    ],
    align=True,
)

MATERIAL = np.dtype([("blocks_movement", "i1"), ("blocks_sight", "i1")], align=True)

ONE_HOT = ("scout", "light", "medium", "heavy")
"""Classes in the order of the observations' one-hot."""


class Tables(NamedTuple):
    """What kernels need to know and never change."""

    rules: NDArray[Any]  # (1,) RULES
    classes: NDArray[Any]  # (K,) MECH_CLASS
    weapons: NDArray[Any]  # (W,) WEAPON
    materials: NDArray[Any]  # (N,) MATERIAL, by the codes that voxels hold


def build_tables(config: BattleConfig) -> Tables:
    """The record arrays of a configuration."""
    return Tables(rules=_rules(config), classes=_classes(config), weapons=_weapons(config), materials=_materials())


def _rules(config: BattleConfig) -> NDArray[Any]:
    terrain, physics, sensors, zone = config.terrain, config.physics, config.sensors, config.zone
    classes, weapons = config.catalog.mech_classes, config.catalog.weapons
    values: dict[str, float] = {
        "dt": config.dt,
        "decision_seconds": config.decision_seconds,
        "decision_repeat": config.decision_repeat,
        "max_steps": config.max_steps,
        "clock_terminates": config.time_limit == "terminate",
        "full_observability": config.observability == "full",
        "dead_persist": config.dead_agents == "persist",
        "map_size": terrain.size,
        "map_height": terrain.height,
        "map_diagonal": terrain.size * math.sqrt(2.0),
        "gravity": physics.gravity,
        "vertical_keep": 1.0 - physics.vertical_damping,
        "jet_heat": physics.jet_heat,
        "vent_factor": physics.vent_factor,
        "restart_heat": physics.restart_heat,
        "max_heat": physics.max_heat,
        "max_heat_from_enemies": physics.max_heat_from_enemies,
        "rear_cos": _half_arc_cos(physics.rear_arc),
        "rear_damage": physics.rear_damage,
        "radar_range": sensors.radar_range,
        "bloom_heat": sensors.bloom_heat,
        "terrain_cell": sensors.terrain_cell,
        "zone_max_feet": zone.max_feet_height,
        "contested_share": zone.contested_share,
        "score_to_win": zone.score_to_win,
        "gamma": config.rewards.gamma,
        "speed_scale": max(mech_class.top_speed for mech_class in classes) or 1.0,
        "height_scale": max(mech_class.height for mech_class in classes),
        "range_scale": max((weapon.range for weapon in weapons), default=1.0),
        "zone_scale": zone_radius_limit(config),
    }
    values |= {f"weight_{name}": getattr(config.rewards, name) for name in REWARD_COMPONENTS}
    rules = np.zeros(1, RULES)
    for name in rules.dtype.names or ():
        rules[name] = values[name]
    return rules


def _classes(config: BattleConfig) -> NDArray[Any]:
    table = np.zeros(len(config.catalog.mech_classes), MECH_CLASS)
    for row, mech_class in zip(table, config.catalog.mech_classes, strict=True):
        row["half_length"] = mech_class.length / 2
        row["half_width"] = mech_class.width / 2
        for name in ("height", "top_speed", "turn_rate", "jet_acceleration", "armour", "heat_capacity"):
            row[name] = getattr(mech_class, name)
        for name in ("heat_dissipation", "tonnage", "contact_slots"):
            row[name] = getattr(mech_class, name)
        row["radar_factor"] = mech_class.sensor_range_factor
        row["one_hot"] = ONE_HOT.index(mech_class.name) if mech_class.name in ONE_HOT else -1
        row["weapon"] = [config.catalog.weapon_index(getattr(mech_class, mount)) for mount in MOUNTS]
    return table


def _weapons(config: BattleConfig) -> NDArray[Any]:
    table = np.zeros(len(config.catalog.weapons), WEAPON)
    for row, weapon in zip(table, config.catalog.weapons, strict=True):
        row["hitscan"] = weapon.flight == "hitscan"
        for name in ("range", "damage", "heat", "target_heat", "speed"):
            row[name] = getattr(weapon, name)
        row["cooldown"] = config.ticks(weapon.cooldown)
        row["arc_cos"] = _half_arc_cos(weapon.arc)
    return table


def _materials() -> NDArray[Any]:
    return np.array([(material.blocks_movement, material.blocks_sight) for material in MATERIALS], MATERIAL)


def _half_arc_cos(arc_degrees: float) -> float:
    return float(cosine_sine(arc_degrees / 2 * PI / 180)[0])
