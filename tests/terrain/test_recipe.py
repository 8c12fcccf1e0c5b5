"""Recipes: JSON in both directions, the same map again, and refusals with a reason."""

import dataclasses
import json

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
@settings(max_examples=100)
def test_json_keeps_every_recipe(recipe):
    """To the last bit of its numbers, in files that other programs can read."""
    text = recipe.to_json()
    assert Recipe.from_json(text) == recipe
    content = json.loads(text)
    assert content["seed"] == recipe.seed
    assert MapConfig.from_dict(content["config"]) == recipe.config
    assert Recipe.from_json(json.dumps(content, sort_keys=True)) == recipe


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.long
@given(recipe=recipes(), key=st.sampled_from(["seed", "generator", "content_hash", "config"]), value=json_values)
@settings(max_examples=200)
def test_any_other_value_is_a_valid_recipe_or_refused(recipe, key, value):
    content = json.loads(recipe.to_json())
    content[key] = value
    text, reason = json.dumps(content), None
    try:
        other = Recipe.from_json(text)
    except RecipeError as error:
        reason = str(error)
    if reason is None:
        assert Recipe.from_json(other.to_json()) == other
    else:
        assert reason.startswith("recipe: ") and key in reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("\0", "not JSON"),
        ("seed = 1", "not JSON"),
        ("[]", "expected the keys .* got list"),
        ("{}", "expected the keys .* got \\[\\]"),
        ('{"seed": 1}', "expected the keys .* got \\['seed'\\]"),
        ("1", "got int"),
        ("null", "got NoneType"),
        ('{"seed": Infinity}', "expected finite numbers"),
        pytest.param("[" * 200_000, "not JSON", id="nested too deep"),
    ],
)
def test_non_recipes_are_refused(text, reason):
    with pytest.raises(RecipeError, match=reason):
        Recipe.from_json(text)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("seed", -1, "seed: expected an integer from 0"),
        ("seed", 2**64, "seed: expected an integer from 0"),
        ("seed", 1.0, "seed: expected an integer"),
        ("seed", True, "seed: expected an integer"),
        ("seed", None, "seed: expected an integer"),
        ("generator", "1", "generator: expected an integer"),
        ("content_hash", "abc", "content_hash: expected 64 hexadecimal digits"),
        ("content_hash", SHA.upper(), "content_hash: expected 64 hexadecimal digits"),
        ("content_hash", SHA + "\n", "content_hash: expected 64 hexadecimal digits"),
        ("config", 3, "config: .*expected a mapping"),
        ("config", {}, "config: "),
        ("extra", 1, "expected the keys"),
    ],
)
def test_wrong_values_are_refused(key, value, reason):
    content = json.loads(generate(make_config("duel"), 0).recipe.to_json())
    content[key] = value
    with pytest.raises(RecipeError, match=reason):
        Recipe.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("terrain", "size"), 3, "terrain.size"),
        (("terrain", "biomes"), ["swamp"], "unknown biome 'swamp'"),
        (("terrain", "colour"), 1, "unknown config key 'terrain.colour'"),
        (("places",), 0, "places"),
        (("walker_widths",), 2.5, "walker_widths"),
        (("walker_widths",), ["wide"], "walker_widths"),
        (("mech_width",), "wide", "mech_width"),
    ],
)
def test_impossible_map_configurations_are_refused(path, value, reason):
    content = json.loads(generate(make_config("duel"), 0).recipe.to_json())
    part = content["config"]
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(RecipeError, match=f"recipe: config: .*{reason}"):
        Recipe.from_json(json.dumps(content))


def test_recipes_of_another_version_are_refused():
    recipe = dataclasses.replace(generate(make_config("duel"), 3).recipe, generator=GENERATOR_VERSION + 1)
    with pytest.raises(RecipeError, match=f"seed 3: made by version {GENERATOR_VERSION + 1} .* this is version"):
        Terrain.from_recipe(Recipe.from_json(recipe.to_json()))


@pytest.mark.parametrize(
    "change", [{"content_hash": SHA}, {"seed": 4}, {"config": make_config("pair-city").map_config}]
)
def test_recipes_of_another_map_are_refused(change):
    recipe = dataclasses.replace(generate(make_config("duel"), 3).recipe, **change)
    with pytest.raises(RecipeError, match=r"content hash .* expected"):
        Terrain.from_recipe(recipe)


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
