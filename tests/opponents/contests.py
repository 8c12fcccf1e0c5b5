"""Battles for tests of players: recorded observations, and whole battles between two players."""

import functools

import numpy as np

from echelon_env import BattleEngine
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import Policy, make
from support.playing import scripted_actions


@functools.cache
def recorded(scenario: str = "skirmish", decisions: int = 160) -> np.ndarray:
    """Observations (decisions, rows, D) float32 of all mechs in two battles between experts, from their start."""
    engine = BattleEngine(scenario, 2)
    players = tuple(make("expert", seed, engine.config) for seed in range(2))
    engine.reset([3, 4])
    seen = []
    for _ in range(decisions):
        seen.append(engine.observations.reshape(-1, engine.observation_dim).copy())
        engine.step(scripted_actions(engine, players))
    observations = np.array(seen)
    observations.setflags(write=False)
    return observations


def think(player: Policy, observations: np.ndarray) -> np.ndarray:
    """The actions (decisions, rows, A) of a player for observations (decisions, rows, D)."""
    return np.array([player.act(rows).copy() for rows in observations])


class Idle:
    def reset(self, mask):
        pass

    def act(self, observations):
        return np.zeros((len(observations), ACTION_DIM), np.float32)


class Chance(Idle):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def act(self, observations):
        return self.rng.uniform(-1, 1, (len(observations), ACTION_DIM)).astype(np.float32)


def fight(engine: BattleEngine, first: Policy, second: Policy, seed: int = 10_000) -> np.ndarray:
    """Result of the first player in each battle (B,): 1 win, 0 draw, -1 loss.

    Pairs of battles exchange the sides of a map.
    """
    battles, team = engine.num_battles, len(engine.config.blue)
    observations = engine.reset(np.repeat(np.arange(battles // 2) + seed, 2))
    red = np.arange(battles) % 2 == 1
    for player in (first, second):
        player.reset(np.ones(battles * team, bool))
    actions = np.zeros((battles, 2 * team, ACTION_DIM), np.float32)
    while not engine.battle_over.all():
        halves = observations[:, :team], observations[:, team:]
        own, other = (np.where(red[:, None, None], *sides) for sides in (halves[::-1], halves))
        a, b = (p.act(rows.reshape(battles * team, -1)) for p, rows in ((first, own), (second, other)))
        a, b = a.reshape(battles, team, -1), b.reshape(battles, team, -1)
        actions[:, :team] = np.where(red[:, None, None], b, a)
        actions[:, team:] = np.where(red[:, None, None], a, b)
        observations, *_ = engine.step(actions)
    return np.where(engine.winner == red, 1, np.where(engine.winner == ~red, -1, 0))
