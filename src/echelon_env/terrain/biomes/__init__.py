"""Biomes: one module each, with a brush that fills a plot of the map."""

from __future__ import annotations

import importlib
import math
import pkgutil

from echelon_env.config.biomes import BIOMES, Biome, Plot, register_biome


def _register_all() -> None:
    """Register every `Biome` that a module of this package defines, sorted by `Biome.order`."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    biomes = [value for module in modules for value in vars(module).values() if isinstance(value, Biome)]
    for biome in sorted(biomes, key=lambda biome: math.inf if biome.order is None else biome.order):
        register_biome(biome)


_register_all()

__all__ = ["BIOMES", "Biome", "Plot", "register_biome"]
