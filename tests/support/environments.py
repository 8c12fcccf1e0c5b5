"""Recorded battles in every action format, for tests that compare the environments with the engine."""

from typing import Any, NamedTuple

import numpy as np

from echelon_env import BattleEngine, opponents
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.spaces.actions import CHOICE_PARTS, ActionFormat, read_action
from support.playing import scripted_actions

FORMATS = [
    {"observation": observation, "action": action, "mask_in_observation": masked}
    for observation, action, masked in (
        ("flat", "continuous", False), ("dict", "dict", False), ("flat", "multi_discrete", False),
        ("dict", "multi_discrete", True), ("dict", "discrete", False), ("flat", "discrete", True),
    )
]  # fmt: skip
"""Every format of observations and of actions, as arguments of the environments."""

SEED = 3
FIGHT: dict[str, Any] = {"scenario": "skirmish", "terrain": {"size": 50}, "max_steps": 80}
"""A battle on a small map, with deaths within its time."""


class Decision(NamedTuple):
    """A decision of a recorded battle with M mechs."""

    actions: list[np.ndarray]  # (M) in the recorded format
    vectors: np.ndarray  # (M, A) the same actions as vectors
    observations: np.ndarray  # (M, D) after the decision
    rewards: np.ndarray  # (M,)
    components: np.ndarray  # (M, K)
    terminated: np.ndarray  # (M,)
    truncated: np.ndarray  # (M,)


class Recording(NamedTuple):
    """A complete battle."""

    start: np.ndarray  # (M, D)
    decisions: list[Decision]
    engine: BattleEngine


def in_format(action_format: str, vector: np.ndarray) -> np.ndarray:
    """A vector (A,), or the choices of the multi-discrete format that are nearest to it."""
    if action_format == "continuous":
        return vector
    return np.array([_nearest(np.array(p.values), vector[list(p.entries)]) for p in CHOICE_PARTS[action_format]])


def _nearest(values: np.ndarray, wanted: np.ndarray) -> int:
    """The choice whose values are nearest to the wanted ones, within the range of the part."""
    return int(np.abs(values - np.clip(wanted, values.min(axis=0), values.max(axis=0))).sum(axis=1).argmin())


def record(action_format: ActionFormat, **overrides: Any) -> Recording:
    """A battle between novices whose actions are converted to a format."""
    engine = BattleEngine(**(FIGHT | overrides))
    players = (opponents.make("novice", 0, engine.config), opponents.make("novice", 1, engine.config))
    start = engine.reset([SEED])[0].copy()
    decisions = []
    while not engine.battle_over[0]:
        actions = [in_format(action_format, vector) for vector in scripted_actions(engine, players)[0]]
        vectors = np.stack([read_action(action_format, action) for action in actions])
        out = engine.step(vectors[None])
        observations, rewards, terminated, truncated = (array[0].copy() for array in out)
        components = engine.reward_components[0].copy()
        decisions.append(Decision(actions, vectors, observations, rewards, components, terminated, truncated))
    return Recording(start, decisions, engine)


class Replay:
    """A policy that plays recorded actions: (rows, A) for each decision."""

    def __init__(self, decisions: list[np.ndarray]) -> None:
        self.decisions = decisions
        self.count = 0

    def reset(self, mask: np.ndarray) -> None:
        self.count = 0

    def act(self, observations: np.ndarray) -> np.ndarray:
        played = self.decisions[self.count] if self.count < len(self.decisions) else self.decisions[-1] * 0
        self.count += 1
        assert played.shape == (len(observations), ACTION_DIM)
        return played
