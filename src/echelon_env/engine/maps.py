"""The map of a battle: a new one, or one of a pool."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.map import MapConfig
from echelon_env.config.scenario import ScenarioLike, make_config
from echelon_env.config.schema import ConfigError, check_integer, check_seed
from echelon_env.engine.rng import episode_seed
from echelon_env.terrain import Recipe, RecipeError, Terrain, generate

MOST_MAPS = 10**6
MOST_TABLES = 4
"""Tables of materials whose packed columns a pool keeps."""


class Packed(NamedTuple):
    """What an engine makes of a map when a battle begins."""

    columns: NDArray[np.uint8]
    """(1, bytes) of the battle's columns, read-only once it is kept."""
    num_hazards: int
    """Voxels that are hazards."""


class MapPool:
    """A fixed set of maps that battles are fought on; made when they are first asked for, then kept.

    The rule by which a seed chooses a map: number ``episode_seed(seed, 1) % len(pool)``, a hash of the seed. A pool can
    be shared by any number of environments and threads; a kept map takes size x size x height bytes (200 kB by
    default), and size x size x 12 (120 kB) more for each of the newest few catalogues of materials with which a battle
    has been fought on it. Copies are the pool itself, and a pickle holds only what the maps are made from.

    Parameters
    ----------
    scenario
        The battles that the maps are for: a scenario's name or file, a `BattleConfig` or its dict.
    seeds
        Seeds of the maps, all different, at least one.
    hashes
        The content hashes that the maps must have, by seed; those that are not named may have any.

    Raises
    ------
    ConfigError
        For an impossible scenario, no seeds, or twice the same.
    ValueError
        For a seed that is no integer in [0, 2**64).
    """

    def __init__(
        self, scenario: ScenarioLike | MapConfig, seeds: Sequence[int], hashes: Mapping[int, str] | None = None
    ) -> None:
        self.config = scenario if isinstance(scenario, MapConfig) else make_config(scenario).map_config
        if not isinstance(seeds, Sequence):
            raise ConfigError(f"maps: expected a sequence of seeds, got {seeds!r}; MapPool.generate takes a number")
        self.seeds = tuple(check_seed(seed) for seed in seeds)
        if not 1 <= len(self.seeds) <= MOST_MAPS:
            raise ConfigError(f"maps: expected 1 to {MOST_MAPS} maps, got {len(self.seeds)}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("maps: expected different seeds, got some of them twice")
        self._hashes = dict(hashes or {})
        self._kept: dict[int, Terrain] = {}
        self._recalled: dict[int, str] = {}
        self._packed: dict[bytes, dict[int, Packed]] = {}  # by table of materials, the newest last, and by seed

    @classmethod
    def generate(cls, scenario: ScenarioLike | MapConfig, count: int, seed: int = 0) -> MapPool:
        """A pool of `count` maps whose seeds follow from `seed`. Raises `ConfigError` and ValueError."""
        check_seed(seed)
        count = check_integer("maps", count)
        if count > MOST_MAPS:
            raise ConfigError(f"maps: expected 1 to {MOST_MAPS} maps, got {count}")
        return cls(scenario, [episode_seed(seed, number + 1) for number in range(count)])

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> MapPool:
        """The pool of the maps whose recipes are the JSON files of a directory, in the order of their names.

        Raises `ConfigError`, naming the file, for a directory without recipes, a file that is no recipe, recipes of
        another version of the generator, and recipes whose configurations differ. That a map still is the recipe's is
        checked when it is first made: `RecipeError`.
        """
        files = sorted(Path(directory).glob("*.json"))
        if not files:
            raise ConfigError(f"maps: no recipes (*.json) in {os.fspath(directory)!r}")
        recipes = [_read_recipe(file) for file in files]
        for file, recipe in zip(files, recipes, strict=True):
            if recipe.config != recipes[0].config:
                difference = _difference(recipes[0].config, recipe.config)
                raise ConfigError(f"maps: {file} and {files[0]} are of different battles: {difference}")
        by_seed: dict[int, Path] = {}
        for file, recipe in zip(files, recipes, strict=True):
            if by_seed.setdefault(recipe.seed, file) != file:
                raise ConfigError(f"maps: {file} and {by_seed[recipe.seed]} are of the same map")
        return cls(recipes[0].config, list(by_seed), {recipe.seed: recipe.content_hash for recipe in recipes})

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, number: int) -> Terrain:
        """Map `number`. Raises IndexError, and `RecipeError` if it is not what its recipe says."""
        seed = self.seeds[operator.index(number)]
        if seed not in self._kept:
            terrain = generate(self.config, seed)
            if seed in self._hashes:
                terrain.check_content(self._hashes[seed])
            self._kept[seed] = terrain
        return self._kept[seed]

    @property
    def content_hashes(self) -> frozenset[str]:
        """Content hashes of the maps that have been made so far."""
        return frozenset(self.made.values())

    @property
    def made(self) -> dict[int, str]:
        """Content hashes by seed of the maps that have been made so far, here or in the past that it `recall`s."""
        kept = {seed: terrain.content_hash for seed, terrain in list(self._kept.items())}
        return self._recalled | kept

    def recall(self, made: Mapping[int, str]) -> None:
        """Count maps, content hashes by seed, as made; when they are made again, they must have these hashes.

        Raises `ConfigError`, with nothing changed, for a seed that is none of the pool's, and `RecipeError` where it is
        known that the map has another hash.
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
        """The number of the map that a seed chooses."""
        return episode_seed(seed, 1) % len(self.seeds)

    def packed(self, materials: bytes, seed: int) -> Packed | None:
        """What an engine with a table of materials has kept of the map of a seed; None where none has."""
        return self._packed.get(materials, {}).get(seed)

    def keep_packed(self, materials: bytes, seed: int, packed: Packed) -> None:
        """Keep, for engines with a table of materials, what one of them has made of the map of a seed."""
        packed.columns.setflags(write=False)
        self._packed.setdefault(materials, {})[seed] = packed
        for oldest in list(self._packed)[:-MOST_TABLES]:  # a list, as other threads may keep something meanwhile
            self._packed.pop(oldest, None)

    def check_fits(self, config: BattleConfig) -> None:
        """Raise `ConfigError` unless battles of a configuration can be fought on the pool's maps."""
        if self.config != config.map_config:
            difference = _difference(config.map_config, self.config)
            raise ConfigError(f"maps: the pool's maps are not for this battle: {difference}")

    def __copy__(self) -> MapPool:
        return self

    def __deepcopy__(self, memo: Any) -> MapPool:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}, "_packed": {}, "_recalled": {}}

    def __repr__(self) -> str:
        return f"MapPool({len(self)} maps of {self.config.terrain.size} m)"


