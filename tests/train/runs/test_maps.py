"""The maps that runs train on; evaluation never uses them."""

import dataclasses

import pytest

from echelon_env import ConfigError
from echelon_env.evaluate import evaluation_seed
from echelon_env.evaluate.networks import checkpoint_player
from echelon_env.terrain import generate
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.train import training_curriculum
from echelon_train.runs.building import training_maps
from echelon_train.runs.evaluation import evaluate
from echelon_train.runs.training import train
from train.small import small_battle, small_run


def test_a_checkpoint_knows_the_maps_it_was_trained_on(tmp_path, quiet):
    result = train(small_run(maps=3), tmp_path / "run", console=quiet)
    checkpoint = load_checkpoint(result.checkpoint)
    pool = training_maps(small_run(maps=3))
    made = {pool[number].content_hash for number in range(3)}
    assert checkpoint.trained_maps
    assert checkpoint.trained_maps <= made
    player = checkpoint_player(tmp_path / "run")
    assert player.trained_maps == checkpoint.trained_maps
    result = evaluate(player, "trivial", small_run().battle, num_battles=6, seed=0)
    assert (result.maps, result.maps_trained_on, result.trained_maps) == (3, 0, len(checkpoint.trained_maps))


def test_a_directory_of_recipes_can_be_trained_on(tmp_path, quiet):
    config = small_run()
    recipes = tmp_path / "maps"
    recipes.mkdir()
    terrain = generate(config.battle, 7)
    (recipes / "7.json").write_text(terrain.recipe.to_json())
    result = train(dataclasses.replace(config, maps=str(recipes)), tmp_path / "run", console=quiet)
    assert load_checkpoint(result.checkpoint).trained_maps == {terrain.content_hash}


def test_recipes_are_checked_before_training(tmp_path, quiet):
    config = small_run()
    recipe = generate(config.battle, 7).recipe
    recipes = tmp_path / "maps"
    recipes.mkdir()
    (recipes / "7.json").write_text(dataclasses.replace(recipe, content_hash="0" * 64).to_json())
    with pytest.raises(ConfigError, match="recipe of seed 7: the map that it makes here has"):
        train(dataclasses.replace(config, maps=str(recipes)), tmp_path / "run", console=quiet)
    judged = generate(config.battle, evaluation_seed(0, 0)).recipe
    (recipes / "7.json").write_text(judged.to_json())
    with pytest.raises(ConfigError, match=f"seed {judged.seed} in .* is reserved for evaluation"):
        train(dataclasses.replace(config, maps=str(recipes)), tmp_path / "run", console=quiet)
    assert not (tmp_path / "run").exists()


def test_maps_that_do_not_fit_are_refused_before_anything_is_computed(tmp_path, quiet):
    with pytest.raises(ConfigError, match=r"no recipes \(\*.json\) in 'nowhere'"):
        train(small_run(maps="nowhere"), tmp_path / "run", console=quiet)
    curriculum = training_curriculum([small_battle(), small_battle("skirmish")])
    with pytest.raises(ConfigError, match="at most 20000 in all stages, got 2 x 10001"):
        small_run(maps=10_001, curriculum=curriculum, battle=curriculum.scenarios[0].config)
    with pytest.raises(ConfigError, match="stages of a curriculum have different maps"):
        small_run(maps="somewhere", curriculum=curriculum, battle=curriculum.scenarios[0].config)
