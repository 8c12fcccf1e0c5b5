"""Battles and runs that are over at once."""

import dataclasses

from echelon_env import BattleConfig, make_config
from echelon_train.config import NetworkConfig, PPOConfig, TrainConfig, battle_config


def small_battle(scenario: str = "duel", max_steps: int = 12, **overrides: object) -> BattleConfig:
    """A battle that is over after a few decisions."""
    return make_config(battle_config(scenario), max_steps=max_steps, **overrides)


def small_run(**overrides: object) -> TrainConfig:
    """A run of a few updates of a small network."""
    config = TrainConfig(
        battle=small_battle(),
        opponent="trivial",
        steps=64,
        battles=2,
        device="cpu",
        eval_every=0,
        eval_battles=2,
        checkpoint_every=32,
        network=NetworkConfig(width=8, head=8),
        ppo=PPOConfig(rollout_steps=16, minibatch=16, epochs=1),
    )
    return dataclasses.replace(config, **overrides)
