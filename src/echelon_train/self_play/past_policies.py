"""Past policies of a model as the opponents of its battles."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from echelon_env.config.battle import BattleConfig
from echelon_env.config.schema import ConfigError, check_integer, check_seed, nearest_name
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents.policy import check_mask, check_observations
from echelon_train.league.matchmaking.opponents import pfsp_weights
from echelon_train.vec_env import Side

Floats = NDArray[np.float32]

Draw = Literal["latest", "uniform", "pfsp"]
"""How opponents are drawn: always the newest; all alike; or by prioritised fictitious self-play, with the probability
(1 - x)^2 for a member that the learner beats with the share x (Vinyals et al., "Grandmaster level in StarCraft II using
multi-agent reinforcement learning", 2019)."""
NAME = re.compile(r"\d{10,16}")
"""Of a member: the steps at which it joined."""
DRAWS: tuple[Draw, ...] = get_args(Draw)


@dataclass
class PastPolicy:
    """A past policy, with the learner's last results against it."""

    policy: BasePolicy
    mean: Floats  # of the observations, 0 without `VecNormalize`
    scale: Floats  # of the normalised observations, 1 without it
    clip: float
    results: deque[int] = field(default_factory=deque)  # 1 win, 0 draw, -1 loss

    @property
    def win_probability(self) -> float:
        """Of the learner against it, a draw as half a win, by the rule of succession."""
        score = sum(0.5 * (result + 1) for result in self.results)
        return (score + 1) / (len(self.results) + 2)


class PastPolicies:
    """The opponents of `SelfPlayCallback`. Each battle draws one when it begins, and keeps it to its end.

    Give it to a `BattleVecEnv` of the same configuration as its opponent. Until the callback adds the first member,
    the opponents stand still. Members sample their actions.

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
    window
        Number of the last results against a member that count.
    seed
        Of the draws, in [0, 2**64).

    Raises
    ------
    ConfigError
        For an unknown `draw` and a number that is no integer of at least 1; ValueError for a seed out of range.
    """

    def __init__(
        self,
        config: BattleConfig,
        *,
        side: Side = "both",
        draw: Draw = "pfsp",
        size: int = 20,
        window: int = 100,
        seed: int = 0,
    ) -> None:
        if draw not in DRAWS:
            raise ConfigError(f"draw: unknown {draw!r}{nearest_name(str(draw), DRAWS)}", "draw")
        self._draw = draw
        self.size, self.window = check_integer("size", size), check_integer("window", window)
        self._generator = np.random.default_rng(check_seed(seed))
        self._team = len(config.blue if side == "red" else config.red)
        self._members: dict[str, PastPolicy] = {}
        self._leaving: dict[str, PastPolicy] = {}  # former members whose battles are not over
        self._names: list[str] = []  # of the battles' opponents; empty before the first reset
        self._begins = np.zeros(0, np.bool_)
        self._state: tuple[Floats, ...] = ()  # (layers, R, units) each, of recurrent policies

    def __repr__(self) -> str:
        return f"PastPolicies(draw={self._draw!r}, size={self.size}): {len(self._members)} members"

    @property
    def members(self) -> Mapping[str, PastPolicy]:
        """The members by name, oldest first. The callback names them by the steps at which they joined."""
        return MappingProxyType(self._members)

    @property
    def names(self) -> tuple[str, ...]:
        """The opponent of each battle (B,), as in the infos of `BattleVecEnv`."""
        return tuple(self._names)

    @property
    def win_probabilities(self) -> dict[str, float]:
        """Of the learner against each member, from its last results and the rule of succession."""
        return {name: member.win_probability for name, member in self._members.items()}

    def add(self, members: Mapping[str, PastPolicy]) -> None:
        """Add members. Beyond `size` the oldest leave, when their battles are over.

        Their names are numbers of steps with 10 to 16 digits, which increase. Raises ConfigError for others.
        """
        names = [*self._members, *members]
        steps = [int(name) if NAME.fullmatch(name) else -1 for name in names]
        if -1 in steps or sorted(set(steps)) != steps:
            raise ConfigError(f"members: expected names of 10 to 16 digits that increase, got {', '.join(names)}")
        for name, member in members.items():
            member.results = deque(member.results, self.window)
            self._members[name] = member
        while len(self._members) > self.size:
            oldest = next(iter(self._members))
            self._leaving[oldest] = self._members.pop(oldest)
        self._begin([battle for battle, each in enumerate(self._names) if not each])

    def note(self, name: str, outcome: int) -> None:
        """Note a battle's outcome for the learner against a member: 1 win, 0 draw, -1 loss."""
        if name in self._members:
            self._members[name].results.append(outcome)

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Draw opponents for the battles that the mask (R,) selects. Raises ValueError for an invalid mask."""
        mask = check_mask(mask, len(self._begins))
        if len(mask) % self._team:
            raise ConfigError(f"PastPolicies: expected rows of teams of {self._team} mechs, got {len(mask)} rows")
        if len(mask) != len(self._begins):
            self._begins, self._state = np.ones(len(mask), np.bool_), ()
            self._names = [""] * (len(mask) // self._team)
        self._begin(np.flatnonzero(mask.reshape(-1, self._team)[:, 0]).tolist())

    def act(self, observations: Floats) -> Floats:
        """Actions (R, A) float32 for observations (R, D) float32. Raises ValueError for another shape."""
        check_observations(observations, len(self._begins))
        actions = np.zeros((len(observations), ACTION_DIM), np.float32)
        owners = np.repeat(np.array(self._names, object), self._team)
        for name, member in (self._members | self._leaving).items():
            rows = np.flatnonzero(owners == name)
            if rows.size:
                seen = np.clip((observations[rows] - member.mean) * member.scale, -member.clip, member.clip)
                state = tuple(part[:, rows] for part in self._state) or None
                actions[rows], state = member.policy.predict(seen, state, self._begins[rows], deterministic=False)
                self._keep(state, rows, len(observations))
        self._begins[:] = False
        return actions

    def _keep(self, state: tuple[Floats, ...] | None, rows: NDArray[np.int64], total: int) -> None:
        """Keep the recurrent state of some rows."""
        if state is None:
            return
        if not self._state:
            self._state = tuple(np.zeros((len(part), total, part.shape[2]), np.float32) for part in state)
        for kept, part in zip(self._state, state, strict=True):
            kept[:, rows] = part

    def _begin(self, battles: Sequence[int]) -> None:
        """Draw the opponents of battles."""
        names = list(self._members)
        if not names or not battles:
            return
        chances = np.ones(len(names))
        if self._draw == "latest":
            chances = np.eye(len(names))[-1]
        elif self._draw == "pfsp":
            chances = pfsp_weights([member.win_probability for member in self._members.values()])
        drawn = self._generator.choice(len(names), len(battles), p=chances / chances.sum())
        for battle, number in zip(battles, drawn.tolist(), strict=True):
            self._names[battle] = names[number]
            self._begins[battle * self._team : (battle + 1) * self._team] = True
        self._leaving = {name: member for name, member in self._leaving.items() if name in self._names}
