"""Many opponents at once: every battle has its own, drawn when the battle begins."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.opponent import HandicapConfig
from echelon_env.config.schema import check_integer, check_seed
from echelon_env.config.skill import LEVELS
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.networks.config import NetworkConfig
from echelon_env.opponents.handicap import HandicapEffects
from echelon_env.opponents.policy import check_mask, check_observations
from echelon_env.opponents.scripted import ScriptedRows
from echelon_env.storage.arrays import Kind, check_arrays, named, part_of, without
from echelon_train.opponents.policy_batch import Floats, PolicyBatch
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.tensor_files import weights_of

NAME_BYTES = 1024
"""Largest size of an opponent's name in UTF-8."""

_LEVELS = list(LEVELS)


class OpponentPool:
    """A player with its own opponent in every battle, drawn when the battle begins and kept to its end.

    Policies sample their actions, in inference mode; those of one shape act in a single forward pass. Their random
    numbers are torch's.

    Parameters
    ----------
    config
        The battle.
    draw
        Names the opponents of so many battles that begin.
    load
        The policy of a player that is no scripted level, kept for as long as it plays. The actions that it rules out
        become those of the battle; otherwise it is only read.
    player
        The player of a name, a level or what `load` knows, and its present handicap, or None without one. By default
        the name itself.
    team_size
        Mechs of the opponent's team; by default red's.
    seed
        Of the scripted levels' choices and of the handicaps' errors.
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
        draw: Callable[[int], Sequence[str]],
        load: Callable[[str], BattlePolicy],
        *,
        player: Callable[[str], tuple[str, HandicapConfig | None]] = lambda name: (name, None),
        team_size: int | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        cache: int = 16,
        num_threads: int = 1,
        recorded: bool | None = None,
    ) -> None:
        self._config, self._draw, self._load, self._player = config, draw, load, player
        self._team = len(config.red) if team_size is None else team_size
        self._rows = ScriptedRows(check_seed(seed), config, num_threads)
        self._device = torch.device(device)
        self._recorded = self._device.type == "cuda" if recorded is None else recorded
        self._cache = check_integer("cache", cache, 0)
        self._policies: OrderedDict[str, BattlePolicy] = OrderedDict()  # in the order in which they were last needed
        self._names: list[str] = []
        self._effects: dict[str, HandicapEffects] = {}  # of the names in play that have a handicap
        self._batches: dict[NetworkConfig, PolicyBatch] = {}  # of the policies in play, in the order of the names
        self._idle: dict[NetworkConfig, PolicyBatch] = {}  # others, whose recordings are kept
        self._levels = np.zeros(0, np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpponentPool:
        """A new pool with the same arguments and no battles, on which a state can be tried."""
        return OpponentPool(
            self._config,
            self._draw,
            self._load,
            player=self._player,
            team_size=self._team,
            seed=self._rows.seed,
            device=self._device,
            cache=self._cache,
            num_threads=self._rows.num_threads,
            recorded=self._recorded,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The opponent of each battle (B,)."""
        return tuple(self._names)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Draw new opponents for the battles that the mask (R,) selects: all rows of a battle, or none.

        Raises ValueError for an invalid mask, and what `draw` and `load` raise, with nothing changed.
        """
        mask = check_mask(mask, len(self._names) * self._team)
        battles = mask.reshape(-1, self._team)
        if (battles.any(1) != battles.all(1)).any():
            raise ValueError(f"mask: expected all {self._team} rows of a battle or none, got {mask!r}")
        begin = np.flatnonzero(battles[:, 0]).tolist()
        names = list(self._names) if len(battles) == len(self._names) else [""] * len(battles)
        for battle, name in zip(begin, self._draw(len(begin)) if begin else (), strict=True):
            names[battle] = _checked(name)
        policies = self._policies_of(names)
        if len(names) != len(self._names):
            self._rows.allocate(len(mask))
            self._batches, self._idle, self._effects = {}, {}, {}
        self._rows.clear(mask)
        self._place(names, policies)
        for batch in self._batches.values():
            batch.forget(mask)
        for effects in self._effects.values():
            effects.reset(mask)

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
        return actions

    def _rows_of(self, name: str) -> NDArray[np.bool_]:
        """(R,) bool: the rows of the battles that a name plays."""
        return np.repeat(np.array([each == name for each in self._names]), self._team)

    def refresh(self, name: str) -> None:
        """Load a policy that has changed again, also for the battles that it is playing."""
        if self._policies.pop(name, None) is not None:
            for batch in self._batches.values():
                batch.renew()
            self._place(self._names, self._policies_of(self._names))

    def update_handicaps(self) -> None:
        """Take the present numbers of the handicaps, also for battles in progress."""
        for name, effects in self._effects.items():
            handicap = self._player(name)[1] or HandicapConfig()
            for number, value in dataclasses.asdict(handicap).items():
                setattr(effects, number, value)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`. The state of `draw` is not included."""
        names = np.zeros((len(self._names), NAME_BYTES), np.uint8)
        for row, name in zip(names, self._names, strict=True):
            row[: len(name.encode())] = np.frombuffer(name.encode(), np.uint8)
        batches = self._batches_of(self._policies_of(self._names))
        states = {f"state{number}": batch.state.cpu().numpy().copy() for number, batch in enumerate(batches)}
        arrays = {"names": names, **states, **named("scripted", self._rows.state_arrays())}
        for number, effects in enumerate(self._effects.values()):
            arrays |= named(f"handicap{number}", effects.state_arrays())
        return arrays

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, and whatever `load` raises, with nothing changed."""
        kinds = dict[str, Kind]()
        kinds["names"] = (rows // self._team, NAME_BYTES), np.uint8
        check_arrays("the opponent pool", {"names": arrays.get("names")}, kinds)
        names = [bytes(row).rstrip(b"\0").decode() for row in arrays["names"]]
        policies, handicapped = self._policies_of(names), self._new_effects(names, rows)
        parts = [f"handicap{number}" for number in range(len(handicapped))]
        own = without(arrays, "scripted", *parts)
        for number, network in enumerate(dict.fromkeys(policy.network for policy in policies.values())):
            kinds[f"state{number}"] = (2, rows, network.width), np.float32
        check_arrays("the opponent pool", own, kinds)
        scripted = part_of(arrays, "scripted")
        self._rows.check_state("the opponent pool's scripted levels", scripted, rows, {})
        for part, effects in zip(parts, handicapped.values(), strict=True):
            effects.restore_arrays(part_of(arrays, part), rows)
        self._rows.restore_arrays(scripted)
        self._batches, self._idle, self._effects = {}, {}, handicapped
        self._place(names, policies)
        for number, batch in enumerate(self._batches_of(policies)):
            batch.state.copy_(torch.from_numpy(own[f"state{number}"]))

    def _policies_of(self, names: Sequence[str]) -> dict[str, BattlePolicy]:
        """The policies among the players of names, in the order of the names."""
        policies = {}
        for name in dict.fromkeys(self._players_of(names)):
            if name and name not in LEVELS:
                if name not in self._policies:
                    self._policies[name] = self._load(name)
                    self._policies[name].set_battle(self._config)
                self._policies.move_to_end(name)
                policies[name] = self._policies[name]
        return policies

    def _players_of(self, names: Sequence[str]) -> list[str]:
        return [self._player(name)[0] if name else "" for name in names]

    def _new_effects(self, names: Sequence[str], rows: int) -> dict[str, HandicapEffects]:
        """Fresh effects of the handicapped names, in the order of the names."""
        made = {}
        for name in dict.fromkeys(names):
            handicap = self._player(name)[1] if name else None
            if handicap is not None:
                made[name] = HandicapEffects(self._config, self._rows.seed, handicap)
                made[name].reset(np.ones(rows, np.bool_))
        return made

    def _batches_of(self, policies: Mapping[str, BattlePolicy]) -> list[PolicyBatch]:
        """The batches of the policies that play, in their order."""
        return [self._batches[network] for network in dict.fromkeys(policy.network for policy in policies.values())]

    def _place(self, names: Sequence[str], policies: Mapping[str, BattlePolicy]) -> None:
        """Assign the battles to the named opponents, and drop idle policies beyond the cache."""
        self._names = list(names)
        players = self._players_of(names)
        self._levels = np.array([_LEVELS.index(each) if each in LEVELS else -1 for each in players], np.int64)
        # no others, and in this order: what is restored draws its noise in the same order
        networks = dict.fromkeys(policy.network for policy in policies.values())
        made = self._idle | self._batches
        for network in self._batches.keys() - networks:
            made[network].clear()
        self._batches = {
            network: made.pop(network)
            if network in made
            else PolicyBatch(network, len(names), self._team, self._device, self._recorded)
            for network in networks
        }
        self._idle = made
        for network, batch in self._batches.items():
            own = {name: policy for name, policy in policies.items() if policy.network == network}
            batch.arrange([own.get(each) for each in players])
        fresh = self._new_effects(names, len(names) * self._team)
        self._effects = {name: self._effects.get(name, effects) for name, effects in fresh.items()}
        idle = [name for name in self._policies if name not in policies]
        for name in idle[: max(0, len(idle) - self._cache)]:
            del self._policies[name]


def frozen_copy(policy: BattlePolicy, earlier: BattlePolicy | None = None) -> BattlePolicy:
    """A copy of a policy's present weights for playing: `earlier`, a copy of the same policy, or a new one."""
    if earlier is None:
        earlier = build_policy(policy.network)
        earlier.set_training_mode(False)
    present = weights_of(policy)
    for name, tensor in weights_of(earlier).items():
        tensor.copy_(present[name])
    return earlier


def _checked(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES or "\0" in name:
        raise ValueError(f"opponent: expected a name of 1 to {NAME_BYTES} bytes, got {name!r}")
    return name
