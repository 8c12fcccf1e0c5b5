"""The configurations of the comparisons: the game on a small map, and one with a different value of every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from echelon_env.config.battle import AbilityConfig, BattleConfig
from echelon_env.config.catalog import (
    AIR,
    AUTOCANNON,
    CONCRETE,
    DEBRIS,
    DIRT,
    FLAMER,
    FOLIAGE,
    GAUSS,
    GLASS,
    HEAVY,
    LASER,
    LAVA,
    LIGHT,
    MATERIALS,
    MEDIUM,
    MISSILES,
    PAINTER,
    REINFORCED,
    SCOUT,
    SMOKE,
    WATER,
    WRECK,
    Catalog,
)
from echelon_env.config.scenario import make_config

ODD_MATERIALS = (
    MATERIALS[AIR],
    replace(MATERIALS[DIRT], speed_factor=0.9),
    replace(MATERIALS[CONCRETE], hit_points=37, rubble=0.3),
    replace(MATERIALS[REINFORCED], hit_points=0),
    replace(MATERIALS[GLASS], hit_points=23, rubble=1.0),
    replace(MATERIALS[FOLIAGE], hit_points=3, heat=-7.0, speed_factor=0.8),
    replace(MATERIALS[WATER], heat=-45.0, damage=0.5, speed_factor=0.3),
    replace(MATERIALS[LAVA], heat=80.0, damage=31.0),
    replace(MATERIALS[DEBRIS], hit_points=11, blocks_sight=True),
    replace(MATERIALS[WRECK], hit_points=63, rubble=0.5),
)

ODD_CATALOG = Catalog(
    weapons=(
        replace(LASER, damage=13.7, target_heat=31.0, arc=200.0, cooldown=0.17, range=9.3),
        replace(
            AUTOCANNON,
            damage=7.3,
            target_heat=5.5,
            arc=60.0,
            cooldown=0.05,
            speed=5.3,
            range=4.9,
            splash_radius=1.3,
            splash_share=0.6,
            suppression=0.3,
            fires_blind=True,
        ),
        replace(AUTOCANNON, name="railgun", damage=31.9, heat=17.3, arc=360.0, cooldown=0.7, speed=777.0, range=31.0),
        replace(LASER, name="heater", damage=0.0, target_heat=9.0, arc=360.0, cooldown=0.1, range=11.0, heat=1.0),
        replace(FLAMER, damage=2.3, arc=180.0, range=6.1, stability=3.7, suppression=0.5),
        replace(MISSILES, damage=17.0, heat=9.0, arc=360.0, cooldown=0.4, speed=21.0, lifetime=2.1, splash_radius=3.1),
        replace(MISSILES, name="darts", damage=6.1, heat=3.0, cooldown=0.3, lifetime=0.9, splash_radius=0.0),
        replace(GAUSS, damage=21.7, heat=5.0, arc=300.0, cooldown=0.6, speed=13.0, range=25.0, splash_radius=2.2),
        replace(PAINTER, damage=3.3, cooldown=0.2, arc=360.0, paint=0.7, range=17.0),
        replace(SMOKE, damage=4.6, cooldown=0.5, charges=0, speed=31.0, smoke_radius=1.7, smoke_duration=0.9, heat=2.0),
    ),
    mech_classes=(
        replace(
            SCOUT,
            length=1.9,
            width=0.9,
            height=1.45,
            top_speed=17.0,
            tertiary="heater",
            contact_slots=1,
            wreck_probability=0.8,
        ),
        replace(
            LIGHT,
            length=1.1,
            width=2.3,
            jet_acceleration=29.0,
            primary="railgun",
            secondary="darts",
            special="flamer",
            turn_rate=7.0,
            anti_missile=True,
        ),
        replace(
            MEDIUM,
            length=2.5,
            width=1.3,
            height=2.2,
            jet_acceleration=13.0,
            turn_rate=3.0,
            electronics=True,
            secondary="missiles",
            tertiary="painter",
        ),
        replace(
            HEAVY,
            length=2.2,
            width=3.6,
            height=3.3,
            heat_capacity=130.37,
            secondary="railgun",
            tertiary="autocannon",
            turn_rate=2.0,
        ),
        replace(
            MEDIUM,
            name="digger",
            length=0.7,
            width=0.7,
            height=0.9,
            armour=9.5,
            plating=4.5,
            legs=3.0,
            primary=None,
            secondary="heater",
            tertiary="gauss",
            electronics=True,
            anti_missile=True,
        ),
    ),
    materials=ODD_MATERIALS,
)
"""Classes with unequal edges and uneven numbers; weapons that are slow, fast, harmless or fire every tick."""


ALL_OFF = dict.fromkeys((each.name for each in fields(AbilityConfig)), False)
"""Overrides of `abilities` that switch all of them off."""


HIDDEN_ZONE: Mapping[str, Any] = {
    "zone": {"score_to_win": 5.0, "shown_seconds": 3.1},
    "catalog": {"mech_classes": {"light": {"observes_zone": False}}},
}
"""Overrides with which lights never observe the zone, and the others for a while."""


def small_config(**overrides: Any) -> BattleConfig:
    """Five against five with the game's numbers, on a small low map."""
    return make_config("skirmish", **{"terrain": {"size": 64, "height": 12}, **overrides})