Maps = int | str | os.PathLike[str] | MapPool | None
"""What names the maps of battles: how many, a directory of recipes, a pool; None for a new map in every battle."""


def map_seed(seed: int, episode: int, regenerate: int) -> int:
    """Map seed of a place's k-th battle where every `regenerate`-th brings a new map: that of the battle that did."""
    return episode_seed(seed, episode - episode % regenerate)


def map_pool(maps: Maps, config: BattleConfig) -> MapPool | None:
    """The pool that `maps` stands for. Raises `ConfigError` if it is none, or does not fit the battle."""
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
        recipe = Recipe.from_json(file.read_text(encoding="utf-8"))
        recipe.check_version()
    except OSError as error:
        raise ConfigError(f"maps: {file}: {error.strerror}") from None
    except (RecipeError, UnicodeDecodeError) as error:
        raise ConfigError(f"maps: {file}: {error}") from None
    return recipe


def _difference(expected: MapConfig, found: MapConfig) -> str:
    """The first key in which two configurations differ, with both values."""
    plain, other = _flat(expected.to_dict()), _flat(found.to_dict())
    key = next(key for key in plain if plain[key] != other[key])
    return f"{key}: expected {plain[key]}, got {other[key]}"


def _flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    terrain = {f"terrain.{key}": value for key, value in tree["terrain"].items()}
    return terrain | {key: value for key, value in tree.items() if key != "terrain"}
