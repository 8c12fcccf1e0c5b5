"""Maps: from a seed to voxels, spawn places and a zone."""

from echelon_env.terrain.biomes import Biome, Plot, register_biome
from echelon_env.terrain.generator import Lane, Terrain, generate
from echelon_env.terrain.recipe import GENERATOR_VERSION, Recipe, RecipeError

__all__ = [
    "GENERATOR_VERSION",
    "Biome",
    "Lane",
    "Plot",
    "Recipe",
    "RecipeError",
    "Terrain",
    "generate",
    "register_biome",
]
