"""Judging a player: battles on unseen maps, both colours alike, with confidence intervals."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from echelon_env.config import BattleConfig
from echelon_env.controlled import ControlledBattles
from echelon_train.players import BLOCK, BattleNoise, Contender
from echelon_train.seeds import EVALUATION_SEEDS, check_seeds, evaluation_seed

WIN, DRAW, LOSS = 1, 0, -1
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Share:
    """How many of the battles, as a share with its Wilson score interval at `CONFIDENCE`."""

    count: int
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:6.1%}  [{self.low:.1%}, {self.high:.1%}]"


@dataclass(frozen=True)
class Evaluation:
    """The outcomes of an evaluation's battles, in order, and what they depend on."""

    player: str
    action_mode: str
    opponent: str
    seed: int
    outcomes: tuple[int, ...]  # 1 win, 0 draw, -1 loss; even numbers as blue, odd ones as red on the same map
    maps: int  # different ones, by content
    maps_trained_on: int | None  # of them; None: not known by content, but training never has evaluation's seeds
    trained_maps: int | None  # that the player trained on in all

    @property
    def wins(self) -> Share:
        """Battles won."""
        return self._share(WIN)

    @property
    def draws(self) -> Share:
        """Battles drawn."""
        return self._share(DRAW)

    @property
    def losses(self) -> Share:
        """Battles lost."""
        return self._share(LOSS)

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the shares and their intervals, as plain values."""
        shares = {"win": self.wins, "draw": self.draws, "loss": self.losses}
        return {
            "player": self.player,
            "action_mode": self.action_mode,
            "opponent": self.opponent,
            "seed": self.seed,
            "battles": len(self.outcomes),
            "maps": self.maps,
            "maps_trained_on": self.maps_trained_on,
            "trained_maps": self.trained_maps,
            "confidence": CONFIDENCE,
            **{name: {"count": s.count, "share": s.share, "interval": [s.low, s.high]} for name, s in shares.items()},
            "outcomes": list(self.outcomes),
        }

    def _share(self, outcome: int) -> Share:
        return wilson(self.outcomes.count(outcome), len(self.outcomes))


def wilson(count: int, total: int) -> Share:
    """The share `count` / `total` with its Wilson score interval (Wilson, JASA 1927) at `CONFIDENCE`."""
    interval = binomtest(count, total).proportion_ci(CONFIDENCE, method="wilson")
    return Share(count, count / total, float(interval.low), float(interval.high))


def evaluate(
    contender: Contender,
    opponent: str,
    config: BattleConfig,
    *,
    num_battles: int,
    seed: int,
    batch_size: int = 64,
    num_threads: int = 1,
    trained_maps: frozenset[str] | None = None,
) -> Evaluation:
    """Play a contender against a scripted level on evaluation seeds and count how it ends.

    Battles 2 j and 2 j + 1 have the same map and places; the contender is blue in the first and red in the second.
    The outcome of a battle depends on the contender, the opponent, the configuration, the seed and its number alone.

    Parameters
    ----------
    contender
        Who is judged.
    opponent
        Level of the scripted opponent.
    config
        The battle.
    num_battles
        Battles to play, at least 1.
    seed
        Seed of the evaluation, at least 0: of the maps and of all players' choices.
    batch_size
        Battles stepped at once, rounded up to whole blocks of `BLOCK`; changes speed and memory, not the result.
    num_threads
        Threads that step the battles; changes speed, not the result.
    trained_maps
        Content hashes of the maps that the contender trained on, if they are known.

    Raises
    ------
    ValueError
        If a number is out of range.
    ConfigError
        If the opponent is unknown.
    """
    if num_battles < 1 or batch_size < 1:
        raise ValueError(f"expected at least one battle at a time and in all, got {batch_size} and {num_battles}")
    batch_size = -(-batch_size // BLOCK) * BLOCK
    outcomes: list[int] = []
    maps: set[str] = set()
    for first in range(0, num_battles, batch_size):
        count = min(batch_size, num_battles - first)
        battles = deque(play(contender, opponent, config, seed, first, count, num_threads), maxlen=1)[0]
        outcomes.extend(battles.learner_won.tolist())
        maps.update(battles.engine.terrain(b).content_hash for b in range(0, count, 2))
    met, known = (None, None) if trained_maps is None else (len(maps & trained_maps), len(trained_maps))
    return Evaluation(contender.name, contender.action_mode, opponent, seed, tuple(outcomes), len(maps), met, known)


def play(
    contender: Contender,
    opponent: str,
    config: BattleConfig,
    seed: int,
    first: int,
    count: int,
    num_threads: int = 1,
) -> Iterator[ControlledBattles]:
    """Play battles `first` to `first + count - 1` of an evaluation, yielding them at their start and after every step.

    `first` is a multiple of `BLOCK`; ends when all battles are over. Raises ValueError for a seed out of range.
    """
    numbers = range(first, first + count)
    seeds = [evaluation_seed(seed, number // 2) for number in numbers]
    check_seeds(seeds, EVALUATION_SEEDS)
    team_size = len(config.blue)
    player = contender.make(BattleNoise(seed, first, count, team_size))
    battles = ControlledBattles(
        config,
        count,
        control="team",
        opponent=opponent,
        side=np.array([number % 2 for number in numbers], np.int8),
        num_threads=num_threads,
        seed=seed,
    )
    try:
        observations = battles.reset(np.array(seeds, np.uint64))
        player.reset(np.ones(count * team_size, np.bool_))
        yield battles
        while not battles.battle_over.all():
            actions = player.act(observations.reshape(count * team_size, -1))
            observations = battles.step(actions.reshape(count, team_size, -1))[0]
            yield battles
    finally:
        battles.close()
