"""A training run: recurrent PPO on battles against a scripted opponent, in one scenario or through a curriculum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorboard  # noqa: F401  (SB3 would hide that it is missing)
from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import JSONOutputFormat, Logger, TensorBoardOutputFormat

from echelon_env import ConfigError, MapPool
from echelon_env.evaluate import validation_seed
from echelon_train.callbacks import (
    BattleStatistics,
    CheckpointCallback,
    CurriculumCallback,
    EvaluationCallback,
    ProgressCallback,
    StopCallback,
)
from echelon_train.checkpoint import Checkpoint, save_in_run, weights_of
from echelon_train.config import MOST_MAPS, TrainConfig
from echelon_train.device import resolve_device, torch_threads
from echelon_train.evaluation import Evaluation, evaluate
from echelon_train.players import network_player
from echelon_train.policy import BattlePolicy, build_policy, policy_kwargs
from echelon_train.ppo import BattlePPO
from echelon_train.run_folder import METRICS_FILE, run_folder
from echelon_train.vec_env import BattleVecEnv, training_pool

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
    env = make_env(config)
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


def training_maps(config: TrainConfig) -> MapPool | None:
    """The maps that a plain run or a stage trains on; None if every battle has a map of its own.

    Maps of a directory are made here, all of them. Raises `ConfigError` for a directory of recipes that cannot be used.
    """
    pool = training_pool(config.maps or None, config.battle, config.seed)
    if pool is not None and isinstance(config.maps, str):
        if len(pool) > MOST_MAPS:
            raise ConfigError(f"maps: expected at most {MOST_MAPS} recipes in {config.maps!r}, got {len(pool)}", "maps")
        for number in range(len(pool)):
            _ = pool[number]  # better that it fails now than when a battle first has the map
    return pool


def make_env(config: TrainConfig, moves: int = 0) -> BattleVecEnv:
    """The battles of a plain run, or of a stage after a number of moves: a stage that comes again has new ones."""
    return BattleVecEnv(
        config.battle,
        config.battles,
        opponent=config.opponent,
        seed=config.seed + moves * 2**32,  # beyond any run's seed
        num_threads=config.threads,
        maps=training_maps(config),
        regenerate=config.regenerate,
        reward_scale=config.ppo.reward_scale,
    )


def initial_policy(config: TrainConfig) -> BattlePolicy:
    """The policy that a run starts from: random weights that follow from the run's seed."""
    return build_policy(config.network, config.seed)


def build_model(config: TrainConfig, env: BattleVecEnv, device: str) -> Any:
    """The algorithm of a run, with `initial_policy`'s weights."""
    ppo = config.ppo

    def learning_rate(remaining: float) -> float:
        remaining = max(remaining, 0.0)  # the last rollout goes beyond the requested steps
        return ppo.learning_rate * (_FINAL_LEARNING_RATE + (1 - _FINAL_LEARNING_RATE) * remaining)

    model = BattlePPO(
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
    curriculum = CurriculumCallback(config, console)
    left_behind: set[str] = set()  # content hashes of the maps of stages that are over

    def trained_maps() -> frozenset[str] | None:
        pool = model.get_env().battles.engine.maps
        return None if pool is None else pool.content_hashes | left_behind

    def change_stage() -> None:
        if curriculum.advance():
            left_behind.update(trained_maps() or ())
            model.get_env().close()
            model.replace_env(make_env(curriculum.config, curriculum.moves), curriculum.config.battle.rewards.gamma)

    def save(steps: int) -> Path:
        battle = curriculum.config.battle
        checkpoint = Checkpoint(model.policy, config.network, battle, config.opponent, steps, trained_maps())
        return save_in_run(out, checkpoint)

    def judge() -> Evaluation:
        battle = curriculum.config.battle
        return evaluate(
            network_player("policy", model.policy, config.network, trained_maps=trained_maps()),
            config.opponent,
            battle,
            num_battles=config.eval_battles,
            seed=validation_seed(config.seed),
            num_threads=config.threads,
        )

    statistics = BattleStatistics()
    checkpoints = CheckpointCallback(config.checkpoint_every, save)
    progress = ProgressCallback(config.steps, statistics, console)
    stop = StopCallback(console, max_seconds)
    callbacks: list[BaseCallback] = [statistics, curriculum, checkpoints, progress, stop]
    if config.eval_every:
        callbacks.append(EvaluationCallback(config.eval_every, judge, lambda: stop.interrupted))
    model.before_rollout = change_stage
    try:
        with stop:
            model.learn(config.steps, callback=callbacks)
            model.logger.record("time/total_timesteps", model.num_timesteps, exclude="tensorboard")
            model.logger.dump(model.num_timesteps)  # what came after the last rollout: its update, an evaluation
            steps = checkpoints.trained_steps
            return TrainResult(save(steps), steps, stop.interrupted)
    finally:
        progress.close()
        model.get_env().close()
