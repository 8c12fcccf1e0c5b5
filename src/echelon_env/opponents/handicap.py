"""Handicaps that weaken a policy gradually: slow reactions, bad aim, a low rate of fire."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.catalog import MOUNTS
from echelon_env.config.opponent import HandicapConfig
from echelon_env.config.schema import check_seed, values_of
from echelon_env.engine import rng
from echelon_env.engine.geometry import clip, cosine_sine
from echelon_env.engine.kernels import entry_point, integer
from echelon_env.engine.observe import CONTACT_WIDTH, CONTACTS_AT
from echelon_env.layout.actions import ACTION_DIM, Action
from echelon_env.layout.observations import CONTACT_ROWS, Contact, Self, class_columns
from echelon_env.opponents.knowledge import UNKNOWN, make_knowledge
from echelon_env.opponents.policy import Policy, check_mask, check_observations, check_resumable, close_policy
from echelon_env.opponents.senses import is_contact, value
from echelon_env.storage.arrays import Kind, check_arrays, check_same, named, part_of, without

Floats = NDArray[np.float32]

_TRIGGERS = slice(Action.PRIMARY, Action.PRIMARY + len(MOUNTS))
_COOLDOWNS = slice(Self.COOLDOWN_PRIMARY, Self.COOLDOWN_PRIMARY + len(MOUNTS))
_CLASS = class_columns(Self)
_ROUNDING = 1e-9  # s


@entry_point
def rotate_directions(observations: Any, keys: Any, seconds: Any, aim_error: float) -> None:
    """Rotate the directions of each row's contacts (R, D) by one random angle, a function of its key and second."""
    for r in range(observations.shape[0]):
        cosine, sine = cosine_sine(aim_error * rng.random_normal(keys[r], seconds[r], 0, 0))
        for row in range(CONTACT_ROWS):
            if is_contact(observations[r], row):
                at = CONTACTS_AT + row * CONTACT_WIDTH
                ahead, aside = at + integer(Contact.DIRECTION_FORWARD), at + integer(Contact.DIRECTION_LEFT)
                forward, left = value(observations[r], ahead), value(observations[r], aside)
                observations[r, ahead] = clip(cosine * forward - sine * left, -1.0, 1.0)
                observations[r, aside] = clip(sine * forward + cosine * left, -1.0, 1.0)


