"""The scripted levels. Each mech acts from its own observation row and its own memory alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from echelon_env.actions import ACTION_DIM, Action
from echelon_env.catalog import MOUNTS
from echelon_env.config import BattleConfig
from echelon_env.observations import CONTACT_ROWS, OBSERVATION_DIM, STREAMS, Contact, Objective, Self
from echelon_env.opponents.navigation import Navigator

Floats = NDArray[np.float32]

_OBJECTIVE, _CONTACT = STREAMS["objective"].start, STREAMS["contacts"].start
_CONTACT_FILLED = STREAMS["contacts_mask"].start
_REST = 0.5  # of the zone's radius: nearer to the centre than this a mech rests
_IN_TROUBLE = 0.5  # of the full armour: with less a novice smokes
_ALERT_METRES = 20.0  # a novice turns to enemies that it sees this near
_BURST_SECONDS, _BURST_PERIOD = 1.0, 8.0  # how long and how often the trivial level pulls its triggers


SPECIAL_MOUNT = MOUNTS.index("special")
ONE_HOT = tuple(feature.name.removeprefix("IS_").lower() for feature in Self if feature.name.startswith("IS_"))
"""Mech classes in the order of the observations' one-hot."""


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
    """Walks to the zone, turns to the nearest enemy in range, fires what reaches it, and smokes when it is in trouble.

    It never vents, chooses no target but the nearest, and radiates ECM whenever it sees an enemy (ECCM when jammed).
    """

    def __init__(self, seed: int, config: BattleConfig) -> None:
        super().__init__(seed, config)
        self._arsenal = Arsenal(config)

    def _fight(self, observations: Floats, actions: Floats) -> None:
        contacts = observations[:, STREAMS["contacts"].part].reshape(len(observations), CONTACT_ROWS, -1)
        filled = observations[:, STREAMS["contacts_mask"].part] > 0
        nearest = contacts[:, 0]
        reaches = self._arsenal.reaches(observations, contacts, filled)
        in_range = reaches[:, :SPECIAL_MOUNT].any(axis=1)
        looking = in_range | (filled[:, 0] & (nearest[:, Contact.DISTANCE] < self._arsenal.alert))
        towards = turn_towards(nearest[:, Contact.DIRECTION_FORWARD], nearest[:, Contact.DIRECTION_LEFT])
        actions[:, Action.TURN] = np.where(looking, towards, actions[:, Action.TURN])
        actions[:, Action.TARGET_0] = filled[:, 0]
        actions[:, Action.PRIMARY : Action.SPECIAL] = np.where(reaches[:, :SPECIAL_MOUNT], 1.0, -1.0)
        in_trouble = (observations[:, Self.MISSILE] > 0) | (observations[:, Self.ARMOUR] < _IN_TROUBLE)
        actions[:, Action.SPECIAL] = np.where(in_trouble & filled[:, 0], 1.0, -1.0)
        actions[:, Action.ECM] = np.where(filled[:, 0], 1.0, -1.0)
        actions[:, Action.ECCM] = np.where(observations[:, Self.JAMMED] > 0, 1.0, -1.0)


class Arsenal:
    """What the classes' weapons reach, for players that know their own class.

    Parameters
    ----------
    config
        The battle's configuration.
    """

    def __init__(self, config: BattleConfig) -> None:
        catalog = config.catalog
        weapons = {weapon.name: weapon for weapon in catalog.weapons}
        diagonal = config.terrain.size * math.sqrt(2.0)
        sight, lock = np.zeros((2, len(ONE_HOT) + 1, len(MOUNTS)))
        for row, name in enumerate(ONE_HOT):
            for mech_class in config.mech_classes:
                for mount, mounted in enumerate(MOUNTS if mech_class.name == name else ()):
                    weapon = weapons.get(getattr(mech_class, mounted))
                    if weapon is not None:
                        sight[row, mount] = weapon.unaided_range if weapon.flight == "homing" else weapon.range
                        lock[row, mount] = weapon.range if weapon.flight == "homing" else 0.0
        sight[-1] = max((weapon.range for weapon in catalog.weapons), default=0.0)  # of classes that have no one-hot
        self._sight, self._lock = (sight / diagonal).astype(np.float32), (lock / diagonal).astype(np.float32)
        self._quality = np.float32(config.combat.paint_quality / config.sensors.max_quality)
        self.alert = np.float32(_ALERT_METRES / diagonal)

    def reaches(self, observations: Floats, contacts: Floats, filled: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which mounts (R, mounts) reach an enemy: the nearest in line of sight, or any that can be locked on."""
        one_hot = observations[:, Self.IS_SCOUT : Self.IS_SCOUT + len(ONE_HOT)]
        known = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), len(ONE_HOT))
        distance = contacts[:, :, Contact.DISTANCE]
        seen = filled & (contacts[:, :, Contact.LINE_OF_SIGHT] > 0)
        painted = filled & (contacts[:, :, Contact.PAINTED] > 0)
        painted &= observations[:, Self.SENSOR_QUALITY, None] >= self._quality
        in_sight = np.where(seen, distance, np.inf).min(axis=1)
        locked = np.where(painted, distance, np.inf).min(axis=1)
        reach: NDArray[np.bool_] = np.less_equal(in_sight[:, None], self._sight[known])
        reach |= locked[:, None] <= self._lock[known]
        return reach


def turn_towards(forward: Floats, left: Floats) -> Floats:
    """Turn command (R,) that brings a direction in the own frame ahead, slowing down close to it."""
    return np.clip(3.0 * np.arctan2(left, forward), -1.0, 1.0).astype(np.float32)


def pull_triggers(actions: Floats, firing: NDArray[np.bool_]) -> None:
    """Fire every weapon but the special one of the rows where `firing` is true."""
    actions[:, Action.PRIMARY : Action.SPECIAL] = np.where(firing, 1.0, -1.0)[:, None]
