"""Recipes: they identify a map and generate it again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from echelon_env.config.map import MapConfig
from echelon_env.config.schema import ConfigError
from echelon_env.storage.reading import parse_json

GENERATOR_VERSION = 1
"""Version of the generator's behaviour. Every change after which a seed gives another map increments it."""

_KEYS = ("config", "content_hash", "generator", "seed")


class RecipeError(ConfigError):
    """Raised for an invalid recipe, or one that does not generate the map that it was written for."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The identity of a map. `Terrain.recipe` returns it, `Terrain.from_recipe` generates the map again."""

    config: MapConfig
    seed: int
    generator: int  # GENERATOR_VERSION of the code that made the map
    content_hash: str  # SHA-256 of the map, see `Terrain.content_hash`

    def __post_init__(self) -> None:
        for name, most in (("seed", 2**64 - 1), ("generator", 2**31)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise RecipeError(f"recipe: {name}: expected an integer from 0 to {most}, got {value!r}")
        if not isinstance(self.content_hash, str) or not re.fullmatch("[0-9a-f]{64}", self.content_hash):
            raise RecipeError(f"recipe: content_hash: expected 64 hexadecimal digits, got {self.content_hash!r}")

    def check_version(self) -> None:
        """Raise `RecipeError` unless this version of the generator wrote the recipe."""
        if self.generator != GENERATOR_VERSION:
            raise RecipeError(
                f"recipe of seed {self.seed}: made by version {self.generator} of the generator, but this is version "
                f"{GENERATOR_VERSION}, which makes other maps"
            )

    def to_json(self) -> str:
        """The recipe as JSON."""
        content: dict[str, Any] = {
            "seed": self.seed,
            "generator": self.generator,
            "content_hash": self.content_hash,
            "config": self.config.to_dict(),
        }
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """The inverse of `to_json`. Raises `RecipeError` for anything that is not a recipe."""
        try:
            content = parse_json(text)
        except ValueError as error:
            raise RecipeError(f"recipe: not JSON: {error}") from None
        if not isinstance(content, dict) or sorted(content) != list(_KEYS):
            found = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise RecipeError(f"recipe: expected the keys {list(_KEYS)}, got {found}")
        try:
            config = MapConfig.from_dict(content.pop("config"))
        except ConfigError as error:
            raise RecipeError(f"recipe: config: {error}") from None
        return cls(config=config, **content)
