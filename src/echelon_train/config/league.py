"""The settings of a learner in a league: its role, its snapshots and where its opponents come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from echelon_env.config.schema import ConfigError, check_fields, quantity

Role = Literal["main", "main_exploiter", "league_exploiter", "best_response"]
Source = Literal["self", "past", "pfsp", "skill", "scripted", "verification"]


@dataclass(frozen=True, kw_only=True)
class OpponentMixture:
    """Where opponents come from: the weight of each source, of any sum; by default an AlphaStar main agent's.

    The weight of a source that has nobody to offer goes to the others. Raises `ConfigError` for values out of range and
    if all weights are 0.
    """

    self_play: float = quantity(0.35, "weight", 0, 1e6, help="the learner's present self")
    past: float = quantity(0.0, "weight", 0, 1e6, help="its past selves, all alike")
    pfsp: float = quantity(0.5, "weight", 0, 1e6, help="members that learned, by prioritised fictitious self-play")
    skill: float = quantity(0.0, "weight", 0, 1e6, help="members that learned, by nearness of rating")
    scripted: float = quantity(0.0, "weight", 0, 1e6, help="scripted levels, by prioritised fictitious self-play")
    verification: float = quantity(0.15, "weight", 0, 1e6, help="exploiters and past selves that it fails against")
    pfsp_weighting: Literal["hard", "var"] = field(
        default="hard", metadata={"help": "hard: those that it loses to; var: its equals"}
    )
    skill_width: float = quantity(200.0, "points", 1, 4000, help="standard deviation of the bell curve of `skill`")

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not any(self.weights.values()):
            raise ConfigError("opponent mixture: expected a weight above 0, got none", "pfsp")

    @property
    def weights(self) -> dict[Source, float]:
        """The weight of every source."""
        return {
            "self": self.self_play, "past": self.past, "pfsp": self.pfsp, "skill": self.skill,
            "scripted": self.scripted, "verification": self.verification,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LeagueConfig:
    """A run's place in a league. Raises `ConfigError` for values out of range."""

    path: str = field(default="", metadata={"help": "folder of the league to train in; empty: none"})
    role: Role = field(default="main", metadata={"help": "whom the learner meets, and when it begins anew"})
    target: str = field(default="", metadata={"help": "member that a best response meets; of no other role"})
    agent: str = field(default="", metadata={"help": "what its snapshots are called, before their number; or the role"})
    snapshot_every: int = quantity(
        1_000_000, "samples", 1, 10**15, help="between two snapshots; an exploiter's come no faster"
    )
    beaten: float = quantity(
        0.7, "win rate", 0, 1, help="an exploiter that has it against all that it meets leaves a snapshot"
    )
    patience: int = quantity(4, "snapshots", 1, 10**6, help="times of a snapshot after which an exploiter leaves one")
    restart: float = quantity(
        0.25, "probability", 0, 1, help="that a league exploiter begins anew after a snapshot; a main exploiter does"
    )
    cache: int = quantity(16, "policies", 0, 10**6, help="that are kept in memory although nobody plays them")
    mixture: OpponentMixture = field(default_factory=OpponentMixture)

    def __post_init__(self) -> None:
        check_fields(self, "league.")
        if bool(self.target) != (self.role == "best_response"):
            expected = "the member that it is to be against" if self.role == "best_response" else "nothing"
            raise ConfigError(
                f"league.target: expected {expected}, as the role is {self.role}, got {self.target!r}", "league.target"
            )

    @property
    def name(self) -> str:
        """What snapshots are called, before their number."""
        return self.agent or self.role.replace("_", "-")
