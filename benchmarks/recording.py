"""Battles that are played once and then played again, so that no thinking is timed and every API does the same.

A battle's place restarts as Gymnasium's vector environments do it: the step after the one in which the battle was
decided begins the next. The same seeds and actions give the same battles on every API, so what was counted while
recording (live mechs) holds for all of them; `check_end` makes sure of it.

Random actions seldom decide a battle, so battles played with them are given a time limit of a quarter of the recorded
decisions (`config_for`): several restarts are in every recording.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from echelon_env import BattleEngine, MapPool, opponents
from echelon_env.config.battle import BattleConfig
from echelon_env.engine.rng import episode_seed

Player = Literal["novices", "random"]
BATCH = 16
MAPS = 16
RANDOM_BATTLES = 4  # in as many decisions as are recorded of one place


@dataclass(frozen=True)
class Recording:
    """T decisions of B battles on maps of a pool."""

    config: BattleConfig
    maps: MapPool
    seeds: list[int]  # (B,) of the places
    actions: NDArray[np.float32]  # (T, B, M, A)
    begins: NDArray[np.bool_]  # (T, B) places whose next battle begins in a decision
    live: NDArray[np.int64]  # (T, B) mechs that live before a decision, 0 in places that restart
    ends: tuple[bytes, ...]  # (B,) digests of the battles after the last decision
    engine_seconds: float  # of the engine's steps alone, while the players thought between them

    @property
    def agent_steps(self) -> int:
        """Decisions of live mechs."""
        return int(self.live.sum())

    @property
    def battle_steps(self) -> int:
        """Decisions of battles that are not over."""
        return int((~self.begins).sum())

    def episode_seeds(self, episodes: NDArray[np.int64]) -> list[int]:
        """Seeds of the places' battles of some numbers (B,), as the environments choose them."""
        return [episode_seed(seed, k) for seed, k in zip(self.seeds, episodes.tolist(), strict=True)]

    def resized(self, battles: int) -> Recording:
        """The same battles in another number of places: some of them, or some of them several times."""
        chosen = np.arange(battles) % len(self.seeds)
        return replace(
            self,
            seeds=[self.seeds[i] for i in chosen.tolist()],
            actions=np.ascontiguousarray(self.actions[:, chosen]),
            begins=self.begins[:, chosen],
            live=self.live[:, chosen],
            ends=tuple(self.ends[i] for i in chosen.tolist()),
        )

    def check_end(self, engine: BattleEngine) -> None:
        """Raise RuntimeError unless the engine's battles have ended up, to the bit, as those that were recorded."""
        if _digests(engine) != self.ends:
            raise RuntimeError("a replay went another way than its recording: the figures would not be comparable")


def config_for(player: Player, config: BattleConfig, decisions: int) -> BattleConfig:
    """Battles as they are for novices, and short ones for random actions."""
    return config if player == "novices" else replace(config, max_steps=max(1, decisions // RANDOM_BATTLES))


def record(config: BattleConfig, player: Player, decisions: int, maps: MapPool, battles: int = BATCH) -> Recording:
    """Play battles between scripted novices, or with uniformly random actions.

    Raises ValueError if no battle restarts with random actions, whose figures are to include restarts.
    """
    engine = BattleEngine(config, battles, maps=maps)
    act = _novices(engine) if player == "novices" else _random_actions(engine)
    actions = np.zeros((decisions, battles, engine.num_mechs, engine.action_dim), np.float32)
    begins = np.zeros((decisions, battles), np.bool_)
    live = np.zeros((decisions, battles), np.int64)
    recording = Recording(config, maps, list(range(battles)), actions, begins, live, (), 0.0)
    seconds = 0.0

    def before(t: int, fresh: NDArray[np.bool_]) -> None:
        begins[t], actions[t] = engine.battle_over, act(fresh)
        live[t] = np.where(begins[t], 0, engine.alive.sum(axis=1))

    for step_seconds, _ in play(engine, recording, before):
        seconds += step_seconds
    if player == "random" and not begins.any():
        raise ValueError(f"random actions: expected battles of less than {decisions} decisions, so that some restart")
    return replace(recording, ends=_digests(engine), engine_seconds=seconds)


def _digests(engine: BattleEngine) -> tuple[bytes, ...]:
    """Digests of each battle's mechs, counters and observations."""
    arrays = engine.state.mechs, engine.state.battles, engine.observations
    return tuple(
        hashlib.blake2b(b"".join(one.tobytes() for one in battle)).digest() for battle in zip(*arrays, strict=True)
    )


def play(
    engine: BattleEngine, recording: Recording, before: Callable[[int, NDArray[np.bool_]], None] | None = None
) -> list[tuple[float, float]]:
    """Seconds of the engine's step and of starting battles again, for each decision of a recording.

    `before` is called, off the clock, with each decision's number and the battles (B,) that have just begun.
    """
    episodes = np.zeros(engine.num_battles, np.int64)
    engine.reset(recording.episode_seeds(episodes))
    fresh, taken = np.ones(engine.num_battles, np.bool_), []
    for t in range(len(recording.actions)):
        if before is not None:
            before(t, fresh)
        start = time.perf_counter()
        engine.step(recording.actions[t])
        stepped = finished = time.perf_counter()
        fresh = recording.begins[t]
        if fresh.any():
            episodes += fresh
            seeds = recording.episode_seeds(episodes)
            stepped_over = time.perf_counter()
            engine.reset(seeds, fresh)
            finished = stepped + time.perf_counter() - stepped_over
        taken.append((stepped - start, finished - stepped))
    return taken


def _novices(engine: BattleEngine) -> Callable[[NDArray[np.bool_]], NDArray[np.float32]]:
    player = opponents.make("novice", 0, engine.config)

    def act(fresh: NDArray[np.bool_]) -> NDArray[np.float32]:
        if fresh.any():
            player.reset(np.repeat(fresh, engine.num_mechs))
        seen = engine.observations
        return player.act(seen.reshape(-1, engine.observation_dim)).reshape(*seen.shape[:2], -1)

    return act


def _random_actions(engine: BattleEngine) -> Callable[[NDArray[np.bool_]], NDArray[np.float32]]:
    generator = np.random.default_rng(0)
    shape = engine.num_battles, engine.num_mechs, engine.action_dim
    return lambda fresh: generator.uniform(-1, 1, shape).astype(np.float32)
