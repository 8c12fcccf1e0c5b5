"""Past policies of a model as the opponents of its battles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_integer, nearest_name
from echelon_train.league.matchmaking.opponents import pfsp_weights
from echelon_train.opponents.actor import Actor
from echelon_train.opponents.pool import OpponentPool
from echelon_train.opponents.results import Results
from echelon_train.vec_env import Side

Draw = Literal["latest", "uniform", "pfsp"]
"""How opponents are drawn: always the newest; all alike; or by prioritised fictitious self-play, with the probability
(1 - x)^2 for a member that the learner beats with the share x (Vinyals et al., "Grandmaster level in StarCraft II using
multi-agent reinforcement learning", 2019)."""
NAME = re.compile(r"\d{10,16}")
"""Of a member: the steps at which it joined."""
DRAWS: tuple[Draw, ...] = get_args(Draw)


class PastPolicies(OpponentPool):
    """The opponents of `SelfPlayCallback`. Each battle draws one when it begins, and keeps it to its end.

    Give it to a `BattleVecEnv` of the same configuration as its opponent. Until the callback adds the first member,
    the opponents stand still. Members sample their actions, all in a single forward pass.

    Parameters
    ----------
    config
        The battle.
    side
        The learner's team, as in `BattleVecEnv`.
    draw
        See `Draw`.
    size
        Most members. Beyond it the oldest leaves when one joins.
    seed
        Of the draws, in [0, 2**64).

    Raises
    ------
    ConfigError
        For an unknown `draw` and a size that is no integer of at least 1; ValueError for a seed out of range.
    """

    def __init__(
        self, config: BattleConfig, *, side: Side = "both", draw: Draw = "pfsp", size: int = 20, seed: int = 0
    ) -> None:
        if draw not in DRAWS:
            raise ConfigError(f"draw: unknown {draw!r}{nearest_name(str(draw), DRAWS)}", "draw")
        self._rule = draw
        self.size = check_integer("size", size)
        self._members: dict[str, Actor] = {}
        team = config.blue if side == "red" else config.red
        super().__init__(config, self._weights, self._member, team_size=len(team), seed=seed, cache=0)

    def __repr__(self) -> str:
        return f"PastPolicies(draw={self._rule!r}, size={self.size}): {len(self._members)} members"

    @property
    def members(self) -> Mapping[str, Actor]:
        """The members by name, oldest first. The callback names them by the steps at which they joined."""
        return MappingProxyType(self._members)

    @property
    def results(self) -> dict[str, Results]:
        """The learner's results against the members."""
        return self.state.results

    @property
    def win_probabilities(self) -> dict[str, float]:
        """Of the learner against each member, from its last results and the rule of succession."""
        return {name: results.win_probability for name, results in self.results.items()}

    def add(self, members: Mapping[str, Actor], results: Mapping[str, Results] = MappingProxyType({})) -> None:
        """Add members, with the results against them. Beyond `size` the oldest leave, when their battles are over.

        Their names are numbers of steps with 10 to 16 digits, which increase. Raises ConfigError for others.
        """
        names = [*self._members, *members]
        steps = [int(name) if NAME.fullmatch(name) else -1 for name in names]
        if -1 in steps or sorted(set(steps)) != steps:
            raise ConfigError(f"members: expected names of 10 to 16 digits that increase, got {', '.join(names)}")
        for name, member in members.items():
            self._members[name], self.results[name] = member, results.get(name, Results())
            self._device = member.policy.device
        while len(self._members) > self.size:
            oldest = next(iter(self._members))
            del self._members[oldest], self.results[oldest]
        waiting = np.array([not name for name in self.names], np.bool_)
        if waiting.any():
            self.reset(np.repeat(waiting, self._team))

    def record(self, name: str, outcome: int) -> None:
        """Count a battle against a member that the learner has won (1), drawn (0) or lost (-1)."""
        if name in self._members:
            super().record(name, outcome)

    def _member(self, name: str) -> Actor:
        if name not in self._members:
            raise ConfigError(f"opponents: expected battles against {', '.join(self._members) or 'none'}, got {name!r}")
        return self._members[name]

    def _weights(self) -> dict[str, float]:
        """The rule of drawing."""
        names = [*self._members] or [""]
        if self._rule == "latest":
            return {names[-1]: 1.0}
        chances = [1.0] * len(names)
        if self._rule == "pfsp" and self._members:
            chances = pfsp_weights([*self.win_probabilities.values()]).tolist()
        return dict(zip(names, chances, strict=True))
