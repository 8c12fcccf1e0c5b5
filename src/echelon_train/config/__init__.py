"""The settings of a training run and the files that contain them. Importing this package does not import torch."""

from echelon_env.config.schema import quantity
from echelon_env.networks.config import NetworkConfig
from echelon_train.config.files import load_run_config, run_config_descriptions, run_config_names
from echelon_train.config.league import LeagueConfig
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import RewardSchedules, Schedule
from echelon_train.config.train import TrainConfig, battle_config, training_curriculum

__all__ = [
    "LeagueConfig",
    "NetworkConfig",
    "PPOConfig",
    "RewardSchedules",
    "Schedule",
    "TrainConfig",
    "battle_config",
    "load_run_config",
    "quantity",
    "run_config_descriptions",
    "run_config_names",
    "training_curriculum",
]
