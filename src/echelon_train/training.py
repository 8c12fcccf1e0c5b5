"""A training run: recurrent PPO on battles against a scripted opponent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorboard  # noqa: F401  (SB3 would hide that it is missing)
from rich.console import Console
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import JSONOutputFormat, Logger, TensorBoardOutputFormat

from echelon_train.callbacks import (
    BattleStatistics,
    CheckpointCallback,
    EvaluationCallback,
    ProgressCallback,
    StopCallback,
)
from echelon_train.checkpoint import Checkpoint, save_in_run, weights_of
from echelon_train.config import TrainConfig
from echelon_train.device import resolve_device, torch_threads
from echelon_train.evaluation import Evaluation, evaluate
from echelon_train.players import network_contender
from echelon_train.policy import BattlePolicy, build_policy, policy_kwargs
from echelon_train.run_folder import METRICS_FILE, run_folder
from echelon_train.vec_env import BattleVecEnv

_FINAL_LEARNING_RATE = 0.1  # of the initial one


@dataclass(frozen=True)
class TrainResult:
    """How a run ended."""

    checkpoint: Path  # folder of the last checkpoint
    steps: int  # samples that the policy trained on
    interrupted: bool  # by Ctrl-C


def train(
    config: TrainConfig, out: Path, *, console: Console | None = None, max_seconds: float | None = None
) -> TrainResult:
    """Train a policy and keep everything about it in the folder `out`.

    Parameters
    ----------
    config
        The run.
    out
        Folder to make; it must not exist or be empty.
    console
        Where to draw the progress bar; standard output by default.
    max_seconds
        Time after which training ends, whatever `config.steps` says.

    Raises
    ------
    DeviceError
        For an absent device.
    RunFolderError, OSError
        If the folder cannot be used. All these before anything is computed.
    """
    device = resolve_device(config.device)
    with run_folder(out, config):
        return _run(config, out, device, console or Console(), max_seconds)


def _run(config: TrainConfig, out: Path, device: Any, console: Console, max_seconds: float | None) -> TrainResult:
    env = BattleVecEnv(
        config.battle,
        config.battles,
        opponent=config.opponent,
        seed=config.seed,
        num_threads=config.threads,
        reward_scale=config.ppo.reward_scale,
    )
    formats = [JSONOutputFormat(str(out / METRICS_FILE)), TensorBoardOutputFormat(str(out / "tensorboard"))]
    logger = Logger(str(out), formats)
    try:
        model = build_model(config, env, str(device))
        model.set_logger(logger)
        with torch_threads(config.torch_threads):
            return _learn(model, config, out, console, max_seconds)
    finally:
        logger.close()
        env.close()


def initial_policy(config: TrainConfig) -> BattlePolicy:
    """The policy that a run starts from: random weights that follow from the run's seed."""
    return build_policy(config.network, config.seed)


def build_model(config: TrainConfig, env: BattleVecEnv, device: str) -> Any:
    """The stock RecurrentPPO of a run, with `initial_policy`'s weights."""
    ppo = config.ppo

    def learning_rate(remaining: float) -> float:
        remaining = max(remaining, 0.0)  # the last rollout goes beyond the requested steps
        return ppo.learning_rate * (_FINAL_LEARNING_RATE + (1 - _FINAL_LEARNING_RATE) * remaining)

    model = RecurrentPPO(
        BattlePolicy,
        env,
        learning_rate=learning_rate,
        n_steps=ppo.rollout_steps,
        batch_size=ppo.minibatch,
        n_epochs=ppo.epochs,
        gamma=config.battle.rewards.gamma,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip_range,
        ent_coef=ppo.entropy_weight,
        vf_coef=ppo.value_weight,
        max_grad_norm=ppo.max_grad_norm,
        policy_kwargs=policy_kwargs(config.network),
        seed=config.seed,
        device=device,
    )
    initial = weights_of(initial_policy(config))
    for name, tensor in weights_of(model.policy).items():
        tensor.copy_(initial[name])
    return model


def _learn(model: Any, config: TrainConfig, out: Path, console: Console, max_seconds: float | None) -> TrainResult:
    def save(steps: int) -> Path:
        return save_in_run(out, Checkpoint(model.policy, config.network, config.battle, config.opponent, steps))

    def judge() -> Evaluation:
        contender = network_contender("policy", model.policy, config.network, config.battle)
        return evaluate(
            contender,
            config.opponent,
            config.battle,
            num_battles=config.eval_battles,
            seed=config.seed,
            num_threads=config.threads,
        )

    statistics = BattleStatistics(len(config.battle.blue))
    checkpoints = CheckpointCallback(config.checkpoint_every, save)
    progress = ProgressCallback(config.steps, statistics, console)
    stop = StopCallback(console, max_seconds)
    callbacks: list[BaseCallback] = [statistics, checkpoints, progress, stop]
    if config.eval_every:
        callbacks.append(EvaluationCallback(config.eval_every, judge, lambda: stop.interrupted))
    try:
        with stop:
            model.learn(config.steps, callback=callbacks)
            model.logger.record("time/total_timesteps", model.num_timesteps, exclude="tensorboard")
            model.logger.dump(model.num_timesteps)  # what came after the last rollout: its update, an evaluation
            steps = checkpoints.trained_steps
            return TrainResult(save(steps), steps, stop.interrupted)
    finally:
        progress.close()
