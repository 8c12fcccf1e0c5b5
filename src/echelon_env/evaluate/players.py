"""Players: everything that can be evaluated, from scripted levels to custom policies.

A player's actions in a battle must depend on that battle only, not on other battles of the batch. So a player draws
random numbers from its `BattleNoise`, which has a stream for each battle, or derives them from its observations.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from echelon_env import opponents
from echelon_env.champions import CHAMPIONS, champion_folder, champion_of, champion_player
from echelon_env.config import plugins
from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import CHAMPION, HandicapConfig, Opponent
from echelon_env.config.schema import ConfigError, check_integer, check_seed, nearest_name
from echelon_env.layout.actions import ACTION_DIM, ACTION_HIGH, ACTION_LOW
from echelon_env.networks.checkpoint import read_document
from echelon_env.opponents import Handicap, Policy
from echelon_env.opponents.policy import check_mask, check_observations, check_resumable, close_policy
from echelon_env.storage.arrays import Kind, check_arrays, named, part_of, without

Floats = NDArray[np.float32]

ActionMode = Literal["sampled", "deterministic"]
"""How a network acts: samples of its distribution, or its mode."""

ACTION_MODES: tuple[ActionMode, ...] = get_args(ActionMode)

IDLE, RANDOM = "idle", "random"
BASELINES = (IDLE, RANDOM, *opponents.LEVELS, CHAMPION)
"""Names of the built-in players: idle, uniformly random actions, the scripted levels (weakest first), the champion."""


class BattleNoise:
    """Random numbers for a player's rows, with a stream for each battle. Row `battle * team_size + mech` is a mech.

    `seeds` are those of the battles; the integers of `stream` distinguish the player's streams from those of others in
    the same battles. All are at least 0.
    """

    def __init__(self, seeds: Sequence[int], stream: Sequence[int], team_size: int, num_threads: int = 1) -> None:
        self.seeds = tuple(int(seed) for seed in seeds)
        """Seeds of the battles, in order."""
        self.stream = tuple(stream)
        """The integers of the player's streams."""
        self.team_size = team_size
        self.num_threads = check_integer("num_threads", num_threads)
        self.streams = tuple(np.random.default_rng([seed, *stream]) for seed in self.seeds)
        """A generator for each battle, in order."""

    def uniform(self) -> Floats:
        """Numbers (rows, A) float32, uniform over the actions' range."""
        draws: Floats = np.concatenate(
            [stream.random((self.team_size, ACTION_DIM), np.float32) for stream in self.streams]
        )
        return draws * np.float32(ACTION_HIGH - ACTION_LOW) + np.float32(ACTION_LOW)


@dataclass(frozen=True)
class Player:
    """A player of an evaluation: its name, its action mode, and a function that makes its policy.

    >>> import numpy as np
    >>> from echelon_env.opponents import FunctionPolicy
    >>> forward = lambda observations: np.eye(1, 27, dtype=np.float32).repeat(len(observations), axis=0)
    >>> mine = Player("mine", "scripted", lambda config, noise: FunctionPolicy(forward))
    """

    name: str
    action_mode: str  # "scripted", "uniform", "none", or one of `ACTION_MODES` for networks
    make: Callable[[BattleConfig, BattleNoise], Policy]
    """Makes a new policy for the rows of the noise's battles. At their end its `close` is called, if it has one."""
    battle: BattleConfig | None = None  # training configuration, None if it was not trained
    trained_maps: frozenset[str] | None = None  # content hashes of the training maps, None if unknown
    identity: Mapping[str, str | int] = field(default_factory=dict, hash=False)
    """Plain values that distinguish players with the same name: folder, steps and weights hash of a checkpoint."""

    def policy(self, config: BattleConfig, seed: int = 0, num_threads: int = 1) -> Policy:
        """The player outside evaluations: a policy for any number of mechs, such as an environment's opponent.

        Each row draws its random numbers from the seed and its mech's first observation of a battle. Threads share the
        mechs of scripted levels and networks. Raises ValueError for a seed out of [0, 2**64), and ConfigError for an
        invalid number of threads.
        """
        return _RowPolicy(self, config, check_seed(seed), check_integer("num_threads", num_threads))


