"""The type `Biome` and the registry of biomes. `echelon_env.terrain.biomes` and users register biomes in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.catalog import MATERIALS
from echelon_env.config.schema import ConfigError


@dataclass(frozen=True)
class Plot:
    """A rectangular part of the map, H x W columns, that a brush paints."""

    voxels: NDArray[np.uint8]  # (Z, H, W) view of the map's material codes, initially all air
    open_ground: NDArray[np.bool_]  # (H, W) columns that are cleared after painting
    max_height: int  # m, height limit for painted voxels

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.open_ground.shape[0], self.open_ground.shape[1]


Brush = Callable[[Plot, np.random.Generator], None]


@dataclass(frozen=True, kw_only=True)
class Biome:
    """A kind of terrain: its name, its brush, and the materials of a map of this biome alone.

    `shares` maps a material to the (minimum, maximum) share of such a map's columns that hold a voxel of it, lanes and
    zone included. Such a map has no voxels of other materials, except for the dirt of lanes and the concrete and
    reinforced blocks in the zone.
    """

    name: str
    brush: Brush
    shares: Mapping[str, tuple[float, float]]
    order: int | None = None  # position among the default biomes; None: used only where a configuration names it

    @property
    def summary(self) -> str:
        """A description of the biome and its lesson: the docstring of the brush."""
        return " ".join((self.brush.__doc__ or "").split())


BIOMES: dict[str, Biome] = {}
"""The registered biomes by name: first the shipped ones in their order, then custom ones."""


def register_biome(biome: Biome) -> None:
    """Register a biome by its name for configurations, recipes and the map generator of this process.

    Raises `ConfigError` if the name is taken or is no identifier, or if `shares` names an unknown material.
    """
    if not biome.name.isidentifier():
        raise ConfigError(f"biome: name: expected letters, digits and underscores, got {biome.name!r}")
    if biome.name in BIOMES:
        raise ConfigError(f"biome {biome.name!r}: there is a biome with this name already")
    unknown = sorted(set(biome.shares) - {material.name for material in MATERIALS})
    if unknown:
        raise ConfigError(f"biome {biome.name!r}: shares: unknown materials: {', '.join(unknown)}")
    BIOMES[biome.name] = biome


def default_biomes() -> tuple[str, ...]:
    """The names of the biomes that maps use by default."""
    return tuple(name for name, biome in BIOMES.items() if biome.order is not None)
