"""The maps that battles are trained on."""

from __future__ import annotations

import numpy as np

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_integer
from echelon_env.engine.maps import MAX_MAPS, MapPool, Maps, map_pool
from echelon_env.evaluate import EVALUATION_SEEDS, training_map_seed


def training_pool(maps: Maps, config: BattleConfig, seed: int) -> MapPool | None:
    """The pool of training maps, or None: a new map for every battle.

    Parameters
    ----------
    maps
        A number of maps, a directory of recipes, a `MapPool`, or None.
    config
        The battle that the maps are for.
    seed
        The run's seed; a number of maps is generated from it.

    Raises
    ------
    ConfigError
        For invalid maps, for maps that do not fit the battle, and for maps with one of `EVALUATION_SEEDS`.
    """
    if isinstance(maps, (int, np.integer)):
        count = check_integer("maps", maps)
        if count > MAX_MAPS:
            raise ConfigError(f"maps: expected 1 to {MAX_MAPS} maps, got {count}", "maps")
        return MapPool(config, [training_map_seed(seed, number) for number in range(count)])
    pool = map_pool(maps, config)
    reserved = [] if pool is None else [seed for seed in pool.seeds if seed in EVALUATION_SEEDS]
    if reserved:
        raise ConfigError(f"maps: seed {reserved[0]} in {maps!r} is reserved for evaluation", "maps")
    return pool
