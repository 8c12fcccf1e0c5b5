"""The trainer beside stock sb3-contrib and a CleanRL-style recurrent PPO: the same network, battles and samples."""

from __future__ import annotations

import copy
import gc
import statistics
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import Tensor

from benchmarks import recurrent_ppo
from benchmarks.stock import RawActions, stock_version
from benchmarks.tables import Cell, Table
from benchmarks.timing import Effort, interleaved, spread_note, tell
from echelon_env import opponents
from echelon_env.storage.arrays import Arrays
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.train import TrainConfig, battle_config
from echelon_train.policy import BattlePolicy
from echelon_train.ppo import distributed
from echelon_train.ppo.losses import add_gradients, losses
from echelon_train.runs.building import build_model, make_env

OURS, STOCK, CLEANRL = "Echelon", "sb3-contrib", "CleanRL-style"
UPDATE, LOOP = "train()", "whole loop"
COLLECT, TRAIN = "collecting", "train()"
OVER = f"{OURS} over {{}}, x".format
OVER_STOCK = OVER(STOCK)
PEAK, SHARE = "at the peak, with a minibatch", "%"
SCENARIO, MAPS = "skirmish", 16
SAMPLES, STEPS = 20_480, 64
BEFORE = 300
"""Decisions of the battles before the rollout: by then they are out of step, and half of the mechs are dead."""
ROUNDS = 3
"""At most: a round takes half a minute."""
LOSSES = "policy_gradient_loss", "value_loss", "entropy_loss", "loss"
CHANGE = 0.02
"""Standard deviation of what is added to every weight before losses are compared, so that none is trivial."""
SAME = 1e-3
"""Relative difference of losses that rounding explains."""


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
    """Speed of the update and of the whole loop, where an iteration's time goes, and the memory of the rollout."""
    config = _config(effort.quick)
    rollout = record(config, min(BEFORE, effort.decisions))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        check_losses(rollout)
        mine, theirs, rounds = ours(rollout), stock(rollout), min(effort.rounds, ROUNDS)
        learners: dict[str, Learner | CleanRL] = {OURS: mine, STOCK: theirs, CLEANRL: CleanRL(rollout)}
        tell(f"training: {rounds} rounds of {len(learners)} learners")
        return [_speeds(rollout, learners, rounds), _parts(mine, rounds), _memory(mine.model, theirs.model)]
    finally:
        torch.set_num_threads(threads)


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
    observations, dones = env.reset(), np.ones(env.num_envs, np.bool_)

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

    def __init__(self, model: Any, replay: Replay) -> None:
        self.model, self._replay = model, replay
        model.set_logger(Logger(None, []))
        _, self._callback = model._setup_learn(2**62, None)

    def rewind(self) -> None:
        """Go to the rollout's beginning."""
        self.model._last_obs = self._replay.rewind()
        self.model._last_episode_starts = np.zeros(self._replay.num_envs, np.bool_)

    def collect(self) -> None:
        """Collect the rollout."""
        model = self.model
        if not model.collect_rollouts(model.env, self._callback, model.rollout_buffer, n_rollout_steps=model.n_steps):
            raise RuntimeError("the rollout was broken off")

    def train(self) -> None:
        """Update the policy."""
        self.model.train()


class CleanRL(recurrent_ppo.RecurrentPPO):
    """The CleanRL-style algorithm on a rollout."""

    def __init__(self, rollout: Rollout) -> None:
        self._replay = Replay(rollout)
        super().__init__(self._replay, rollout.config.network, rollout.config.ppo)

    def rewind(self) -> None:
        """Go to the rollout's beginning."""
        self.begin(self._replay.rewind())


def ours(rollout: Rollout) -> Learner:
    """Our algorithm, as a run builds it."""
    replay = Replay(rollout)
    return Learner(build_model(rollout.config, replay, "cpu"), replay)


def stock(rollout: Rollout) -> Learner:
    """sb3-contrib's, with the same network and settings."""
    replay, config = Replay(rollout), rollout.config.ppo
    settings = {
        "n_steps": config.n_steps, "batch_size": config.batch_size, "n_epochs": config.n_epochs,
        "learning_rate": config.learning_rate, "gamma": config.gamma.start, "gae_lambda": config.gae_lambda,
        "clip_range": config.clip_range, "ent_coef": config.ent_coef.start, "vf_coef": config.vf_coef,
        "max_grad_norm": config.max_grad_norm, "seed": rollout.config.seed,
    }  # fmt: skip
    network = {"network": rollout.config.network}
    model = RecurrentPPO(
        stock_version(BattlePolicy), RawActions(replay), policy_kwargs=network, device="cpu", **settings
    )
    return Learner(model, replay)


def check_losses(rollout: Rollout) -> None:
    """Raise RuntimeError unless our losses and stock's agree on the rollout, with weights other than it was made with.

    For that ours counts the dead, normalises no returns and has one minibatch and chunks as long as the rollout, and
    stock's sequences begin where the rollout does.
    """
    plain = replace(
        rollout.config.ppo, chunk=rollout.config.ppo.n_steps, batch_size=rollout.samples, n_epochs=1,
        normalize_returns=False,
    )  # fmt: skip
    rollout = replace(rollout, config=replace(rollout.config, ppo=plain))
    pair = ours(rollout), stock(rollout)
    weights = copy.deepcopy(pair[0].model.policy.state_dict())
    found = []
    for learner in pair:
        policy = learner.model.policy
        policy.actor_mask = lambda observations: None
        policy.load_state_dict(weights)
        learner.rewind()
        torch.manual_seed(0)
        learner.collect()
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.add_(CHANGE * torch.randn_like(parameter))
        with mock.patch.object(np.random, "randint", return_value=0):
            learner.train()
        logged = learner.model.logger.name_to_value
        found.append([logged[f"train/{name}"] for name in LOSSES])
    if not np.allclose(found[0], found[1], rtol=SAME, atol=SAME**2):
        raise RuntimeError(f"losses of {OURS} and {STOCK} differ ({', '.join(LOSSES)}): {found[0]} and {found[1]}")


