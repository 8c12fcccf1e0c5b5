"""BenchMARL: training and evaluation on `EchelonTask`, without further glue."""

import pytest
from benchmarl.algorithms import IppoConfig, MappoConfig, QmixConfig
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig

from echelon_env import ConfigError
from echelon_env.interop.benchmarl import EchelonTask

pytestmark = pytest.mark.filterwarnings("ignore")  # BenchMARL's, of TorchRL and of hydra


def train(task, algorithm, folder, frames=200):
    config = ExperimentConfig.get_from_yaml()
    config.max_n_iters, config.max_n_frames, config.loggers = 2, None, ["csv"]
    config.on_policy_collected_frames_per_batch, config.on_policy_n_envs_per_worker = frames, 2
    config.on_policy_minibatch_size, config.on_policy_n_minibatch_iters = frames // 2, 2
    config.off_policy_collected_frames_per_batch, config.off_policy_n_envs_per_worker = frames, 2
    config.off_policy_n_optimizer_steps = 2
    config.evaluation, config.evaluation_interval, config.evaluation_episodes, config.render = True, frames, 1, False
    config.save_folder, config.create_json = folder, True
    model = MlpConfig.get_from_yaml()
    experiment = Experiment(
        task=task, algorithm_config=algorithm.get_from_yaml(), model_config=model, critic_model_config=model, seed=0,
        config=config,
    )  # fmt: skip
    experiment.run()
    return experiment


@pytest.mark.parametrize("algorithm", [MappoConfig, IppoConfig, QmixConfig])
def test_training_and_evaluation_of_both_teams(algorithm, tmp_path):
    task = EchelonTask("skirmish", opponent=None, terrain={"size": 50}, max_steps=40)
    experiment = train(task, algorithm, tmp_path)
    assert set(experiment.group_map) == {"blue", "red"}
    assert experiment.total_frames == 400
    assert experiment.n_iters_performed == 2


def test_what_benchmarl_chooses_is_refused():
    with pytest.raises(ConfigError, match="action, seed: BenchMARL chooses these"):
        EchelonTask("duel", action="multi_discrete", seed=1)


@pytest.mark.parametrize("algorithm", [MappoConfig, QmixConfig])
def test_training_against_a_scripted_level(algorithm, tmp_path):
    experiment = train(EchelonTask("duel-open", "novice", max_steps=40), algorithm, tmp_path)
    assert set(experiment.group_map) == {"blue"}
    assert "collection_win_rate.csv" in {path.name for path in tmp_path.rglob("*.csv")}
