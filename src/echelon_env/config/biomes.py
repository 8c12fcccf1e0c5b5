"""What a biome is, and the registry of biomes, which the modules of `echelon_env.terrain.biomes` and users fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.catalog import MATERIALS
from echelon_env.config.schema import ConfigError


@dataclass(frozen=True)
class Plot:
    """A rectangular part of the map, H x W columns, that a brush fills."""

    voxels: NDArray[np.uint8]  # (Z, H, W) a view of the map's material codes, all air
    open_ground: NDArray[np.bool_]  # (H, W) columns that will be cleared after painting
    max_height: int  # m, greatest height of anything that is painted

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.open_ground.shape[0], self.open_ground.shape[1]


Brush = Callable[[Plot, np.random.Generator], None]


@dataclass(frozen=True, kw_only=True)
class Biome:
    """A kind of terrain: its name, how it is painted, and what a map of it alone is made of.

    `shares` are the least and the greatest share of such a map's columns that hold a voxel of each material, lanes and
    zone included. It has no voxels of other materials, except for the dirt of lanes and the concrete and reinforced
    blocks in the zone.
    """

    name: str
    brush: Brush
    shares: Mapping[str, tuple[float, float]]
    order: int | None = None  # place among the biomes that maps are made of by default; None: only where it is named

    @property
    def summary(self) -> str:
        """What the biome is and what it teaches: the brush's docstring."""
        return " ".join((self.brush.__doc__ or "").split())


BIOMES: dict[str, Biome] = {}
"""The registered biomes by name: the game's in their order, then the custom ones."""


def register_biome(biome: Biome) -> None:
    """Make a biome known by its name to configurations, recipes and the map generator of this process.

    Raises `ConfigError` if the name is taken or if `shares` names an unknown material.
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
    """The names of the biomes that maps are made of by default."""
    return tuple(name for name, biome in BIOMES.items() if biome.order is not None)
