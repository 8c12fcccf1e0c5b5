"""Biomes: one brush per biome, which fills a plot of the map with its materials."""

from echelon_env.terrain.biomes.barrens import BARRENS
from echelon_env.terrain.biomes.forest import FOREST
from echelon_env.terrain.biomes.plot import Biome, Brush, Plot
from echelon_env.terrain.biomes.urban import URBAN

BIOMES: dict[str, Biome] = {
    "urban": URBAN,
    "forest": FOREST,
    "barrens": BARRENS,
}
"""The biomes by name, those of `config.BIOMES`."""

__all__ = ["BIOMES", "Biome", "Brush", "Plot"]
