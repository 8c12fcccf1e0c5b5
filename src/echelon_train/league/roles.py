"""What learners are for in a league: whom they meet, when they leave a snapshot, and when they begin anew.

The roles are AlphaStar's: Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement learning",
2019, with its pseudocode. A main agent shall win against everybody. A main exploiter looks for the weaknesses of the
main agent, a league exploiter for what everybody is weak against; both begin anew when they have found something, for
they need not be good at anything else. A best response is trained against one member and leaves nothing: it tells how
much can be won against that one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from echelon_env.schema import ConfigError, check_fields, quantity
from echelon_train.league.matchmaking import Candidate, Learner, OpponentMixture, draw

Role = Literal["main", "main_exploiter", "league_exploiter", "best_response"]

SELF: Final = "(self)"
"""The learner as it is now, among its opponents; no member can be called that."""

HOPELESS: Final = 0.1
"""Win probability below which a main exploiter turns to the main agent's past selves, to learn from those first."""

JUDGED: Final = 20
"""Battles against an opponent from which on a win rate against it means something."""


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


def choose_opponents(
    settings: LeagueConfig,
    learner: Learner,
    candidates: Sequence[Candidate],
    main: Sequence[str],
    generator: np.random.Generator,
    count: int,
) -> list[str]:
    """Who meets a learner in so many battles that begin, independent draws; `SELF` among them for itself.

    Parameters
    ----------
    settings
        The role, and the mixture of a main agent.
    learner
        Who looks for opponents.
    candidates
        Members that it may meet, the oldest first.
    main
        Those of them that are the main agent's snapshots, the oldest first.
    generator
        Of the draws.
    count
        Battles that begin.

    Raises
    ------
    ConfigError
        If there is nobody to meet: an exploiter needs a main agent, or anybody who has learned.
    """
    if settings.role == "best_response":
        return [settings.target] * count
    if settings.role == "main":
        drawn = draw(settings.mixture, learner, candidates, generator, count)
        return [SELF if each.source == "self" else each.name for each in drawn]
    if settings.role == "main_exploiter":
        if not main:
            raise ConfigError("a main exploiter needs a main agent to exploit: the league has no snapshot of one")
        snapshots = [each for each in candidates if each.name in main]
        newest = snapshots[-1]
        if newest.games < JUDGED or newest.win_probability >= HOPELESS or len(snapshots) == 1:
            return [newest.name] * count
        past = [dataclasses.replace(each, relation="past") for each in snapshots[:-1]]
        mixture = OpponentMixture(self_play=0, pfsp=1, verification=0, pfsp_weighting="var")
        return [each.name for each in draw(mixture, learner, past, generator, count)]
    everybody = [dataclasses.replace(each, relation="other") for each in candidates if each.relation != "scripted"]
    if not everybody:
        raise ConfigError("a league exploiter needs members that have learned: the league has none")
    mixture = OpponentMixture(self_play=0, pfsp=1, verification=0)
    return [each.name for each in draw(mixture, learner, everybody, generator, count)]


def snapshot_due(settings: LeagueConfig, samples: int, met: Sequence[Candidate]) -> bool:
    """Whether a learner shall leave a snapshot.

    Parameters
    ----------
    settings
        The role and its numbers.
    samples
        That it has trained on since the last snapshot, or since it began.
    met
        Whom it has met since it began.
    """
    if samples < settings.snapshot_every or settings.role == "best_response":
        return False
    if settings.role == "main" or samples >= settings.patience * settings.snapshot_every:
        return True
    judged = [each for each in met if each.games >= JUDGED]
    return bool(judged) and all(each.win_probability >= settings.beaten for each in judged)


def begins_anew(settings: LeagueConfig, generator: np.random.Generator) -> bool:
    """Whether a learner begins anew after a snapshot."""
    chances = {"main_exploiter": 1.0, "league_exploiter": settings.restart}
    return bool(generator.random() < chances.get(settings.role, 0.0))
