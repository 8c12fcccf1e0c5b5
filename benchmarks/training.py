"""The trainer beside stock sb3-contrib: the same network, battles and samples."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import Tensor

from benchmarks.stock import Choices, stock_version
from benchmarks.tables import Table
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import opponents
from echelon_env.storage.arrays import Arrays
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import TrainConfig, battle_config
from echelon_train.policy import BattlePolicy
from echelon_train.runs.building import build_model, make_env
from echelon_train.threads import torch_threads

OURS, STOCK = "Echelon", "sb3-contrib"
UPDATE, LOOP = "train()", "whole loop"
OVER_STOCK = f"{OURS} over {STOCK}, x"
PEAK, SHARE = "at the peak, with a minibatch", "%"
SCENARIO, MAPS = "skirmish", 16
SAMPLES, STEPS = 20_480, 64
BEFORE = 300
"""Decisions of the battles before the rollout: by then they are out of step, and half of the mechs are dead."""
ROUNDS = 3
"""At most: a round takes half a minute."""


@dataclass(frozen=True)
class Rollout:
    """A stretch of battles between novices, which can be played again."""

    config: TrainConfig
    before: Arrays
    actions: NDArray[np.float32]
    """(T, rows, A) of the learner's mechs."""
    acting: float
    """Share of the rows that were alive."""
    ends: int
    """Battles that ended."""

    @property
    def samples(self) -> int:
        """Steps times rows."""
        steps, rows, _ = self.actions.shape
        return int(steps * rows)


class Replay(VecEnvWrapper):  # type: ignore[misc]
    """A rollout's battles, whatever the actions: all that learn from them have the same deaths and endings."""

    def __init__(self, rollout: Rollout) -> None:
        super().__init__(make_env(rollout.config))
        self._rollout = rollout
        self._step = 0

    def rewind(self) -> NDArray[np.float32]:
        """Go to the rollout's beginning; returns the observations (rows, D) there."""
        self._step = 0
        observations: NDArray[np.float32] = self.venv.restore_arrays(self._rollout.before)
        return observations

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: NDArray[np.float32]) -> None:
        self.venv.step_async(self._rollout.actions[self._step])
        self._step += 1

    def step_wait(self) -> Any:
        return self.venv.step_wait()


def training(effort: Effort) -> list[Table]:
    """Speed of the update and of the whole loop, and the memory of the rollout."""
    config = _config(effort.quick)
    rollout = record(config, min(BEFORE, effort.decisions))
    with torch_threads(1):
        learners, rounds = {OURS: ours(rollout), STOCK: stock(rollout)}, min(effort.rounds, ROUNDS)
        tell(f"training: {rounds} rounds of {len(learners)} learners")
        speeds = _speeds(rollout, learners, rounds)
        return [speeds, _memory(learners[OURS].model, learners[STOCK].model)]


