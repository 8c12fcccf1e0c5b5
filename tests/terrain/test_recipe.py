"""Recipes: JSON in both directions, the same map again, and refusals with a reason."""

import dataclasses
import functools
import json
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env import scenarios
from echelon_env.config.battle import PACK, BattleConfig
from echelon_env.config.biomes import BIOMES
from echelon_env.config.map import MapConfig, TerrainConfig
from echelon_env.config.scenario import make_config
from echelon_env.terrain import GENERATOR_VERSION, Recipe, RecipeError, Terrain, generate

SHA = "0123456789abcdef" * 4


@pytest.mark.parametrize("name", scenarios())
def test_a_recipe_generates_the_same_map_from_its_json(name):
    terrain = generate(scenarios()[name].config, 7)
    recipe = Recipe.from_json(terrain.recipe.to_json())
    assert recipe == terrain.recipe
    again = Terrain.from_recipe(recipe)
    assert again.voxels.tobytes() == terrain.voxels.tobytes()
    assert again.spawns.tobytes() == terrain.spawns.tobytes()
    assert again.lanes.tobytes() == terrain.lanes.tobytes()
    assert (again.zone_x, again.zone_y, again.zone_radius) == (terrain.zone_x, terrain.zone_y, terrain.zone_radius)
    assert (again.biomes, again.seed, again.config) == (terrain.biomes, terrain.seed, terrain.config)
    assert again.content_hash == terrain.content_hash == recipe.content_hash


@st.composite
def recipes(draw):
    """Any valid recipe; its map need not exist."""
    roster = st.lists(st.sampled_from(PACK), min_size=1, max_size=20).map(tuple)
    config = BattleConfig(
        blue=draw(roster),
        red=draw(roster),
        terrain=TerrainConfig(
            size=draw(st.integers(150, 512)),
            height=draw(st.integers(8, 32)),
            biomes=tuple(draw(st.lists(st.sampled_from(sorted(BIOMES)), min_size=1))),
            centre_jitter=draw(st.floats(0, 0.3)),
            spawn_margin=draw(st.floats(0, 10)),
            max_spawn_distance=draw(st.floats(150, 1e6)),
            mirrored=draw(st.booleans()),
            max_distance_difference=draw(st.floats(0.01, 1)),
        ),
    )
    return Recipe(
        config=config.map_config,
        seed=draw(st.integers(0, 2**64 - 1)),
        generator=draw(st.integers(0, 2**31)),
        content_hash=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
    )


@given(recipe=recipes())
@settings(max_examples=30)
def test_json_keeps_every_recipe(recipe):
    """To the last bit of its numbers, in files that other programs can read."""
    text = recipe.to_json()
    assert Recipe.from_json(text) == recipe
    content = json.loads(text)
    assert content["seed"] == recipe.seed
    assert MapConfig.from_dict(content["config"]) == recipe.config
    assert Recipe.from_json(json.dumps(content, sort_keys=True)) == recipe


def test_the_content_hash_covers_everything_that_a_battle_uses_of_the_map():
    terrain = generate(make_config("duel"), 3)
    voxels, spawns = terrain.voxels.copy(), terrain.spawns.copy()
    voxels[0, 0, 0] += 1
    spawns[0, 0, 0] = np.nextafter(spawns[0, 0, 0], np.inf)
    changes = [{"voxels": voxels}, {"spawns": spawns}]
    changes += [{key: np.nextafter(getattr(terrain, key), np.inf)} for key in ("zone_x", "zone_y", "zone_radius")]
    changes.append({"voxels": terrain.voxels.reshape(10, 200, 100)})
    hashes = {dataclasses.replace(terrain, **change).content_hash for change in changes}
    assert len(hashes | {terrain.content_hash}) == len(changes) + 1
    assert dataclasses.replace(terrain, voxels=np.asfortranarray(terrain.voxels)).content_hash == terrain.content_hash


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("\0", "not JSON"),
        ("[]", "expected a mapping, got list"),
        ('{"seed": 1}', "keys are missing: generator, content_hash, config"),
        ("null", "got NoneType"),
        ('{"seed": Infinity}', "not JSON: expected finite numbers"),
        pytest.param("[" * 200_000, "not JSON", id="nested too deep"),
    ],
)
def test_other_texts_are_no_recipes(text, reason):
    with pytest.raises(RecipeError, match=f"recipe: .*{reason}"):
        Recipe.from_json(text)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("seed", 2**64, "'seed': expected a number from 0 to"),
        ("seed", 1.0, "'seed': expected int, got 1.0"),
        ("seed", True, "'seed': expected int, got True"),
        ("generator", "1", "'generator': expected int, got '1'"),
        ("content_hash", 3, "'content_hash': expected str, got 3"),
        ("content_hash", SHA.upper(), "content_hash: expected 64 hexadecimal digits"),
        ("content_hash", SHA + "\n", "content_hash: expected 64 hexadecimal digits"),
        ("config", 3, "'config': expected a mapping"),
        ("extra", 1, "unknown config key 'extra'"),
        ("config.terrain.size", 3, "terrain.size"),
        ("config.terrain.biomes", ["swamp"], "unknown biome 'swamp'"),
        ("config.terrain.colour", 1, "unknown config key 'config.terrain.colour'"),
        ("config.walker_widths", ["wide"], "walker_widths"),
    ],
)
def test_wrong_values_are_refused(path, value, reason):
    content = json.loads(generate(make_config("duel"), 0).recipe.to_json())
    *parts, key = path.split(".")
    functools.reduce(operator.getitem, parts, content)[key] = value
    with pytest.raises(RecipeError, match=f"recipe: .*{reason}"):
        Recipe.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"content_hash": SHA}, r"content hash .* expected"),
        ({"seed": 4}, r"content hash .* expected"),
        ({"config": make_config("pair-city").map_config}, r"content hash .* expected"),
        (
            {"generator": GENERATOR_VERSION + 1},
            f"seed 3: made by version {GENERATOR_VERSION + 1} .* this is version",
        ),
    ],
)
def test_recipes_of_another_map_or_version_make_none(change, reason):
    recipe = dataclasses.replace(generate(make_config("duel"), 3).recipe, **change)
    with pytest.raises(RecipeError, match=reason):
        Terrain.from_recipe(recipe)
