"""Maps: from a seed to voxels, spawn places and a zone."""

from echelon_env.terrain.generate import Terrain, generate

__all__ = ["Terrain", "generate"]
