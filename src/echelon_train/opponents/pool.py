"""Many opponents at once: every battle has its own, drawn when the battle begins."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import AUTO, HandicapConfig
from echelon_env.config.schema import ConfigError, check_integer, check_seed
from echelon_env.config.skill import LEVELS
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents.handicap import HandicapEffects
from echelon_env.opponents.policy import (
    Policy,
    Resumable,
    check_mask,
    check_observations,
    check_resumable,
    close_policy,
)
from echelon_env.opponents.scripted import ScriptedRows
from echelon_env.storage.arrays import Kind, check_arrays, named, part_of, without
from echelon_train.opponents.actor import Actor
from echelon_train.opponents.handicaps import AutoHandicap, handicapped, player_of, present_handicap
from echelon_train.opponents.policy_batch import Floats, PolicyBatch
from echelon_train.opponents.results import Results
from echelon_train.policy import BattlePolicy

NAME_BYTES = 1024
"""Largest size of an opponent's name in UTF-8."""

_LEVELS = list(LEVELS)

Draw = Callable[[], Mapping[str, float]]
"""A rule of drawing: the names of the opponents and their weights at present.

A name is a member's, or NAME@HANDICAP as in `echelon_env.config.Opponent`. The empty name stands still."""


@dataclass
class PoolState:
    """Everything that draws, results and handicaps of an `OpponentPool` depend on."""

    draws: int = 0
    results: dict[str, Results] = field(default_factory=dict)
    handicaps: dict[str, AutoHandicap] = field(default_factory=dict)
    """The handicaps ``auto``, by the names that have one."""


