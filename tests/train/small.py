"""Short battles and runs."""

import dataclasses

import torch

from echelon_env import BattleConfig, make_config
from echelon_env.config import Opponents
from echelon_env.evaluate import Battle, Match
from echelon_env.networks.config import NetworkConfig
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import TrainConfig, battle_config
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.runs.evaluation import Evaluation

NETWORK = NetworkConfig(width=8, head=8)


def small_battle(scenario: str = "duel", max_steps: int = 12, **overrides: object) -> BattleConfig:
    """A battle of a few decisions."""
    return make_config(battle_config(scenario), max_steps=max_steps, **overrides)


def small_run(**overrides: object) -> TrainConfig:
    """A run of a few updates with a small network."""
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
        ppo=PPOConfig(n_steps=16, batch_size=16, n_epochs=1),
    )
    return dataclasses.replace(config, **overrides)


def small_evaluation(player: str = "policy", outcomes: tuple[int, ...] = (1, 1, 0, -1, -1, -1)) -> Evaluation:
    """An evaluation with made-up battles."""
    battles = tuple(
        Battle(number, number // 2, f"{number // 2}", number % 2, outcome, "elimination", 1.0, (0.0, 0.0), (1, 1))
        for number, outcome in enumerate(outcomes)
    )
    match = Match("duel", player, "novice", ("sampled", "scripted"), battles, ({}, {}))
    return Evaluation(Opponents.parse("novice"), (match,), None, None)


def sensitive_policy(seed: int = 0) -> BattlePolicy:
    """A policy with large actions that depend on every bit of its recurrent state."""
    policy = build_policy(NETWORK, seed)
    with torch.no_grad():
        policy.action_net.weight.mul_(200.0)
    return policy
