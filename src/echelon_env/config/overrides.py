"""Types of the keyword arguments that override fields of a configuration, for type checkers and editors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from echelon_env.config.battle import (
    AbilityConfig,
    CombatConfig,
    PhysicsConfig,
    RewardConfig,
    SensorConfig,
    ZoneConfig,
)
from echelon_env.config.catalog import Catalog
from echelon_env.config.map import TerrainConfig

Fields = Mapping[str, Any]
"""The fields of a nested part to change."""


class Overrides(TypedDict, total=False):
    """Fields of `BattleConfig`. A nested part is an object, or a mapping of the fields to change."""

    blue: Sequence[str]
    red: Sequence[str]
    dt: float
    decision_repeat: int
    max_steps: int
    time_limit: Literal["truncate", "terminate"]
    observability: Literal["partial", "full"]
    banned_weapons: Sequence[str]
    dead_agents: Literal["terminate", "persist"]
    terrain: TerrainConfig | Fields
    zone: ZoneConfig | Fields
    physics: PhysicsConfig | Fields
    combat: CombatConfig | Fields
    sensors: SensorConfig | Fields
    abilities: AbilityConfig | Fields
    rewards: RewardConfig | Fields
    catalog: Catalog | Fields