class _Number:
    """A number of an object's `HandicapConfig`, as an attribute that can change."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, effects: HandicapEffects, owner: type) -> float:
        number: float = getattr(effects.handicap, self._name)
        return number

    def __set__(self, effects: HandicapEffects, number: float) -> None:
        effects.handicap = _checked(dataclasses.replace(effects.handicap, **{self._name: number}))


class HandicapEffects:
    """What a handicap does to the observations and actions (R, ...) of any player's rows, whoever the player is.

    In every decision `observe` comes before `execute`. `Handicap` does both around a policy. `seed` is that of the
    errors. Raises ValueError for a seed that is not an integer in [0, 2**64).
    """

    reaction_delay, aim_error, fire_rate = _Number(), _Number(), _Number()
    """The numbers of `handicap`. Raises `ConfigError` for one out of its range."""

    def __init__(self, config: BattleConfig, seed: int, handicap: HandicapConfig) -> None:
        self.seed = check_seed(seed)
        self.handicap = _checked(handicap)
        self._decision_seconds = config.decision_seconds
        self._cooldowns_of = _cooldowns(config)
        self._allocate(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._numbers()})"

    def _numbers(self) -> str:
        return f"reaction_delay={self.reaction_delay}, aim_error={self.aim_error}, fire_rate={self.fire_rate}"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true. Raises ValueError for anything else, see `check_mask`."""
        mask = check_mask(mask, len(self._fresh))
        if len(mask) != len(self._fresh):
            self._allocate(len(mask))
        self._fresh[mask] = True
        for actions in self._pending:
            actions[mask] = 0.0

    def observe(self, observations: Floats) -> Floats:
        """What the player sees of observations (R, D) float32. Raises ValueError for others and other rows."""
        check_observations(observations, len(self._fresh))
        if len(observations) != len(self._fresh):
            self._allocate(len(observations))
        self._begin(observations)
        return self._apply_aim_error(observations) if self.handicap.aim_error > 0.0 else observations

    def execute(self, observations: Floats, actions: Floats) -> Floats:
        """What is done (R, A) of the player's actions (R, A), given the observations (R, D) before `observe`."""
        actions = self._delay(actions)
        if self.handicap.fire_rate < 1.0:
            actions = self._hold_fire(observations, actions)
        else:
            self._wait[:] = 0.0
        self._decisions += 1
        return actions

    def _allocate(self, rows: int) -> None:
        self._fresh = np.ones(rows, np.bool_)  # (R,) before their battle's first decision
        self._keys = np.zeros(rows, np.uint64)  # (R,) of the errors in this battle
        self._decisions = np.zeros(rows, np.int64)  # (R,) since the battle began
        self._cooldowns = np.zeros((rows, len(MOUNTS)))  # (R, 4) s, of the mech's weapons
        self._wait = np.zeros((rows, len(MOUNTS)))  # (R, 4) s times the rate of fire, until the trigger works
        self._pending: deque[Floats] = deque()  # (R, A) each: delayed actions, oldest first

    def _begin(self, observations: Floats) -> None:
        """Draw the keys of a battle's errors from the seed and the mech's first observation."""
        for r in np.flatnonzero(self._fresh):
            seen = np.ascontiguousarray(observations[r], np.float32)
            digest = hashlib.blake2b(
                self.seed.to_bytes(8, "little") + seen.tobytes(), digest_size=8 * (1 + len(MOUNTS))
            )
            key, *draws = np.frombuffer(digest.digest(), "<u8").tolist()
            named = seen[_CLASS] > 0.0
            self._keys[r] = key
            self._cooldowns[r] = self._cooldowns_of[int(named.argmax()) if named.any() else UNKNOWN]
            self._wait[r] = np.maximum(0.0, np.array(draws) / 2.0**64 - self.handicap.fire_rate) * self._cooldowns[r]
            self._decisions[r] = 0
            self._fresh[r] = False

    def _apply_aim_error(self, observations: Floats) -> Floats:
        seen = np.array(observations, np.float32, order="C")
        seconds = np.floor(self._decisions * self._decision_seconds + _ROUNDING).astype(np.int64)
        rotate_directions(seen, self._keys, seconds, self.handicap.aim_error)
        return seen

    def _delay(self, actions: Floats) -> Floats:
        """The actions (R, A) that were decided `reaction_delay` ago."""
        decisions = math.floor(self.handicap.reaction_delay / self._decision_seconds + 0.5)
        while len(self._pending) > decisions:
            self._pending.popleft()
        while len(self._pending) < decisions:
            self._pending.appendleft(self._pending[0].copy() if self._pending else np.zeros_like(actions))
        if decisions == 0:
            return actions
        self._pending.append(np.array(actions, np.float32))
        return self._pending.popleft()

    def _hold_fire(self, observations: Floats, actions: Floats) -> Floats:
        """The actions (R, A) without the triggers that do not work now."""
        seconds, share = self._decision_seconds, self.handicap.fire_rate
        pulled = actions[:, _TRIGGERS] > 0.0
        works = self._wait < share * seconds - _ROUNDING
        cooling = np.minimum(seconds, observations[:, _COOLDOWNS] * self._cooldowns)
        used = np.where(pulled & works, seconds, cooling)
        self._wait = np.maximum(0.0, self._wait + used - share * seconds)
        held = np.array(actions, np.float32)
        held[:, _TRIGGERS][pulled & ~works] = 0.0
        return held

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """The current handicaps, and what is remembered of the rows, as plain arrays by name."""
        pending = np.zeros((len(self._pending), len(self._fresh), ACTION_DIM), np.float32)
        for number, actions in enumerate(self._pending):
            pending[number] = actions
        return {
            "seed": np.array([self.seed], np.uint64),
            "handicaps": np.array([self.reaction_delay, self.aim_error, self.fire_rate]),
            **{name: getattr(self, f"_{name}").copy() for name in _ROW_ARRAYS},
            "pending": pending,
        }

    def check_state(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Raise ValueError unless arrays are the `state_arrays` of so many rows, with this seed."""
        remembered: dict[str, Kind] = {name: ((rows, *more), dtype) for name, (more, dtype) in _ROW_ARRAYS.items()}
        expected: dict[str, Kind] = {"seed": ((1,), np.uint64), "handicaps": ((3,), np.float64), **remembered}
        check_arrays(repr(self), arrays, {**expected, "pending": ((None, rows, ACTION_DIM), np.float32)})
        check_same(repr(self), "seed", self.seed, int(arrays["seed"][0]))
        _handicap_of(arrays)

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Continue from `state_arrays` of so many rows. Raises ValueError, with nothing changed, for others."""
        self.check_state(arrays, rows)
        self.handicap = _handicap_of(arrays)
        for name in _ROW_ARRAYS:
            setattr(self, f"_{name}", arrays[name].copy())
        self._pending = deque(arrays["pending"].copy())


class Handicap(HandicapEffects):
    """A wrapper that makes a policy weaker, by amounts that can change at any time.

    With 0, 0 and 1 the wrapped policy's actions are passed on unchanged. A row's actions depend only on its own
    observations, the seed and the wrapped policy.

    Parameters
    ----------
    policy
        Any policy, including trained ones.
    config
        The battle's configuration: the length of a decision, and the mechs' weapons.
    seed
        Seed of the errors.
    reaction_delay
        Delay of all actions in seconds of battle time, from 0 to 10, rounded to whole decisions. Until its first action
        arrives, a mech does nothing. An action names its target by the row of the observed contact table, which may
        hold another mech when the action arrives. If the delay increases during a battle, mechs repeat their last
        action until later ones arrive.
    aim_error
        Standard deviation, in radians from 0 to pi, of the error in the observed directions of contacts. All directions
        in the contact table are rotated by the same angle, which is drawn again every second. The rest of the
        observation is correct. Weapons whose arc covers the target still hit: the error changes where a mech turns and
        walks and when it holds fire.
    fire_rate
        Rate of fire from 0 to 1, as a share of each weapon's maximum: an autocannon with a cooldown of 0.2 s and a
        gauss with one of 4 s both fire half as often at 0.5, and nothing fires at 0. A trigger works while the weapon
        has been in use (cooling down, or its trigger pulled) for at most this share of the time, and again after it has
        rested long enough, in whole decisions. The first shot is delayed by a random part of such a rest. A weapon that
        is rarely used, because of missing targets or heat, loses less. Painters and smoke are weapons too; venting is
        not.

    Raises
    ------
    ValueError
        For a number out of its range, and for a seed that is not an integer in [0, 2**64).
    TypeError
        For a policy without `reset` and `act`.

    Examples
    --------
    >>> from echelon_env import opponents
    >>> slow = Handicap(opponents.make("expert", 0, BattleConfig()), BattleConfig(), reaction_delay=0.5)
    >>> slow.reaction_delay = 0.25
    """

    def __init__(
        self,
        policy: Policy,
        config: BattleConfig,
        seed: int = 0,
        *,
        reaction_delay: float = 0.0,
        aim_error: float = 0.0,
        fire_rate: float = 1.0,
    ) -> None:
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise TypeError(f"policy: expected an object with reset and act, got {policy!r}")
        numbers = HandicapConfig(reaction_delay=reaction_delay, aim_error=aim_error, fire_rate=fire_rate)
        super().__init__(config, seed, numbers)
        self.policy = policy

    def __repr__(self) -> str:
        return f"Handicap({self.policy!r}, {self._numbers()})"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true, also in the wrapped policy.

        Raises ValueError for anything else, see `check_mask`.
        """
        super().reset(mask)
        self.policy.reset(mask)

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32.

        Raises ValueError for others and other rows, and for another shape of the wrapped policy's actions.
        """
        actions = self.policy.act(self.observe(observations))
        if np.shape(actions) != (len(observations), ACTION_DIM):
            raise ValueError(
                f"actions of {self.policy!r}: expected shape {(len(observations), ACTION_DIM)}, got {np.shape(actions)}"
            )
        return self.execute(observations, actions)

    def close(self) -> None:
        """Stop the policy's threads, if it has any. Later calls run in the caller's thread."""
        close_policy(self.policy)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`; the current handicaps and the wrapped policy's state are part of the state.

        Raises `ConfigError` if the wrapped policy is not resumable.
        """
        return {
            **super().state_arrays(),
            **named("policy", check_resumable("policy", self.policy).state_arrays()),
        }

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, also for the state of a policy with another seed."""
        own = without(arrays, "policy")
        self.check_state(own, rows)
        check_resumable("policy", self.policy).restore_arrays(part_of(arrays, "policy"), rows)
        super().restore_arrays(own, rows)


_ROW_ARRAYS: dict[str, tuple[tuple[int, ...], type]] = {
    "fresh": ((), np.bool_),
    "keys": ((), np.uint64),
    "decisions": ((), np.int64),
    "cooldowns": ((len(MOUNTS),), np.float64),
    "wait": ((len(MOUNTS),), np.float64),
}
"""The state arrays with one entry per row: further axes and dtypes."""


def _cooldowns(config: BattleConfig) -> NDArray[np.float64]:
    """Cooldowns (classes, 4) in seconds of the mounted weapons, as in `Knowledge.classes`; 0 for an empty mount."""
    knowledge = make_knowledge(config)
    mounted = knowledge.classes["weapon"][:, : len(MOUNTS)]
    seconds = knowledge.weapons["cooldown"][mounted] * config.dt
    return np.where(mounted >= 0, seconds, 0.0)


def _checked(handicap: HandicapConfig) -> HandicapConfig:
    """The handicap with Python's floats. Raises `ConfigError` for a number out of its range."""
    return HandicapConfig(**values_of(handicap))


def _handicap_of(arrays: Mapping[str, NDArray[Any]]) -> HandicapConfig:
    """The handicap of a state. Raises `ConfigError` as `HandicapConfig` does."""
    delay, error, rate = arrays["handicaps"].tolist()
    return HandicapConfig(reaction_delay=delay, aim_error=error, fire_rate=rate)
