"""The maps of battles: a new one for each, or those of a pool."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.map import MapConfig
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.schema import ConfigError, check_integer, check_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.storage.reading import read_regular_file
from echelon_env.terrain import Recipe, RecipeError, Terrain, generate

MAX_RECIPE_BYTES = 1_000_000
MAX_MAPS = 10**6
MAX_TABLES = 4
"""Most material tables for which a pool keeps packed columns."""


Packed = Mapping[str, NDArray[np.uint8]]
"""What an engine computes from a map at the start of a battle: the bytes of its row, by the name of the state's array.

``battles`` has all of a BATTLE that follows from the map. The arrays are read-only once kept.
"""


class MapPool:
    """A fixed set of maps for battles. Each map is generated on first use and then kept.

    A seed selects the map with the number ``episode_seed(seed, 1) % len(pool)``, a hash of the seed. Any number of
    environments and threads can share a pool. A kept map takes size x size x height bytes (200 kB by default), and
    size x size x 12.5 (125 kB) more for each of the latest material catalogues that battles on it have used. A copy is
    the pool itself. A pickle holds only what the maps are generated from.

    Parameters
    ----------
    scenario
        The battles that the maps are for: a scenario's name or file, a `BattleConfig` or its dict.
    seeds
        Seeds of the maps, all different, at least one.
    hashes
        The content hashes that the maps must have, by seed. Maps without an entry may have any.

    Raises
    ------
    ConfigError
        For an invalid scenario, no seeds, or a repeated seed.
    ValueError
        For a seed that is not an integer in [0, 2**64).
    """

    def __init__(
        self, scenario: ScenarioLike | MapConfig, seeds: Sequence[int], hashes: Mapping[int, str] | None = None
    ) -> None:
        self.config = scenario if isinstance(scenario, MapConfig) else make_config(scenario).map_config
        if not isinstance(seeds, Sequence):
            raise ConfigError(f"maps: expected a sequence of seeds, got {seeds!r}; MapPool.generate takes a number")
        self.seeds = tuple(check_seed(seed) for seed in seeds)
        if not 1 <= len(self.seeds) <= MAX_MAPS:
            raise ConfigError(f"maps: expected 1 to {MAX_MAPS} maps, got {len(self.seeds)}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("maps: expected different seeds, got some of them twice")
        self._hashes = dict(hashes or {})
        self._kept: dict[int, Terrain] = {}
        self._recalled: dict[int, str] = {}
        self._packed: dict[bytes, dict[int, Packed]] = {}  # by table of materials (newest last), then by seed

    @classmethod
    def generate(cls, scenario: ScenarioLike | MapConfig, count: int, seed: int = 0) -> MapPool:
        """A pool of `count` maps whose seeds are derived from `seed`. Raises `ConfigError` and ValueError."""
        check_seed(seed)
        count = check_integer("maps", count)
        if count > MAX_MAPS:
            raise ConfigError(f"maps: expected 1 to {MAX_MAPS} maps, got {count}")
        return cls(scenario, [episode_seed(seed, number + 1) for number in range(count)])

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> MapPool:
        """The pool of the recipes in a directory (its JSON files, in the order of their names).

        Raises `ConfigError`, naming the file, for a directory without recipes, an invalid recipe, recipes of another
        version of the generator, and recipes with different configurations. Whether a generated map matches its recipe
        is checked on first use: `RecipeError`.
        """
        files = sorted(Path(directory).glob("*.json"))
        if not files:
            raise ConfigError(f"maps: no recipes (*.json) in {os.fspath(directory)!r}")
        recipes = [_read_recipe(file) for file in files]
        for file, recipe in zip(files, recipes, strict=True):
            if recipe.config != recipes[0].config:
                different = difference(recipes[0].config.to_dict(), recipe.config.to_dict())
                raise ConfigError(f"maps: {file} and {files[0]} are of different battles: {different}")
        by_seed: dict[int, Path] = {}
        for file, recipe in zip(files, recipes, strict=True):
            if by_seed.setdefault(recipe.seed, file) != file:
                raise ConfigError(f"maps: {file} and {by_seed[recipe.seed]} are of the same map")
        return cls(recipes[0].config, list(by_seed), {recipe.seed: recipe.content_hash for recipe in recipes})

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, number: int) -> Terrain:
        """Map `number`. Raises IndexError, and `RecipeError` if the map does not match its recipe."""
        seed = self.seeds[operator.index(number)]
        if seed not in self._kept:
            terrain = generate(self.config, seed)
            if seed in self._hashes:
                terrain.check_content(self._hashes[seed])
            self._kept[seed] = terrain
        return self._kept[seed]

    @property
    def content_hashes(self) -> frozenset[str]:
        """Content hashes of the maps that have been generated so far."""
        return frozenset(self.made.values())

    @property
    def made(self) -> dict[int, str]:
        """Content hashes by seed of the maps that have been generated so far, including those passed to `recall`."""
        kept = {seed: terrain.content_hash for seed, terrain in list(self._kept.items())}
        return self._recalled | kept

    def recall(self, made: Mapping[int, str]) -> None:
        """Count maps (content hashes by seed) as generated. When they are generated again they must have these hashes.

        Raises `ConfigError`, with nothing changed, for a seed that is not in the pool, and `RecipeError` if the map is
        known to have another hash.
        """
        known = self._hashes | self.made
        seeds = set(self.seeds)
        for seed, content_hash in made.items():
            if seed not in seeds:
                raise ConfigError(f"maps: seed {seed} is none of the pool's {len(self)}")
            if known.get(seed, content_hash) != content_hash:
                raise RecipeError(
                    f"maps: seed {seed}: expected a map with the content hash {known[seed]}, got {content_hash}"
                )
        self._hashes |= made
        self._recalled |= made

    def number_of(self, seed: int) -> int:
        """The number of the map that a seed selects."""
        return episode_seed(seed, 1) % len(self.seeds)

    def packed(self, materials: bytes, seed: int) -> Packed | None:
        """What has been kept for a table of materials and the map of a seed, or None."""
        return self._packed.get(materials, {}).get(seed)

    def keep_packed(self, materials: bytes, seed: int, packed: Packed) -> None:
        """Keep what an engine with a table of materials has computed from the map of a seed."""
        for array in packed.values():
            array.setflags(write=False)
        self._packed.setdefault(materials, {})[seed] = packed
        for oldest in list(self._packed)[:-MAX_TABLES]:  # a copy: other threads may add tables meanwhile
            self._packed.pop(oldest, None)

    def check_fits(self, config: BattleConfig) -> None:
        """Raise `ConfigError` unless the pool's maps suit battles of a configuration."""
        if self.config != config.map_config:
            different = difference(config.map_config.to_dict(), self.config.to_dict())
            raise ConfigError(f"maps: the pool's maps are not for this battle: {different}")

    def __copy__(self) -> MapPool:
        return self

    def __deepcopy__(self, memo: Any) -> MapPool:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}, "_packed": {}, "_recalled": {}}

    def __repr__(self) -> str:
        return f"MapPool({len(self)} maps of {self.config.terrain.size} m)"


