"""Many opponents at once: every battle has its own, drawn when the battle begins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import check_integer, check_seed
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents.policy import check_mask, check_observations
from echelon_env.opponents.scripted import ScriptedRows
from echelon_env.opponents.skill import LEVELS
from echelon_env.storage.arrays import Kind, check_arrays, named, part_of, without
from echelon_train.config.train import NetworkConfig
from echelon_train.league.self_play.policy_batch import Floats, PolicyBatch
from echelon_train.policy import BattlePolicy

NAME_BYTES = 128
"""Largest size of an opponent's name in UTF-8."""

_LEVELS = list(LEVELS)


class OpponentPool:
    """A player with its own opponent in every battle, drawn when the battle begins and kept to its end.

    Scripted levels play as usual. Policies sample their actions in inference mode; those of one shape act in a single
    forward pass. Their random numbers are torch's.

    Parameters
    ----------
    config
        The battle.
    draw
        Given a number of battles that begin, returns their opponents: scripted levels, and names that `load` knows.
    load
        Returns the policy of a name. The pool only reads it, and keeps it while it plays.
    seed
        Seed of the scripted levels.
    device
        Device of the policies.
    cache
        Largest number of policies kept in memory while they play no battle: the last used.

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
        seed: int = 0,
        device: torch.device | str = "cpu",
        cache: int = 16,
    ) -> None:
        self._config, self._draw, self._load = config, draw, load
        self._team = len(config.red)
        self._rows = ScriptedRows(check_seed(seed), config)
        self._device = torch.device(device)
        self._cache = check_integer("cache", cache, 0)
        self._policies: OrderedDict[str, BattlePolicy] = OrderedDict()  # in the order in which they were last needed
        self._names: list[str] = []
        self._batches: dict[NetworkConfig, PolicyBatch] = {}
        self._levels = np.zeros(0, np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpponentPool:
        """A new pool with the same arguments. The environment tries a state on it before it restores the state."""
        seed, device, cache = self._rows.seed, self._device, self._cache
        return OpponentPool(self._config, self._draw, self._load, seed=seed, device=device, cache=cache)

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
            self._batches = {}
        self._rows.clear(mask)
        self._place(names, policies)
        for batch in self._batches.values():
            batch.forget(mask)

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32. Raises ValueError for another shape or dtype."""
        check_observations(observations, len(self._names) * self._team)
        if not self._names:
            self.reset(np.ones(len(observations), np.bool_))
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        scripted = np.repeat(self._levels >= 0, self._team)
        if scripted.any():
            # rows of other opponents look like dead mechs
            seen = np.where(scripted[:, None], observations, np.float32(0.0))
            actions = self._rows.act(seen, np.repeat(np.maximum(self._levels, 0), self._team))
        for batch in self._batches.values():
            batch.act(observations, actions)
        return actions

    def refresh(self, name: str) -> None:
        """Load a policy that has changed again, also for the battles that it is playing."""
        if self._policies.pop(name, None) is not None:
            for batch in self._batches.values():
                batch.renew()
            self._place(self._names, self._policies_of(self._names))

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`. The state of `draw` is not included."""
        names = np.zeros((len(self._names), NAME_BYTES), np.uint8)
        for row, name in zip(names, self._names, strict=True):
            row[: len(name.encode())] = np.frombuffer(name.encode(), np.uint8)
        batches = self._batches_of(self._policies_of(self._names))
        states = {f"state{number}": batch.state.cpu().numpy().copy() for number, batch in enumerate(batches)}
        return {"names": names, **states, **named("scripted", self._rows.state_arrays())}

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, and what `load` raises, with nothing changed."""
        own, kinds = without(arrays, "scripted"), dict[str, Kind]()
        kinds["names"] = (rows // self._team, NAME_BYTES), np.uint8
        check_arrays("the opponent pool", {"names": own.get("names")}, kinds)
        names = [bytes(row).rstrip(b"\0").decode() for row in own["names"]]
        policies = self._policies_of(names)
        for number, network in enumerate(dict.fromkeys(policy.network for policy in policies.values())):
            kinds[f"state{number}"] = (2, rows, network.width), np.float32
        check_arrays("the opponent pool", own, kinds)
        scripted = part_of(arrays, "scripted")
        self._rows.check_state("the opponent pool's scripted levels", scripted, rows, {})
        self._rows.restore_arrays(scripted)
        self._batches = {}
        self._place(names, policies)
        for number, batch in enumerate(self._batches_of(policies)):
            batch.state.copy_(torch.from_numpy(own[f"state{number}"]))

    def _policies_of(self, names: Sequence[str]) -> dict[str, BattlePolicy]:
        """The policies among the named opponents, in the order of the names."""
        policies = {}
        for name in dict.fromkeys(names):
            if name and name not in LEVELS:
                if name not in self._policies:
                    self._policies[name] = self._load(name)
                self._policies.move_to_end(name)
                policies[name] = self._policies[name]
        return policies

    def _batches_of(self, policies: Mapping[str, BattlePolicy]) -> list[PolicyBatch]:
        """The batches of the policies that play, in their order."""
        return [self._batches[network] for network in dict.fromkeys(policy.network for policy in policies.values())]

    def _place(self, names: Sequence[str], policies: Mapping[str, BattlePolicy]) -> None:
        """Assign the battles to the named opponents, and drop idle policies beyond the cache."""
        self._names = list(names)
        self._levels = np.array([_LEVELS.index(name) if name in LEVELS else -1 for name in names], np.int64)
        for network in dict.fromkeys(policy.network for policy in policies.values()):
            if network not in self._batches:
                self._batches[network] = PolicyBatch(network, len(names), self._team, self._device)
        for network, batch in self._batches.items():
            own = {name: policy for name, policy in policies.items() if policy.network == network}
            batch.arrange([own.get(name) for name in names])
        idle = [name for name in self._policies if name not in policies]
        for name in idle[: max(0, len(idle) - self._cache)]:
            del self._policies[name]


def _checked(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES or "\0" in name:
        raise ValueError(f"opponent: expected a name of 1 to {NAME_BYTES} bytes, got {name!r}")
    return name
