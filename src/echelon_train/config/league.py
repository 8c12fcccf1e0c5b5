"""The settings of a learner in a league: its role, its stages and its opponents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from echelon_env.config.schema import check_fields, quantity

RUNS_FOLDER = "runs"
"""Folder of a league with the runs of its learners and best responses, their logs, the plan and the lock."""

Role = Literal["main", "exploiter"]


@dataclass(frozen=True, kw_only=True)
class LeagueConfig:
    """Settings of a run that trains in a league. Raises `ConfigError` for values out of range."""

    path: str = field(default="", metadata={"help": "folder of the league to train in; empty: none"})
    role: Role = field(
        default="main",
        metadata={"help": "main: learns to beat all members; exploiter: is a best response to a main agent"},
    )
    agent: str = field(default="", metadata={"help": "name prefix of its snapshots; empty: the role"})
    stage: int = quantity(
        2_000_000,
        "decisions",
        1,
        10**15,
        help="decisions between two snapshots; PPO's schedules restart after each",
    )
    self_play: float = quantity(0.4, "share", 0, 1, help="share of a main agent's battles against itself")
    scripted: float = quantity(0.2, "share", 0, 1, help="share of a main agent's other battles against scripted levels")
    cache: int = quantity(16, "policies", 0, 10**6, help="unused opponents kept in memory")

    def __post_init__(self) -> None:
        check_fields(self, "league.")

    @property
    def name(self) -> str:
        """The name prefix of snapshots."""
        return self.agent or self.role