def _config(quick: bool) -> TrainConfig:
    """The shipped network on a rollout of some length, or on a tiny one."""
    battle = battle_config(SCENARIO)
    if quick:
        small = PPOConfig(n_steps=16, chunk=8, batch_size=160, n_epochs=2)
        return TrainConfig(battle=battle, battles=4, maps=MAPS, ppo=small)
    ppo = PPOConfig(n_steps=STEPS, chunk=16, batch_size=2048, n_epochs=3)
    return TrainConfig(battle=battle, battles=SAMPLES // STEPS // len(battle.blue), maps=MAPS, ppo=ppo)


def record(config: TrainConfig, before: int) -> Rollout:
    """A rollout between novices after a number of decisions."""
    env = make_env(config)
    novices = opponents.make("novice", 0, config.battle)
    observations: Any = env.reset()
    dones = np.ones(env.num_envs, np.bool_)

    def step() -> NDArray[np.float32]:
        nonlocal observations, dones
        novices.reset(dones)
        played = novices.act(observations)
        observations, _, dones, _ = env.step(played)
        return played

    for _ in range(before):
        step()
    start, alive, ends, actions = env.state_arrays(), 0.0, 0, []
    for _ in range(config.ppo.n_steps):
        alive += env.battles.alive.mean()
        actions.append(step())
        ends += int(dones.sum()) // env.team_size
    env.close()
    return Rollout(config, start, np.stack(actions), alive / len(actions), ends)


class Learner:
    """An algorithm of stable-baselines3's kind, an iteration at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model
        model.set_logger(Logger(None, []))
        _, self._callback = model._setup_learn(2**62, None)

    def collect(self) -> None:
        """Collect the rollout."""
        model = self.model
        model.collect_rollouts(model.env, self._callback, model.rollout_buffer, n_rollout_steps=model.n_steps)

    def train(self) -> None:
        """Update the policy."""
        self.model.train()


class Replayer(Learner):
    """One that learns from a rollout again and again."""

    def __init__(self, model: Any, replay: Replay) -> None:
        super().__init__(model)
        self._replay = replay

    def rewind(self) -> None:
        """Go to the rollout's beginning."""
        self.model._last_obs = self._replay.rewind()
        self.model._last_episode_starts = np.zeros(self._replay.num_envs, np.bool_)


def ours(rollout: Rollout) -> Replayer:
    """Our algorithm, as a run builds it."""
    replay = Replay(rollout)
    return Replayer(build_model(rollout.config, replay, "cpu"), replay)


def stock(rollout: Rollout) -> Replayer:
    """sb3-contrib's, with the same network and settings."""
    replay, config = Replay(rollout), rollout.config.ppo
    settings = {
        "n_steps": config.n_steps, "batch_size": config.batch_size, "n_epochs": config.n_epochs,
        "learning_rate": config.learning_rate, "gamma": config.gamma.start, "gae_lambda": config.gae_lambda,
        "clip_range": config.clip_range, "ent_coef": config.ent_coef.start, "vf_coef": config.vf_coef,
        "max_grad_norm": config.max_grad_norm, "seed": rollout.config.seed,
    }  # fmt: skip
    network = {"network": rollout.config.network}
    model = RecurrentPPO(stock_version(BattlePolicy), Choices(replay), policy_kwargs=network, device="cpu", **settings)
    return Replayer(model, replay)


def _speeds(rollout: Rollout, learners: Mapping[str, Replayer], rounds: int) -> Table:
    """Seconds and samples per second of all learners, side by side."""
    turns = interleaved({name: partial(_iteration, learner) for name, learner in learners.items()}, rounds)
    rows: dict[str, tuple[Any, ...]] = {}
    for name, taken in turns.items():
        collecting, updating, both = (statistics.median(column) for column in zip(*taken, strict=True))
        rows[name] = collecting, updating, rollout.samples / updating, rollout.samples / both
    rows[OVER_STOCK] = None, None, *(rows[OURS][i] / rows[STOCK][i] for i in (2, 3))
    config = rollout.config
    steps, epochs = config.ppo.n_steps, config.ppo.n_epochs
    notes = (
        f"{config.battles} battles of {SCENARIO} against {config.opponent}, {steps} decisions, "
        f"{rollout.samples:,} samples, of which {100 * rollout.acting:.0f} % are of living mechs; {rollout.ends} "
        f"battles end meanwhile. {epochs} epochs, minibatches of {config.ppo.batch_size}. "
        "Processor time on one thread.",
        spread_note([one[2] for one in taken] for taken in turns.values()),
    )
    columns = "collecting, s", "train(), s", UPDATE, LOOP
    return Table("speed", "An iteration of recurrent PPO", "samples/s", columns, rows, notes)


def _iteration(learner: Replayer) -> tuple[float, float, float]:
    """Seconds of collecting, of updating, and of both."""
    learner.rewind()
    gc.collect()
    start = time.process_time()
    learner.collect()
    collected = time.process_time()
    learner.train()
    end = time.process_time()
    return collected - start, end - collected, end - start


def _memory(ours: Any, stock: Any) -> Table:
    """Bytes of the rollouts' buffers, and of what is made of them for a minibatch."""
    buffer = ours.rollout_buffer
    kept = nested_bytes(vars(buffer).values())
    batch = buffer.batch(buffer.orders(1)[0, : ours.batch_size // ours.chunk], buffer.advantages)
    mine = kept, kept + nested_bytes(batch)
    theirs = _stock_memory(stock)
    rows = {
        name: (a / 1e6, b / 1e6, 100 * a / b)
        for name, a, b in zip(("between updates", PEAK), mine, theirs, strict=True)
    }
    return Table("memory", "Memory of a rollout's buffer", "MB", (OURS, STOCK, SHARE), rows)


def _stock_memory(model: Any) -> tuple[float, float]:
    """Bytes of a stock buffer before an update, and the most that it takes until there is a first minibatch."""
    old = model.rollout_buffer
    tracemalloc.start()
    try:
        buffer = type(old)(
            old.buffer_size, old.observation_space, old.action_space, old.hidden_state_shape, "cpu", n_envs=old.n_envs
        )
        kept, _ = tracemalloc.get_traced_memory()
        buffer.full = True
        batch = next(buffer.get(model.batch_size))
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept, max(peak, now + nested_bytes(batch))  # tensors are not traced


def nested_bytes(tensors: Iterable[Any]) -> int:
    """Bytes of all tensors in something nested."""
    total = 0
    for each in tensors:
        if isinstance(each, Tensor):
            total += each.nbytes
        elif isinstance(each, (dict, tuple)):
            total += nested_bytes(each.values() if isinstance(each, dict) else each)
    return total