class OpponentPool:
    """A player with its own opponent in every battle, drawn when the battle begins and kept to its end.

    Policies sample their actions, in inference mode; those of one kind act in a single forward pass. Their random
    numbers are torch's. The learner's results against each opponent are counted by `record`.

    Parameters
    ----------
    config
        The battle.
    draw
        The rule by which opponents are drawn, independently of each other.
    load
        The policy of a player that is no scripted level, kept for as long as it plays. The actions that a
        `BattlePolicy` rules out become those of the battle; otherwise it is only read. A policy without a network
        serves this pool only.
    known
        Opponents that are counted, and have their handicaps, from the start.
    win_rate
        The learner's win rate that the handicaps ``auto`` aim at.
    team_size
        Mechs of the opponent's team; by default red's.
    seed
        Of the draws, of the scripted levels' choices and of the handicaps' errors.
    device
        Device of the policies.
    cache
        Largest number of policies kept in memory while they play no battle: the last used.
    num_threads
        Threads that share the mechs of scripted levels.
    recorded
        Whether decisions of policies are recorded in CUDA graphs; by default on CUDA. See `PolicyBatch`.

    Raises
    ------
    ConfigError
        For an invalid number.
    """

    def __init__(
        self,
        config: BattleConfig,
        draw: Draw,
        load: Callable[[str], BattlePolicy | Actor | Policy],
        *,
        known: Sequence[str] = (),
        win_rate: float = 0.5,
        team_size: int | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        cache: int = 16,
        num_threads: int = 1,
        recorded: bool | None = None,
    ) -> None:
        self._config, self._draw, self._load = config, draw, load
        self._team = len(config.red) if team_size is None else team_size
        self._rows = ScriptedRows(check_seed(seed), config, num_threads)
        self._device = torch.device(device)
        self._wants_recording = recorded
        self._cache = check_integer("cache", cache, 0)
        self._known, self._remaining = tuple(known), 1.0
        self.state = PoolState(
            results={name: Results() for name in known},
            handicaps={name: AutoHandicap(win_rate) for name in known if name.endswith(f"@{AUTO}")},
        )
        self._clear()

    @property
    def _recorded(self) -> bool:
        wanted = self._wants_recording
        return self._device.type == "cuda" if wanted is None else wanted

    def _clear(self) -> None:
        """Forget all battles and policies."""
        self._loaded: OrderedDict[str, Actor | Policy] = OrderedDict()  # by player, in the order of their last use
        self._names: list[str] = []
        self._effects: dict[str, HandicapEffects] = {}  # of the names in play that have a handicap
        self._batches: dict[Hashable, PolicyBatch] = {}  # by the kinds in play, in the order of the names
        self._idle: dict[Hashable, PolicyBatch] = {}  # others, whose recordings are kept
        self._others: dict[str, Policy] = {}  # by player: those in play that are no network
        self._levels = np.zeros(0, np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpponentPool:
        """A new pool with the same arguments and no battles, on which a state can be tried."""
        trial = copy.copy(self)
        trial._rows = ScriptedRows(self._rows.seed, self._config, self._rows.num_threads)
        trial.state = copy.deepcopy(self.state)
        trial._clear()
        return trial

    @property
    def names(self) -> tuple[str, ...]:
        """The opponent of each battle (B,)."""
        return tuple(self._names)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Draw new opponents for the battles that the mask (R,) selects: all rows of a battle, or none.

        Raises ValueError for an invalid mask, and what `draw` and `load` raise, with nothing changed.
        """
        mask = check_mask(mask, len(self._names) * self._team)
        if len(mask) % self._team:
            raise ConfigError(f"opponents: expected rows of teams of {self._team} mechs, got {len(mask)} rows")
        battles = mask.reshape(-1, self._team)
        if (battles.any(1) != battles.all(1)).any():
            raise ValueError(f"mask: expected all {self._team} rows of a battle or none, got {mask!r}")
        begin = np.flatnonzero(battles[:, 0]).tolist()
        names = list(self._names) if len(battles) == len(self._names) else [""] * len(battles)
        for battle, name in zip(begin, self._drawn(len(begin)), strict=True):
            names[battle] = name
        loaded = self._loaded_of(names)
        self.state.draws += len(begin)
        if len(names) != len(self._names):
            self._rows.allocate(len(mask))
            self._batches, self._idle, self._effects, self._others = {}, {}, {}, {}
        self._rows.clear(mask)
        self._place(names, loaded)
        for batch in self._batches.values():
            batch.forget(mask)
        for player, policy in self._others.items():
            policy.reset(mask & self._rows_of(player))
        for effects in self._effects.values():
            effects.reset(mask)

    def _drawn(self, count: int) -> list[str]:
        """The names of the next opponents."""
        if not count:
            return []
        weights = self._draw()
        names, shares = [_checked(name) for name in weights], np.array([*weights.values()])
        generator = np.random.default_rng([self._rows.seed, self.state.draws])
        return [names[each] for each in generator.choice(len(names), count, p=shares / shares.sum())]

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32. Raises ValueError for another shape or dtype."""
        check_observations(observations, len(self._names) * self._team)
        if not self._names:
            self.reset(np.ones(len(observations), np.bool_))
        rows = {name: self._rows_of(name) for name in self._effects}
        seen = observations
        for name, effects in self._effects.items():
            observed = effects.observe(observations)
            if observed is not observations:
                seen = np.where(rows[name][:, None], observed, seen)
        actions = self._decide(seen)
        for name, effects in self._effects.items():
            actions[rows[name]] = effects.execute(observations, actions)[rows[name]]
        return actions

    def _decide(self, observations: Floats) -> Floats:
        """The players' actions (R, A), without handicaps."""
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        scripted = np.repeat(self._levels >= 0, self._team)
        if scripted.all():
            actions = self._rows.act(observations, np.repeat(self._levels, self._team))
        elif scripted.any():
            seen = np.where(scripted[:, None], observations, np.float32(0.0))  # where others play, all are dead
            actions = self._rows.act(seen, np.repeat(np.maximum(self._levels, 0), self._team))
        for batch in self._batches.values():
            batch.act(observations, actions)
        for player, policy in self._others.items():
            own = self._rows_of(player)
            actions[own] = policy.act(np.where(own[:, None], observations, np.float32(0.0)))[own]
        return actions

    def _rows_of(self, name: str) -> NDArray[np.bool_]:
        """(R,) bool: the rows of the battles that a name plays, or a player of any handicap."""
        return np.repeat(np.array([name in (each, player_of(each)) for each in self._names]), self._team)

    def close(self) -> None:
        """Stop the threads of the policies. Later calls run in the caller's thread."""
        for policy in (self._rows, *self._loaded.values()):
            close_policy(policy)

    def refresh(self, name: str) -> None:
        """Load a policy that has changed again, also for the battles that it is playing."""
        if self._loaded.pop(name, None) is not None:
            self._place(self._names, self._loaded_of(self._names))

    def record(self, name: str, outcome: int) -> None:
        """Count a battle that the learner has won (1), drawn (0) or lost (-1).

        A handicap ``auto`` that changes with it does so in battles in progress, too.
        """
        results = self.state.results.setdefault(name, Results())
        results.add(outcome)
        automatic = self.state.handicaps.get(name)
        if automatic is not None and automatic.follow(results):
            self._update_handicaps()

    def forget(self) -> None:
        """Forget the results against all opponents, and keep the handicaps."""
        self.state.results = {name: Results() for name in self._known}
        for automatic in self.state.handicaps.values():
            automatic.since = 0

    def set_remaining(self, remaining: float) -> None:
        """Set the handicaps that have schedules to a share of the run that is left, also in battles in progress."""
        self._remaining = remaining
        self._update_handicaps()

    def _update_handicaps(self) -> None:
        """Take the present numbers of the handicaps."""
        for name, effects in self._effects.items():
            effects.handicap = self._handicap(name) or HandicapConfig()

    def handicaps(self) -> dict[str, dict[str, float]]:
        """The present numbers of the handicaps that change, by the names of their opponents."""
        found: dict[str, dict[str, float]] = {}
        for name in self.state.results:
            opponent, handicap = handicapped(name), self._handicap(name)
            if opponent is not None and (opponent.auto or opponent.schedule):
                numbers = opponent.schedule.given if opponent.schedule else ("fire_rate", "reaction_delay")
                found[name] = {number: getattr(handicap, number) for number in numbers}
        return found

    def _handicap(self, name: str) -> HandicapConfig | None:
        """The present handicap of an opponent; None if it has none."""
        return present_handicap(name, self.state.handicaps, self._remaining)

    def restore(self, state: PoolState) -> None:
        """Continue from another state. Raises `ConfigError` if it is of other opponents."""
        own = self.state
        if own.handicaps.keys() != state.handicaps.keys() or not own.results.keys() <= state.results.keys():
            raise ConfigError(
                f"opponents: expected results against {[*own.results]} and handicaps of {[*own.handicaps]}, got "
                f"{[*state.results]} and {[*state.handicaps]}"
            )
        self.state = state

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`. The `state` is not included."""
        names = np.zeros((len(self._names), NAME_BYTES), np.uint8)
        for row, name in zip(names, self._names, strict=True):
            row[: len(name.encode())] = np.frombuffer(name.encode(), np.uint8)
        states = {
            f"state{number}": batch.state.cpu().numpy().copy() for number, batch in enumerate(self._batches.values())
        }
        arrays = {"names": names, **states, **named("scripted", self._rows.state_arrays())}
        for number, effects in enumerate(self._effects.values()):
            arrays |= named(f"handicap{number}", effects.state_arrays())
        for number, (player, policy) in enumerate(self._others.items()):
            arrays |= named(f"other{number}", check_resumable(player, policy).state_arrays())
        return arrays

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, and whatever `load` raises, with nothing changed."""
        kinds = dict[str, Kind]()
        kinds["names"] = (rows // self._team, NAME_BYTES), np.uint8
        check_arrays("the opponent pool", {"names": arrays.get("names")}, kinds)
        names = [bytes(row).rstrip(b"\0").decode() for row in arrays["names"]]
        loaded, handicapped = self._loaded_of(names), self._new_effects(names, rows)
        others = [check_resumable(player, each) for player, each in loaded.items() if not isinstance(each, Actor)]
        parts: dict[str, HandicapEffects | Resumable]
        parts = {f"handicap{number}": effects for number, effects in enumerate(handicapped.values())}
        parts |= {f"other{number}": policy for number, policy in enumerate(others)}
        own = without(arrays, "scripted", *parts)
        for number, actor in enumerate(_kinds(loaded).values()):
            kinds[f"state{number}"] = (2, rows, actor.units), np.float32
        check_arrays("the opponent pool", own, kinds)
        scripted = part_of(arrays, "scripted")
        self._rows.check_state("the opponent pool's scripted levels", scripted, rows, {})
        for name, part in parts.items():
            part.restore_arrays(part_of(arrays, name), rows)
        self._rows.restore_arrays(scripted)
        self._batches, self._idle, self._effects, self._others = {}, {}, handicapped, {}
        self._place(names, loaded, restored=True)
        for number, batch in enumerate(self._batches.values()):
            batch.state.copy_(torch.from_numpy(own[f"state{number}"]))

    def _loaded_of(self, names: Sequence[str]) -> dict[str, Actor | Policy]:
        """The policies among the players of names, in the order of the names."""
        found = {}
        for player in dict.fromkeys(map(player_of, names)):
            if player and player not in LEVELS:
                if player not in self._loaded:
                    self._loaded[player] = self._prepared(self._load(player))
                self._loaded.move_to_end(player)
                found[player] = self._loaded[player]
        return found

    def _prepared(self, loaded: BattlePolicy | Actor | Policy) -> Actor | Policy:
        actor = Actor(loaded) if isinstance(loaded, BattlePolicy) else loaded
        if isinstance(actor, Actor) and isinstance(actor.policy, BattlePolicy):
            actor.policy.set_battle(self._config)
        return actor

    def _new_effects(self, names: Sequence[str], rows: int) -> dict[str, HandicapEffects]:
        """Fresh effects of the handicapped names, in the order of the names."""
        made = {}
        for name in dict.fromkeys(names):
            handicap = self._handicap(name)
            if handicap is not None:
                made[name] = HandicapEffects(self._config, self._rows.seed, handicap)
                made[name].reset(np.ones(rows, np.bool_))
        return made

    def _place(self, names: Sequence[str], loaded: Mapping[str, Actor | Policy], restored: bool = False) -> None:
        """Assign the battles to the named opponents, and drop idle policies beyond the cache.

        `restored` policies without a network have their memory; others that come begin with none.
        """
        self._names = list(names)
        players = list(map(player_of, names))
        self._levels = np.array([_LEVELS.index(each) if each in LEVELS else -1 for each in players], np.int64)
        # no others, and in this order: what is restored draws its noise in the same order
        kinds = _kinds(loaded)
        made = self._idle | self._batches
        for kind in self._batches.keys() - kinds:
            made[kind].clear()
        self._batches = {
            kind: made.pop(kind)
            if kind in made
            else PolicyBatch(actor, len(names), self._team, self._device, self._recorded)
            for kind, actor in kinds.items()
        }
        self._idle = made
        for kind, batch in self._batches.items():
            own = {name: each for name, each in loaded.items() if isinstance(each, Actor) and each.kind == kind}
            batch.arrange([own.get(each) for each in players])
        earlier, self._others = self._others, {n: each for n, each in loaded.items() if not isinstance(each, Actor)}
        for player in self._others.keys() - (self._others if restored else earlier).keys():
            self._others[player].reset(np.ones(len(names) * self._team, np.bool_))
        fresh = self._new_effects(names, len(names) * self._team)
        self._effects = {name: self._effects.get(name, effects) for name, effects in fresh.items()}
        idle = [name for name in self._loaded if name not in loaded]
        for name in idle[: max(0, len(idle) - self._cache)]:
            close_policy(self._loaded.pop(name))


def _kinds(loaded: Mapping[str, Actor | Policy]) -> dict[Hashable, Actor]:
    """A policy of each kind, in the order of the kinds' first ones."""
    found: dict[Hashable, Actor] = {}
    for each in loaded.values():
        if isinstance(each, Actor):
            found.setdefault(each.kind, each)
    return found


def _checked(name: str) -> str:
    if not isinstance(name, str) or len(name.encode()) > NAME_BYTES or "\0" in name:
        raise ValueError(f"opponent: expected a name of at most {NAME_BYTES} bytes, got {name!r}")
    return name
