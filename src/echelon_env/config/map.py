"""The configuration of a map: the parameters of the generator, without the rules of battles."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echelon_env.config.biomes import BIOMES, default_biomes
from echelon_env.config.schema import ConfigError, build, check_fields, measure, nearest_name, quantity, to_plain

MAX_HEIGHT = 32
"""Maximum height of a map in voxels: a column is stored as 32 bits."""


@dataclass(frozen=True, kw_only=True)
class TerrainConfig:
    """The map: its size, its biomes, its spawn areas and its lanes."""

    size: int = quantity(100, "m", 24, 512)  # edge length of the square map
    height: int = quantity(20, "m", 8, MAX_HEIGHT)  # of the map
    biomes: tuple[str, ...] = field(default_factory=default_biomes)  # candidates for the four quadrants
    centre_jitter: float = quantity(0.12, "map sizes", 0, 0.3)  # offset of the quadrants' common corner from the centre
    spawn_margin: float = quantity(2.0, "m", 0, 64)  # free space between the map's edge and a spawn area
    spawn_spacing: float = quantity(5.0, "m", 1, 16)  # distance between neighbouring spawn places
    max_spawn_distance: float = quantity(1000.0, "m", 1)  # between the spawn areas, which are in corners if these allow
    direct_lane_width: float = quantity(8.0, "m", 4, 32)  # of the cleared lane to the zone, which bends once
    flank_lane_width: float = quantity(6.0, "m", 4, 32)  # of the lanes that go around, cleared except for foliage
    mirrored: bool = False  # the map equals itself rotated by 180 degrees, with the teams exchanged
    ring_width: float = quantity(6.0, "m", 0, 32)  # open ring around the zone
    max_distance_difference: float = quantity(0.15, "share", 0.01, 1)  # of the teams' walking distances to the zone


@dataclass(frozen=True, kw_only=True)
class MapConfig:
    """Everything that defines a map except its seed. Raises `ConfigError` for invalid values.

    `BattleConfig.map_config` derives it. Battles with different rules but equal map configurations share maps.
    """

    terrain: TerrainConfig
    places: int = measure("mechs", 1, 64)  # spawn places per team
    mech_width: float = measure("m", 1e-3)  # longest footprint edge of all mechs in the rosters
    mech_height: float = measure("m", 1e-3)  # height of the tallest mech in the rosters
    walker_widths: tuple[float, ...]  # m, longest footprint edges of the classes that cannot fly, widest first
    min_zone_radius: float = measure("m", 1e-3)
    max_zone_radius: float = measure("m", 1e-3)

    def __post_init__(self) -> None:
        check_fields(self, "")
        terrain = self.terrain
        if not terrain.biomes:
            raise ConfigError("config key 'terrain.biomes': expected at least one biome, got none", "terrain.biomes")
        for biome in terrain.biomes:
            if biome not in BIOMES:
                hint = nearest_name(biome, BIOMES)
                raise ConfigError(f"config key 'terrain.biomes': unknown biome {biome!r}{hint}", "terrain.biomes")
        possible = {width for width in self.walker_widths if 0 < width <= self.mech_width}
        if list(self.walker_widths) != sorted(possible, reverse=True):
            raise ConfigError(
                f"config key 'walker_widths': expected widths up to {self.mech_width} m, widest first, "
                f"got {self.walker_widths}",
                "walker_widths",
            )
        if self.max_zone_radius < self.min_zone_radius:
            raise ConfigError(
                f"max_zone_radius {self.max_zone_radius} is less than min_zone_radius {self.min_zone_radius}",
                "max_zone_radius",
            )
        if terrain.spawn_spacing < self.mech_width:
            raise ConfigError(
                f"config key 'terrain.spawn_spacing': expected at least the {self.mech_width} m of the widest mech, "
                f"got {terrain.spawn_spacing}",
                "terrain.spawn_spacing",
            )
        if terrain.height < self.mech_height:
            raise ConfigError(
                f"terrain.height {terrain.height} is less than the {self.mech_height} m of the tallest mech",
                "terrain.height",
            )
        taken = 2 * self.spawn_extent + 2 * self.max_zone_radius
        if terrain.size < taken:
            raise ConfigError(
                f"terrain.size {terrain.size} m is too small: two spawn areas for teams of {self.places} and the "
                f"zone between them need {math.ceil(taken)} m",
                "terrain.size",
                "blue",
                "red",
            )
        if terrain.size < taken + 2 * self.spawn_offset:
            raise ConfigError(
                f"config key 'terrain.max_spawn_distance': {terrain.max_spawn_distance} m leave no room for the zone "
                "between the spawn areas",
                "terrain.max_spawn_distance",
            )

    @property
    def spawn_extent(self) -> float:
        """Edge length in metres of the square of a team's spawn places, including the margin on its outer sides."""
        return self.terrain.spawn_margin + math.ceil(math.sqrt(self.places)) * self.terrain.spawn_spacing

    @property
    def spawn_offset(self) -> float:
        """Offset in metres along each axis of the spawn areas from the map's corners towards its centre."""
        terrain = self.terrain
        distance = terrain.size - self.spawn_extent - terrain.spawn_margin  # of the areas' centres, along each axis
        return max(0.0, (distance - terrain.max_spawn_distance / math.sqrt(2.0)) / 2)

    @property
    def walking_width(self) -> float:
        """Width in metres of a strip that every mech can walk along in any direction. Footprints do not rotate."""
        return self.mech_width * math.sqrt(2.0)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as nested dicts, lists and plain values that JSON can hold."""
        return typing.cast("dict[str, Any]", to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MapConfig:
        """The inverse of `to_dict`. Raises `ConfigError`."""
        return typing.cast("MapConfig", build(cls, data, ""))