Maps = int | str | os.PathLike[str] | MapPool | None
"""Which maps battles use: a number of maps, a directory of recipes, a pool, or None for a new map in every battle."""


def map_seed(seed: int, episode: int, regenerate: int) -> int:
    """Map seed of a slot's battle number `episode`, if every `regenerate`-th battle brings a new map."""
    return episode_seed(seed, episode - episode % regenerate)


def map_pool(maps: Maps, config: BattleConfig) -> MapPool | None:
    """The pool for a `maps` argument, or None. Raises `ConfigError` if it is invalid or does not suit the battle."""
    if maps is None:
        return None
    if isinstance(maps, MapPool):
        pool = maps
    elif isinstance(maps, (str, os.PathLike)):
        pool = MapPool.load(maps)
    else:
        pool = MapPool.generate(config, maps)
    pool.check_fits(config)
    return pool


def _read_recipe(file: Path) -> Recipe:
    try:
        recipe = Recipe.from_json(read_regular_file(file, MAX_RECIPE_BYTES).decode())
        recipe.check_version()
    except OSError as error:
        raise ConfigError(f"maps: {file}: {error.strerror}") from None
    except ValueError as error:  # of the file, its encoding or its contents
        raise ConfigError(f"maps: {file}: {error}") from None
    return recipe


def difference(expected: Any, found: Any) -> str:
    """The first key in which two configurations as plain data differ, with both values; empty if they are equal."""
    own, other = dict(_leaves(expected)), dict(_leaves(found))
    keys = (key for key in [*own, *other] if own.get(key) != other.get(key))
    return next((f"{key}: expected {own.get(key)!r}, got {other.get(key)!r}" for key in keys), "")


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values of nested data with their dotted keys."""
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else None
    if parts is None:
        yield path, tree
        return
    for key, value in parts:
        yield from _leaves(value, f"{path}.{key}" if path else str(key))