def _speeds(rollout: Rollout, learners: Mapping[str, Learner | CleanRL], rounds: int) -> Table:
    """Seconds and samples per second of all learners, side by side."""
    turns = interleaved({name: partial(_iteration, learner) for name, learner in learners.items()}, rounds)
    rows: dict[str, tuple[Cell, ...]] = {}
    for name, taken in turns.items():
        collecting, updating, both = (statistics.median(column) for column in zip(*taken, strict=True))
        rows[name] = collecting, updating, rollout.samples / updating, rollout.samples / both
    rows |= {
        OVER(other): (None, None, *(rows[OURS][i] / rows[other][i] for i in (2, 3)))  # type: ignore[operator]
        for other in (STOCK, CLEANRL)
    }
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


def _iteration(learner: Learner | CleanRL) -> tuple[float, float, float]:
    """Seconds of collecting, of updating, and of both."""
    learner.rewind()
    gc.collect()
    start = time.process_time()
    learner.collect()
    collected = time.process_time()
    learner.train()
    end = time.process_time()
    return collected - start, end - collected, end - start


class Stopwatch:
    """Time by what it was spent on: each lap is what has passed since the last one, on the clock that is given."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._clock = clock
        self._last = clock()

    def lap(self, name: str) -> None:
        """Count the time since the last lap under a name."""
        now = self._clock()
        self.seconds[name] += now - self._last
        self._last = now

    def around(self, function: Callable[..., Any], before: str, within: str) -> Callable[..., Any]:
        """The function, with laps when it begins and when it ends."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.lap(before)
            result = function(*args, **kwargs)
            self.lap(within)
            return result

        return timed


def _parts(learner: Learner, rounds: int) -> Table:
    """Where the time of our iteration goes."""
    taken = []
    for _ in range(rounds):
        learner.rewind()
        with _timed(learner.model) as watch:
            learner.collect()
            watch.lap(f"{COLLECT}: the rest")
            learner.train()
            watch.lap(f"{TRAIN}: the rest")
        taken.append(watch.seconds)
    names = sorted(taken[0], key=lambda name: (not name.startswith(COLLECT), name.endswith("the rest")))
    medians = {name: statistics.median(seconds[name] for seconds in taken) for name in names}
    whole = sum(medians.values())
    rows = {name: (1000 * seconds, 100 * seconds / whole) for name, seconds in medians.items()}
    return Table("parts", f"Where the time of an iteration goes, {OURS}", "", ("ms", "%"), rows)


@contextmanager
def _timed(model: Any) -> Iterator[Stopwatch]:
    """A stopwatch for what a model does meanwhile."""
    watch, policy = Stopwatch(), model.policy
    rest, update = f"{COLLECT}: the rest", f"{TRAIN}: the rest"
    run_lstm = policy._process_sequence

    def lstm(features: Tensor, *args: Any) -> Any:
        if not torch.is_grad_enabled():
            return run_lstm(features, *args)
        watch.lap(f"{TRAIN}: encoder, forward")
        features.register_hook(lambda _: watch.lap(f"{TRAIN}: LSTM, backward"))
        output, states = run_lstm(features, *args)
        output.register_hook(lambda _: watch.lap(f"{TRAIN}: heads and losses, backward"))
        watch.lap(f"{TRAIN}: LSTM, forward")
        return output, states

    def timed_losses(*args: Any) -> Any:
        result = losses(*args)
        watch.lap(f"{TRAIN}: heads and losses, forward")
        return result

    patches: list[tuple[Any, str, Any]] = [
        (model.env, "step", watch.around(model.env.step, rest, f"{COLLECT}: battles")),
        (policy, "forward", watch.around(policy.forward, rest, f"{COLLECT}: policy")),
        (policy, "predict_values", watch.around(policy.predict_values, rest, f"{COLLECT}: bootstrap values")),
        (model, "_compute_advantages", watch.around(model._compute_advantages, rest, f"{COLLECT}: advantages")),
        (model.rollout_buffer, "batch", watch.around(model.rollout_buffer.batch, update, f"{TRAIN}: minibatch")),
        (policy, "_process_sequence", lstm),
        (model, "_add_gradients", partial(add_gradients, compute=timed_losses)),
        (
            distributed,
            "all_reduce_gradients",
            watch.around(distributed.all_reduce_gradients, f"{TRAIN}: encoder, backward", update),
        ),
        (policy.optimizer, "step", watch.around(policy.optimizer.step, update, f"{TRAIN}: optimizer")),
    ]
    with ExitStack() as stack:
        for owner, name, replacement in patches:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        yield watch


def _memory(ours: Any, stock: Any) -> Table:
    """Bytes of the rollouts' buffers, and of what is made of them for a minibatch."""
    buffer = ours.rollout_buffer
    kept = _bytes(vars(buffer).values())
    batch = buffer.batch(next(buffer.minibatches(ours.batch_size // ours.chunk)), buffer.advantages, buffer.loss_mask())
    mine = kept, kept + _bytes(batch)
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
    return kept, max(peak, now + _bytes(batch))  # tensors are not traced


def _bytes(tensors: Iterable[Any]) -> int:
    """Bytes of all tensors in something nested."""
    total = 0
    for each in tensors:
        if isinstance(each, Tensor):
            total += each.numel() * each.element_size()
        elif isinstance(each, dict):
            total += _bytes(each.values())
        elif isinstance(each, tuple):
            total += _bytes(each)
    return total
