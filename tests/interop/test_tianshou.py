"""Tianshou's high-level experiments on the registered environments, without glue."""

import pytest
from tianshou.highlevel.config import OffPolicyTrainingConfig, OnPolicyTrainingConfig
from tianshou.highlevel.env import EnvFactoryRegistered, VectorEnvType
from tianshou.highlevel.experiment import DQNExperimentBuilder, ExperimentConfig, PPOExperimentBuilder

TASK = "echelon_env:echelon/DuelOpen-v1"
SIZES = {
    "max_epochs": 2, "epoch_num_steps": 200, "num_training_envs": 2, "num_test_envs": 2, "test_step_num_episodes": 2,
    "collection_step_num_env_steps": 100, "batch_size": 32,
}  # fmt: skip


def run(builder, training, folder, **arguments):
    factory = EnvFactoryRegistered(task=TASK, venv_type=VectorEnvType.DUMMY, max_steps=30, **arguments)
    config = ExperimentConfig(watch=False, persistence_base_dir=str(folder), device="cpu")
    experiment = builder(factory, config, training).build()
    return experiment.run().trainer_result


@pytest.mark.parametrize("action", ["continuous", "discrete"])
def test_ppo(tmp_path, action):
    result = run(PPOExperimentBuilder, OnPolicyTrainingConfig(**SIZES), tmp_path, action=action)
    assert result.train_step == 400
    assert result.test_episode >= 4


def test_dqn(tmp_path):
    training = OffPolicyTrainingConfig(**SIZES, update_step_num_gradient_steps_per_sample=0.1)
    result = run(DQNExperimentBuilder, training, tmp_path, action="discrete", control="pilot")
    assert result.train_step == 400
