"""The scripted levels. Each mech acts from its own observation row and its own memory alone."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from echelon_env.actions import ACTION_DIM, Action
from echelon_env.config import BattleConfig
from echelon_env.observations import OBSERVATION_DIM, STREAMS, Contact, Objective, Self
from echelon_env.opponents.navigation import Navigator

Floats = NDArray[np.float32]

_OBJECTIVE, _CONTACT = STREAMS["objective"].start, STREAMS["contacts"].start
_CONTACT_FILLED = STREAMS["contacts_mask"].start
_REST = 0.5  # of the zone's radius: nearer to the centre than this a mech rests
_BURST_SECONDS, _BURST_PERIOD = 1.0, 8.0  # how long and how often the trivial level pulls its triggers


class Scripted(ABC):
    """Walks to the zone and rests near its centre; subclasses say where to look and when to fire."""

    def __init__(self, seed: int, config: BattleConfig) -> None:
        self.seed = seed
        self._navigator = Navigator(config)
        self._rows = -1

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seed={self.seed})"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        self._rows = len(mask)
        self._navigator.reset(mask)

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32. Raises ValueError for another shape."""
        if observations.ndim != 2 or observations.shape[1] != OBSERVATION_DIM:
            raise ValueError(f"observations: expected shape (rows, {OBSERVATION_DIM}), got {observations.shape}")
        if len(observations) != self._rows:
            self.reset(np.ones(len(observations), np.bool_))
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        self._walk(observations, actions)
        self._fight(observations, actions)
        actions[observations[:, Self.ALIVE] == 0] = 0.0
        return actions

    def _walk(self, observations: Floats, actions: Floats) -> None:
        forward = observations[:, _OBJECTIVE + Objective.DIRECTION_FORWARD]
        left = observations[:, _OBJECTIVE + Objective.DIRECTION_LEFT]
        distance = observations[:, _OBJECTIVE + Objective.DISTANCE_NEAR]
        going = distance > _REST * observations[:, _OBJECTIVE + Objective.RADIUS]
        throttle, strafe = self._navigator.steer(observations, forward * going, left * going)
        actions[:, Action.THROTTLE], actions[:, Action.STRAFE] = throttle, strafe
        actions[:, Action.TURN] = np.where(going, turn_towards(forward, left), 0.0)

    @abstractmethod
    def _fight(self, observations: Floats, actions: Floats) -> None:
        """Write where to look and when to fire into the actions (R, A)."""


class Trivial(Scripted):
    """Walks to the zone, looks where it walks, and fires for one second in eight at what happens to be there."""

    def __init__(self, seed: int, config: BattleConfig) -> None:
        super().__init__(seed, config)
        self._seconds = np.float32(config.decision_seconds)
        self._phase = np.random.default_rng(seed).uniform(0.0, _BURST_PERIOD)
        self._clock = np.zeros(0, np.float32)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        super().reset(mask)
        if mask.shape != self._clock.shape:
            self._clock = np.zeros(len(mask), np.float32)
        self._clock[mask] = 0.0

    def _fight(self, observations: Floats, actions: Floats) -> None:
        firing = (self._clock + self._phase) % _BURST_PERIOD < _BURST_SECONDS
        self._clock += self._seconds
        pull_triggers(actions, firing & (observations[:, _CONTACT_FILLED] > 0))


class Novice(Scripted):
    """Walks to the zone, turns to the nearest enemy that it sees and fires whenever that one is in range."""

    def _fight(self, observations: Floats, actions: Floats) -> None:
        filled = observations[:, _CONTACT_FILLED] > 0
        forward = observations[:, _CONTACT + Contact.DIRECTION_FORWARD]
        left = observations[:, _CONTACT + Contact.DIRECTION_LEFT]
        in_range = filled & (observations[:, _CONTACT + Contact.RANGE] < 1.0)
        actions[:, Action.TURN] = np.where(in_range, turn_towards(forward, left), actions[:, Action.TURN])
        actions[:, Action.TARGET_0] = filled
        pull_triggers(actions, in_range & (observations[:, _CONTACT + Contact.LINE_OF_SIGHT] > 0))


def turn_towards(forward: Floats, left: Floats) -> Floats:
    """Turn command (R,) that brings a direction in the own frame ahead, slowing down close to it."""
    return np.clip(3.0 * np.arctan2(left, forward), -1.0, 1.0).astype(np.float32)


def pull_triggers(actions: Floats, firing: NDArray[np.bool_]) -> None:
    """Fire every weapon of the rows where `firing` is true."""
    actions[:, Action.PRIMARY : Action.TERTIARY + 1] = np.where(firing, 1.0, -1.0)[:, None]
