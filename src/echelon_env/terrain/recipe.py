"""Recipes: they identify a map and generate it again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import cast

from echelon_env.config.map import MapConfig
from echelon_env.config.schema import ConfigError, build, check_fields, measure, to_plain
from echelon_env.storage.reading import parse_json

GENERATOR_VERSION = 1
"""Version of the generator's behaviour. Every change after which a seed gives another map increments it."""


class RecipeError(ConfigError):
    """Raised for an invalid recipe, or one that does not generate the map that it was written for."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The identity of a map. `Terrain.recipe` returns it, `Terrain.from_recipe` generates the map again.

    Raises `ConfigError` for invalid values.
    """

    seed: int = measure("", 0, 2**64 - 1)
    generator: int = measure("", 0, 2**31)  # GENERATOR_VERSION of the code that made the map
    content_hash: str  # SHA-256 of the map, see `Terrain.content_hash`
    config: MapConfig

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not re.fullmatch("[0-9a-f]{64}", self.content_hash):
            raise ConfigError(f"content_hash: expected 64 hexadecimal digits, got {self.content_hash!r}")

    def check_version(self) -> None:
        """Raise `RecipeError` unless this version of the generator wrote the recipe."""
        if self.generator != GENERATOR_VERSION:
            raise RecipeError(
                f"recipe of seed {self.seed}: made by version {self.generator} of the generator, but this is version "
                f"{GENERATOR_VERSION}, which makes other maps"
            )

    def to_json(self) -> str:
        """The recipe as JSON."""
        return json.dumps(to_plain(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The inverse of `to_json`. Raises `RecipeError` for anything that is not a recipe."""
        try:
            return cast("Recipe", build(cls, parse_json(text), ""))
        except ConfigError as error:
            raise RecipeError(f"recipe: {error}") from None
        except ValueError as error:
            raise RecipeError(f"recipe: not JSON: {error}") from None
