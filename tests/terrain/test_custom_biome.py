"""A custom biome is one module, without an edit of the package."""

import dataclasses
from unittest import mock

import numpy as np
import pytest

from echelon_env import ConfigError, make_config
from echelon_env.config.biomes import BIOMES, default_biomes
from echelon_env.config.catalog import FOLIAGE, WATER
from echelon_env.terrain import Biome, Plot, Recipe, RecipeError, Terrain, generate, register_biome


def swamp(plot: Plot, rng: np.random.Generator) -> None:
    """Water everywhere, and reeds that hide wading mechs."""
    plot.voxels[0] = WATER
    plot.voxels[1, rng.random(plot.shape) < 0.3] = FOLIAGE


def gardens(plot: Plot, rng: np.random.Generator) -> None:
    plot.voxels[1, rng.random(plot.shape) < 0.3] = FOLIAGE


@pytest.fixture
def registered():
    with mock.patch.dict(BIOMES):
        register_biome(Biome(name="swamp", brush=swamp, shares={"water": (0.3, 1.0), "foliage": (0.05, 0.4)}))
        yield


@pytest.fixture
def config(registered):
    return make_config("duel", terrain={"biomes": ("swamp", "urban")})


def test_a_map_of_a_registered_biome_comes_from_its_brush_and_its_recipe_makes_it_again(config):
    terrain = next(terrain for terrain in map(generate, [config] * 9, range(9)) if "swamp" in terrain.biomes)
    assert (terrain.voxels[0] == WATER).mean() > 0.05
    assert Terrain.from_recipe(Recipe.from_json(terrain.recipe.to_json())).content_hash == terrain.content_hash


@pytest.mark.parametrize(
    ("height", "material", "message"),
    [
        (slice(None), 1, r"'swamp': its brush painted above plot\.max_height, \d+ m"),
        (0, 200, "'swamp': .* painted 200"),
    ],
)
def test_what_a_brush_must_not_paint(config, height, material, message):
    def brush(plot, rng):
        plot.voxels[height] = material

    BIOMES["swamp"] = dataclasses.replace(BIOMES["swamp"], brush=brush)
    with pytest.raises(ConfigError, match=message):
        generate(make_config(config, terrain={"biomes": ("swamp",)}), 3)


def test_maps_of_configurations_without_it_do_not_change(registered):
    assert tuple(BIOMES)[:-1] == default_biomes() == make_config("battle").terrain.biomes


def test_a_recipe_is_refused_if_the_biome_is_unknown_or_paints_differently(config):
    recipe = generate(make_config(config, terrain={"biomes": ("swamp",)}), 3).recipe
    del BIOMES["swamp"]
    with pytest.raises(RecipeError, match="unknown biome 'swamp'"):
        Recipe.from_json(recipe.to_json())
    register_biome(Biome(name="swamp", brush=gardens, shares={}))
    with pytest.raises(RecipeError, match="content hash"):
        Terrain.from_recipe(recipe)


@pytest.mark.parametrize(
    ("name", "shares", "message"),
    [
        ("urban", {}, "'urban': there is a biome with this name"),
        ("my swamp", {}, "expected letters, digits and underscores, got 'my swamp'"),
        ("bog", {"peat": (0, 1)}, "'bog': shares: unknown materials: peat"),
    ],
)
def test_invalid_biomes_cannot_be_registered(name, shares, message):
    with pytest.raises(ConfigError, match=message):
        register_biome(Biome(name=name, brush=swamp, shares=shares))
