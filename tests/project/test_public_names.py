"""The public names of both packages: this list, the modules' `__all__` and docs/api.md change together."""

import importlib
import re

import pytest

from project.test_docs import PAGES, ROOT, load

PUBLIC = {
    "echelon_env": """
        BattleBatchEnv BattleConfig BattleEngine BattleEnv BattleVectorEnv ConfigError ControlledBattles Curriculum
        CurriculumEnv CurriculumParallelEnv MapPool NotResetError Progress Scenario __version__ env load_scenario
        make_config make_curriculum opponents parallel_env scenarios
    """,
    "echelon_env.envs": """
        BattleBatchEnv BattleEnv BattleParallelEnv BattleVectorEnv ControlledBattles CurriculumEnv
        CurriculumParallelEnv Event env parallel_env
    """,
    "echelon_env.config": """
        AIR BattleConfig CONCRETE Catalog CombatConfig ConfigError Curriculum CurriculumLike DEBRIS DEFAULT_CATALOG
        DIRT FOLIAGE GLASS HEAVY LAVA LIGHT MATERIALS MEDIUM MOUNTS MapConfig Material MechClass PhysicsConfig
        Progress REINFORCED REWARD_COMPONENTS RewardConfig SCOUT Scenario ScenarioLike SensorConfig TerrainConfig
        WATER WRECK Weapon ZoneConfig load_scenario make_config make_curriculum scenarios
    """,
    "echelon_env.layout": """
        ACTION_DIM Action Clock Comm Contact EgoCell Feature Intel MapCell Mask OBSERVATION_DIM Objective STREAMS
        Self Squad Stream Unit feature_names observation_bounds state_streams
    """,
    "echelon_env.spaces": """
        ActionDescription ActionFormat ActionPart BLOCKS FeatureDescription MASK_SIZE MASK_SLICES
        MULTI_DISCRETE_SIZES NEUTRAL_CHOICES ObservationFormat PARTS action_masks action_space describe_action
        describe_observation explain_action format_observations observation_space read_action split_mask
    """,
    "echelon_env.opponents": """
        FunctionPolicy Handicap LEVELS Mixture Policy PolicyFunction PolicyLike Resumable Scripted Skill make
    """,
    "echelon_env.wrappers": """
        AgentOneHot BlackDeath NormalizeObservations NormalizeRewards RunningMoments StackObservations
        TeamVersusPolicy TimeAwareObservation
    """,
    "echelon_env.evaluate": """
        BASELINES Battle BattleNoise EVALUATION_SEEDS Match Player SUITES Suite SuiteError SuiteScenario
        TRAINING_SEEDS baseline check_seeds evaluation_seed format_report freeze_suite load_suite play play_match
        stamp training_map_seed training_seed validation_seed
    """,
    "echelon_env.evaluate.cross_play": "CrossPlay PayoffMatrix cross_play",
    "echelon_env.evaluate.pictures": "save_intervals save_matrix",
    "echelon_env.evaluate.report": "format_report make_report write_report",
    "echelon_env.evaluate.statistics": """
        CONFIDENCE Interval interquartile_mean map_scores match_outcomes probability_of_improvement score_interval
        stratified_bootstrap wilson
    """,
    "echelon_env.testing": """
        ActionSampler CHECKS ConformanceError ConformanceWarning check_parallel_env check_vector_env sample_action
    """,
    "echelon_env.render": "render_ansi render_frame save_gif",
    "echelon_env.terrain": """
        Biome GENERATOR_VERSION Lane Plot Recipe RecipeError Terrain generate register_biome
    """,
    "echelon_env.engine": """
        BLUE BattleEngine DRAW EVENT_KINDS EVENT_MEANINGS MapPool Maps NotResetError REASONS RED STATISTICS
    """,
    "echelon_train": """
        BattlePolicy BattleVecEnv EchelonRecurrentPPO TrainConfig battle_config checkpoint_player load_checkpoint
        load_run_config resume train
    """,
    "echelon_train.config": """
        LeagueConfig NetworkConfig OpponentMixture PPOConfig RewardSchedules Schedule TrainConfig battle_config
        load_run_config quantity run_config_descriptions run_config_names training_curriculum
    """,
    "echelon_train.policy": """
        BattlePolicy CnnLstmPolicy HybridDistribution MlpLstmPolicy MultiInputLstmPolicy SequencePolicy action_space
        build_policy observation_space
    """,
    "echelon_train.ppo": "EchelonRecurrentPPO",
    "echelon_train.checkpoints": """
        Checkpoint TrainingState checkpoint_player find_checkpoint load_checkpoint load_training_state
        network_player save_checkpoint untrained_player
    """,
}
"""Module -> its public names; a name that is not here may change at any time. docs/api.md is generated from them."""

GENERATE = load(ROOT / "docs" / "generate.py")


def test_the_page_of_public_names_is_about_these_modules():
    assert list(GENERATE.PUBLIC_MODULES) == list(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_these_and_documented(name):
    module = importlib.import_module(name)
    assert sorted(module.__all__) == PUBLIC[name].split()
    undocumented = [public for public, summary in GENERATE.summaries(module).items() if not summary]
    assert not undocumented


def test_pages_and_examples_import_public_names_only():
    texts = [page.read_text() for page in (*PAGES, *(ROOT / "examples").glob("*.[ip]*"))]
    imports = [found for text in texts for found in re.findall(r"from (echelon_env[\w.]*) import ([\w, ]+)", text)]
    assert imports
    for module, names in imports:
        assert {name.split()[0] for name in names.split(",")} <= {*PUBLIC.get(module, "").split()}, f"{module}: {names}"