def check_action_mode(mode: str) -> ActionMode:
    """Return the action mode of a network. Raises ConfigError for another, with the nearest valid one."""
    if mode not in ACTION_MODES:
        raise ConfigError(f"unknown action mode {mode!r}{nearest_name(mode, ACTION_MODES)}")
    return mode


class _RowPolicy:
    """A player's policy for any number of rows."""

    def __init__(self, player: Player, config: BattleConfig, seed: int, num_threads: int) -> None:
        self._player, self._config, self._seed, self._num_threads = player, config, seed, num_threads
        self._noise = BattleNoise([], [seed], 1, num_threads)
        self._policy: Policy = _Idle()  # until the number of rows is known
        self._fresh = np.zeros(0, np.bool_)  # (R,) whose battle's first decision is to come

    def __repr__(self) -> str:
        return f"{self._player.name!r} with seed {self._seed}"

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Reset the rows (R,) where the mask is true. Raises ValueError for anything else, see `check_mask`."""
        mask = check_mask(mask, len(self._fresh))
        if len(mask) != len(self._fresh):
            self._begin(len(mask))
        self._fresh[mask] = True
        self._policy.reset(mask)

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32. Raises ValueError for others and other rows."""
        check_observations(observations, len(self._fresh))
        if len(observations) != len(self._fresh):
            self._begin(len(observations))
        streams = list(self._noise.streams)
        for row in np.flatnonzero(self._fresh).tolist():
            seen = np.ascontiguousarray(observations[row], np.float32).tobytes()
            digest = hashlib.blake2b(self._seed.to_bytes(8, "little") + seen, digest_size=8).digest()
            streams[row] = np.random.default_rng(int.from_bytes(digest, "little"))
        self._noise.streams = tuple(streams)
        self._fresh[:] = False
        return self._policy.act(np.array(observations, np.float32))  # a player of a package may keep them

    def close(self) -> None:
        """Stop the threads. Later calls run in the caller's thread."""
        close_policy(self._policy)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`. Raises `ConfigError` if the player's policy is not resumable."""
        own = check_resumable(repr(self), self._policy).state_arrays()
        streams = np.array([_stream_words(stream) for stream in self._noise.streams], np.uint64)
        return {"fresh": self._fresh.copy(), "streams": streams.reshape(-1, _WORDS), **named("policy", own)}

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, with nothing changed."""
        kinds: dict[str, Kind] = {"fresh": ((rows,), np.bool_), "streams": ((rows, _WORDS), np.uint64)}
        check_arrays(repr(self), without(arrays, "policy"), kinds)
        trial = _RowPolicy(self._player, self._config, self._seed, self._num_threads)
        trial._begin(rows)
        try:
            check_resumable(repr(self), trial._policy).restore_arrays(part_of(arrays, "policy"), rows)
        except BaseException:
            trial.close()
            raise
        trial._fresh = arrays["fresh"].copy()
        for stream, words in zip(trial._noise.streams, arrays["streams"].tolist(), strict=True):
            _set_stream(stream, words)
        self.close()
        self._noise, self._policy, self._fresh = trial._noise, trial._policy, trial._fresh

    def _begin(self, rows: int) -> None:
        self.close()
        self._noise = BattleNoise(range(rows), [self._seed], 1, self._num_threads)
        self._policy = self._player.make(self._config, self._noise)
        self._policy.reset(np.ones(rows, np.bool_))
        self._fresh = np.ones(rows, np.bool_)


_WORDS, _LOW = 6, 2**64 - 1
"""Words of 64 bits of a generator's state: number and increment, two each; whether half a draw is left, and that."""


def _stream_words(stream: np.random.Generator) -> list[int]:
    state: Any = stream.bit_generator.state
    number, increment = state["state"]["state"], state["state"]["inc"]
    halves = [part for each in (number, increment) for part in (each >> 64, each & _LOW)]
    return [*halves, state["has_uint32"], state["uinteger"]]


def _set_stream(stream: np.random.Generator, words: Sequence[int]) -> None:
    numbers = {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]}
    state = {"state": numbers, "has_uint32": words[4] & 1, "uinteger": words[5] & 0xFFFFFFFF}
    stream.bit_generator.state = {"bit_generator": "PCG64", **state}


@dataclass(frozen=True)
class Handicapped:
    """Makes the policies of a player with a handicap."""

    make: Callable[[BattleConfig, BattleNoise], Policy]
    handicap: HandicapConfig
    seed: int

    def __call__(self, config: BattleConfig, noise: BattleNoise) -> Handicap:
        """The policy of the player, with the handicap."""
        return Handicap(self.make(config, noise), config, self.seed, **dataclasses.asdict(self.handicap))


def named_player(opponent: Opponent | str, seed: int = 0, *, action_mode: ActionMode = "sampled") -> Player:
    """The player of an opponent's name, ``NAME[@HANDICAP]``; docs/guide/opponents.md has the grammar.

    NAME is a scripted level, ``champion``, ``policy:PATH`` or a package's ``KIND[:ARGUMENT]``. The seed, in [0, 2**64),
    is that of the random choices of levels and handicaps; networks act in `action_mode`.

    Raises ConfigError for an unknown name, for ``self`` and ``auto``, which are for training, and for a policy that
    cannot be loaded; ValueError for a seed out of range.

    >>> named_player("expert@fire_rate=0.50").name
    'expert@fire_rate=0.5'
    """
    named = Opponent.parse(opponent).check_playable()
    player: Player
    if named.path is not None:
        player = dataclasses.replace(
            plugins.checkpoint_player(named.path, seed, action_mode=action_mode), name=str(named)
        )
    elif named.name in BASELINES:
        player = baseline(named.name, seed, action_mode=action_mode)
    else:
        player = plugins.player(named.name, seed, action_mode=action_mode)
    if named.handicap == HandicapConfig():
        return player
    make = Handicapped(player.make, named.handicap, check_seed(seed))
    return dataclasses.replace(player, name=str(named), make=make)


def baseline(name: str, seed: int = 0, *, action_mode: ActionMode = "sampled") -> Player:
    """One of `BASELINES`. Scripted levels draw their choices from `seed`, the champion acts in `action_mode`.

    Results are cached by the arguments. Raises ConfigError for an unknown name or mode, with the nearest valid one.
    Raises ValueError for a seed outside [0, 2**64).

    >>> baseline("random").action_mode
    'uniform'
    """
    return _baseline(name, check_seed(seed), check_action_mode(action_mode))


@cache
def _baseline(name: str, seed: int, action_mode: ActionMode) -> Player:
    if name not in BASELINES:
        raise ConfigError(f"unknown player {name!r}{nearest_name(name, BASELINES)}")
    if name == IDLE:
        return Player(name, "none", lambda config, noise: _Idle())
    if name == RANDOM:
        return Player(name, "uniform", lambda config, noise: _Random(noise))
    if name == CHAMPION:
        return _champion(action_mode)
    return Player(
        name, "scripted", lambda config, noise: opponents.make(name, seed, config, num_threads=noise.num_threads)
    )


def _champion(action_mode: ActionMode) -> Player:
    """The champion, with the training maps of all champions and the hashes of their weights."""
    documents = {name: read_document(champion_folder(name)) for name in CHAMPIONS}
    return Player(
        CHAMPION,
        action_mode,
        lambda config, noise: champion_player(champion_of(config), action_mode).make(config, noise),
        trained_maps=frozenset().union(*(document["trained_maps"] for document in documents.values())),
        identity={name: document["weights_sha256"] for name, document in documents.items()},
    )


class _Idle:
    """A policy whose actions are zeros."""

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Do nothing: the policy has no state."""

    def act(self, observations: Floats) -> Floats:
        """Zeros (R, A) float32 for observations (R, D)."""
        return np.zeros((len(observations), ACTION_DIM), np.float32)


class _Random:
    """A policy whose actions are uniformly random."""

    def __init__(self, noise: BattleNoise) -> None:
        self._noise = noise

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Do nothing: the policy has no state."""

    def act(self, observations: Floats) -> Floats:
        """Random actions (R, A) float32 for observations (R, D)."""
        return self._noise.uniform()
