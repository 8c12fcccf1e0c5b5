"""Opponents of many kinds side by side: every battle has one of its own, drawn when it begins."""

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
from echelon_env.layout.observations import OBSERVATION_DIM
from echelon_env.opponents.policy import check_mask, check_observations
from echelon_env.opponents.scripted import Minds
from echelon_env.opponents.skill import LEVELS
from echelon_env.storage.arrays import Kind, check_arrays, named, part_of, without
from echelon_train.config.train import NetworkConfig
from echelon_train.league.self_play.policy_batch import StackedPolicies
from echelon_train.policy import BattlePolicy
from echelon_train.policy.distributions import RAW_DIM
from echelon_train.threads import torch_threads

Floats = NDArray[np.float32]

NAME_BYTES = 128
"""Longest name of an opponent, in UTF-8."""

LANE_COST = 2
"""What a lane costs beside its battles, in battles: its weights are copied and read."""

_LEVELS = list(LEVELS)


class Lineup:
    """A player that is somebody else in every battle, drawn when the battle begins and kept to its end.

    Scripted levels play as they are. Policies sample their actions, in inference mode; those of one shape act in a
    single forward pass. Their random numbers are torch's.

    Parameters
    ----------
    config
        The battle.
    draw
        Names the opponents of so many battles that begin: scripted levels, and what `load` knows.
    load
        The policy of a name; it is only read, and kept for as long as it plays.
    seed
        Of the scripted levels' choices.
    device
        Where policies act.
    cache
        Policies that are kept although nobody plays them, at most: those that played last.

    Raises
    ------
    ConfigError
        For an impossible number.
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
        self._minds = Minds(check_seed(seed), config)
        self._device = torch.device(device)
        self._cache = check_integer("cache", cache, 0)
        self._policies: OrderedDict[str, BattlePolicy] = OrderedDict()  # in the order in which they were last needed
        self._names: list[str] = []
        self._squads: dict[NetworkConfig, _Squad] = {}
        self._levels = np.zeros(0, np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> Lineup:
        """A player made alike that has not begun; the battles try a state on one before they take it."""
        seed, device, cache = self._minds.seed, self._device, self._cache
        return Lineup(self._config, self._draw, self._load, seed=seed, device=device, cache=cache)

    @property
    def names(self) -> tuple[str, ...]:
        """Who plays each battle (B,)."""
        return tuple(self._names)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Draw new opponents for the battles whose rows (R,) are masked; all rows of a battle are, or none.

        Raises ValueError for a mask that is none, and whatever `draw` and `load` raise, with nothing changed.
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
            self._minds.forget_all(len(mask))
            self._squads = {}
        self._minds.forget(mask)
        self._place(names, policies)
        for squad in self._squads.values():
            squad.forget(mask)

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32. Raises ValueError for others and other rows."""
        check_observations(observations, len(self._names) * self._team)
        if not self._names:
            self.reset(np.ones(len(observations), np.bool_))
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        scripted = np.repeat(self._levels >= 0, self._team)
        if scripted.any():
            seen = np.where(scripted[:, None], observations, np.float32(0.0))  # where others play, all are dead
            actions = self._minds.act(seen, np.repeat(np.maximum(self._levels, 0), self._team))
        for squad in self._squads.values():
            squad.act(observations, actions)
        return actions

    def refresh(self, name: str) -> None:
        """Load the policy of a name again, which has changed, also for the battles that it is playing."""
        if self._policies.pop(name, None) is not None:
            for squad in self._squads.values():
                squad.renew()
            self._place(self._names, self._policies_of(self._names))

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """See `Resumable`. What `draw` depends on is no part of it."""
        names = np.zeros((len(self._names), NAME_BYTES), np.uint8)
        for row, name in zip(names, self._names, strict=True):
            row[: len(name.encode())] = np.frombuffer(name.encode(), np.uint8)
        squads = self._squads_of(self._policies_of(self._names))
        states = {f"state{number}": squad.state.cpu().numpy().copy() for number, squad in enumerate(squads)}
        return {"names": names, **states, **named("minds", self._minds.state_arrays())}

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]], rows: int) -> None:
        """See `Resumable`. Raises ValueError, and whatever `load` raises, with nothing changed."""
        own, kinds = without(arrays, "minds"), dict[str, Kind]()
        kinds["names"] = (rows // self._team, NAME_BYTES), np.uint8
        check_arrays("the lineup", {"names": own.get("names")}, kinds)
        names = [bytes(row).rstrip(b"\0").decode() for row in own["names"]]
        policies = self._policies_of(names)
        for number, network in enumerate(dict.fromkeys(policy.network for policy in policies.values())):
            kinds[f"state{number}"] = (2, rows, network.width), np.float32
        check_arrays("the lineup", own, kinds)
        minds = part_of(arrays, "minds")
        self._minds.check_state("the lineup's scripted levels", minds, rows, {})
        self._minds.restore_arrays(minds)
        self._squads = {}
        self._place(names, policies)
        for number, squad in enumerate(self._squads_of(policies)):
            squad.state.copy_(torch.from_numpy(own[f"state{number}"]))

    def _policies_of(self, names: Sequence[str]) -> dict[str, BattlePolicy]:
        """The policies among those who are named, in the order of the names."""
        policies = {}
        for name in dict.fromkeys(names):
            if name and name not in LEVELS:
                if name not in self._policies:
                    self._policies[name] = self._load(name)
                self._policies.move_to_end(name)
                policies[name] = self._policies[name]
        return policies

    def _squads_of(self, policies: Mapping[str, BattlePolicy]) -> list[_Squad]:
        """The squads of the policies that play, in their order."""
        return [self._squads[network] for network in dict.fromkeys(policy.network for policy in policies.values())]

    def _place(self, names: Sequence[str], policies: Mapping[str, BattlePolicy]) -> None:
        """Let everybody play the battles that they are named for, and let go of policies that nobody needs."""
        self._names = list(names)
        self._levels = np.array([_LEVELS.index(name) if name in LEVELS else -1 for name in names], np.int64)
        for network in dict.fromkeys(policy.network for policy in policies.values()):
            if network not in self._squads:
                self._squads[network] = _Squad(network, len(names), self._team, self._device)
        for network, squad in self._squads.items():
            own = {name: policy for name, policy in policies.items() if policy.network == network}
            squad.arrange([own.get(name) for name in names])
        idle = [name for name in self._policies if name not in policies]
        for name in idle[: max(0, len(idle) - self._cache)]:
            del self._policies[name]


class _Squad:
    """Policies of one shape in the battles that they play.

    Battles of a policy are put into lanes of equal length, so that all lanes act at once; a lane that is not full has
    an empty place, whose rows see nothing.
    """

    def __init__(self, network: NetworkConfig, battles: int, team: int, device: torch.device) -> None:
        self._team, self._rows = team, battles * team
        self.state = torch.zeros(2, self._rows, network.width, device=device)
        """Hidden and cell state (2, R, units)."""
        self._stacked = StackedPolicies(network, device)
        self._lanes: list[BattlePolicy] = []
        self._index = torch.zeros(0, 0, dtype=torch.int64)

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Forget the rows (R,) where the mask is true."""
        self.state[:, torch.from_numpy(mask).to(self.state.device)] = 0.0

    def renew(self) -> None:
        """Copy the policies' weights again when they are next arranged."""
        self._lanes = []

    def arrange(self, policies: Sequence[BattlePolicy | None]) -> None:
        """Put the battles (B,) into lanes; None: another squad plays it."""
        battles: dict[BattlePolicy, list[int]] = {}
        for battle, policy in enumerate(policies):
            if policy is not None:
                battles.setdefault(policy, []).append(battle)
        length = lane_length([len(own) for own in battles.values()])
        lanes = [(each, own[i : i + length]) for each, own in battles.items() for i in range(0, len(own), length)]
        places = np.full((len(lanes), length), self._rows // self._team)  # an empty place is a battle that there is not
        for place, (_, own) in zip(places, lanes, strict=True):
            place[: len(own)] = own
        rows = places[:, :, None] * self._team + np.arange(self._team)
        self._index = torch.from_numpy(np.minimum(rows, self._rows).reshape(len(lanes), length * self._team))
        chosen = [policy for policy, _ in lanes]
        if chosen and chosen != self._lanes:
            self._stacked.set_lanes(chosen)
        self._lanes = chosen

    def act(self, observations: Floats, actions: Floats) -> None:
        """Write the actions of the squad's rows into `actions` (R, A), given all rows' observations (R, D)."""
        if not self._lanes:
            return
        seen = torch.zeros(self._rows + 1, OBSERVATION_DIM)
        seen[:-1] = torch.from_numpy(np.ascontiguousarray(observations, np.float32))
        index, device = self._index, self.state.device
        noise = torch.randn(self._rows + 1, RAW_DIM)[index].to(device)  # a row's, whichever lane it is in
        inside = index < self._rows
        state = torch.nn.functional.pad(self.state, (0, 0, 0, 1))[:, index.to(device)]
        with torch_threads(1):
            acted, after = self._stacked.act(
                seen[index].to(device), (state[0], state[1]), torch.zeros(index.shape, device=device), noise
            )
        rows = index[inside]
        self.state[:, rows.to(device)] = torch.stack(after)[:, inside.to(device)]
        actions[rows.numpy()] = acted.cpu()[inside].numpy()


def lane_length(battles: Sequence[int]) -> int:
    """Battles of a lane with which all lanes take the least time, given how many battles each policy has."""

    def cost(length: int) -> int:
        return sum(-(-count // length) for count in battles) * (length + LANE_COST)

    return min(range(1, max(battles, default=1) + 1), key=cost)


def _checked(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES or "\0" in name:
        raise ValueError(f"opponent: expected a name of 1 to {NAME_BYTES} bytes, got {name!r}")
    return name