def odd_config(**overrides: Any) -> BattleConfig:
    """Uneven teams with the odd catalogue, other physics and every switch inverted."""
    odd = {
        "blue": ("heavy", "medium", "digger", "light", "scout", "light", "digger"),
        "red": ("scout", "heavy", "light", "medium", "digger"),
        "catalog": ODD_CATALOG,
        "decision_repeat": 3,
        "dt": 0.04,
        "max_steps": 60,
        "time_limit": "terminate",
        "observability": "full",
        "dead_agents": "persist",
        "terrain": {"size": 64, "height": 9},
        "zone": {"max_feet_height": 1.0, "score_to_win": 5.0},
        "physics": {
            "gravity": 17.0,
            "vertical_damping": 0.05,
            "restart_heat": 0.883,
            "max_heat": 1.317,
            "vent_factor": 3.0,
            "jet_boost": 0.4,
            "legged_speed": 0.7,
            "max_stability": 70.0,
            "stability_recovery": 23.0,
            "moving_penalty": 0.3,
            "moving_speed": 2.1,
            "suppression_penalty": 0.65,
            "least_recovery": 0.2,
            "fall_duration": 0.9,
            "risen_stability": 33.0,
        },
        "combat": {
            "aim_low": 0.2,
            "aim_high": 0.7,
            "legs_height": 0.45,
            "legs_share": 0.7,
            "rear_arc": 200.0,
            "rear_damage": 1.9,
            "paint_damage": 1.7,
            "helpless_damage": 1.3,
            "dive_distance": 4.1,
            "anti_missile_range": 7.7,
            "anti_missile_probability": 0.3,
            "anti_missile_cooldown": 0.2,
            "wreck_height": 0.9,
            "wreck_duration": 0.5,
        },
        "sensors": {
            "radar_range": 9.0,
            "bloom_heat": 0.5,
            "terrain_cell": 2.3,
            "jamming": 1.4,
            "counter": 0.9,
            "max_quality": 1.3,
            "electronics_range": 23.0,
            "ecm_heat": 31.0,
            "eccm_heat": 17.0,
            "intel_memory": 0.6,
            "link_quality": 0.9,
        },
        "rewards": {
            "death": -3.0,
            "overheat": -0.7,
            "gamma": 0.9,
            "contested_kill": 3.7,
            "contested_death": 0.2,
            "team_spirit": 0.3,
        },
    }
    return make_config("skirmish", **{**odd, **overrides})
