"""The settings of a learner in a league: its role, its snapshots and its opponents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from echelon_env.config.schema import ConfigError, check_fields, quantity

RUNS_FOLDER = "runs"
"""Folder of a league with the runs of its learners and best responses, their logs, the plan and the lock."""

Role = Literal["main", "main_exploiter", "league_exploiter"]
Source = Literal["last", "pfsp", "scripted", "verification"]


@dataclass(frozen=True, kw_only=True)
class OpponentMixture:
    """Relative weights of the sources of opponents. The defaults are those of an AlphaStar main agent, and `last`.

    If a source has no opponents, its weight is distributed over the others. If none has any, scripted levels play.
    Raises `ConfigError` for values out of range and if all weights are 0.
    """

    REMOVED: ClassVar[frozenset[str]] = frozenset({"past", "skill", "skill_width"})
    last: float = quantity(0.1, "weight", 0, 1e6, help="its last snapshot: when it beats that, it leaves the next one")
    pfsp: float = quantity(0.5, "weight", 0, 1e6, help="trained members, by prioritised fictitious self-play")
    scripted: float = quantity(
        0.0, "weight", 0, 1e6, help="scripted levels near its strength, with the handicap `auto`"
    )
    verification: float = quantity(0.15, "weight", 0, 1e6, help="exploiters and past snapshots that it loses to")
    pfsp_weighting: Literal["hard", "var"] = field(
        default="hard", metadata={"help": "of pfsp; hard: prefer members that it loses to; var: prefer equal ones"}
    )

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not any(self.weights.values()):
            raise ConfigError("opponent mixture: expected a weight above 0, got none", "pfsp")

    @property
    def weights(self) -> dict[Source, float]:
        """The weights by source."""
        return {"last": self.last, "pfsp": self.pfsp, "scripted": self.scripted, "verification": self.verification}


@dataclass(frozen=True, kw_only=True)
class LeagueConfig:
    """Settings of a run that trains in a league. Raises `ConfigError` for values out of range."""

    path: str = field(default="", metadata={"help": "folder of the league to train in; empty: none"})
    role: Role = field(default="main", metadata={"help": "role of the learner: its opponents, and when it restarts"})
    agent: str = field(default="", metadata={"help": "name prefix of its snapshots; empty: the role"})
    self_play: float = quantity(
        0.35, "share", 0, 1, help="share of a main agent's battles against itself; the mixture has the others"
    )
    snapshot_every: int = quantity(1_000_000, "decisions", 1, 10**15, help="decisions between two snapshots, at least")
    beaten: float = quantity(
        0.7,
        "win rate",
        0,
        1,
        help="win rate that leads to a snapshot: a main agent's against its last one, an exploiter's against all",
    )
    patience: int = quantity(
        4, "intervals", 1, 10**6, help="intervals of `snapshot_every` after which a snapshot is left in any case"
    )
    restart: float = quantity(
        0.25,
        "probability",
        0,
        1,
        help="probability that a league exploiter restarts after a snapshot; main exploiters always do",
    )
    cache: int = quantity(16, "policies", 0, 10**6, help="unused opponents kept in memory")
    mixture: OpponentMixture = field(default_factory=OpponentMixture)

    def __post_init__(self) -> None:
        check_fields(self, "league.")

    @property
    def name(self) -> str:
        """The name prefix of snapshots."""
        return self.agent or self.role.replace("_", "-")
