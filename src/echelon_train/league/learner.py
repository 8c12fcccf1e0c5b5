"""A learner in a league: its opponents, its stages and its snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echelon_env.config.schema import ConfigError
from echelon_env.opponents import LEVELS
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.league import LeagueConfig
from echelon_train.league.errors import LeagueError
from echelon_train.league.matchmaking.opponents import main_agents_opponents
from echelon_train.league.store.members import Member, check_name, read_candidate
from echelon_train.league.store.registry import League
from echelon_train.opponents.results import Results
from echelon_train.policy import BattlePolicy

_MOST_SNAPSHOTS = 999_999

KNOWN = tuple(LEVELS)
"""The names of scripted opponents."""


@dataclass
class LearnerState:
    """What, with the league, the weights and the results, determines all that a `LeagueLearner` does."""

    since: int = 0
    """Samples at the beginning of the stage."""
    victim: str | None = None
    """Member that an exploiter trains against in this stage."""


class LeagueLearner:
    """A learner in a league: how it draws opponents for an `OpponentPool`, and its snapshots.

    It trains in stages, and leaves a snapshot at the end of each. A main agent plays against all members, and goes on
    from its own weights. An exploiter plays against one snapshot of a main agent, its victim, and starts every stage
    from the victim's weights: the newest that no exploiter has trained against, or the newest.

    It sees the league as of the last `refresh`. Its results are those of its battles in training, not of matches,
    which determine the ratings.

    Parameters
    ----------
    league
        The league.
    settings
        The learner's role.

    Raises
    ------
    LeagueError
        For an agent name that is no valid member name, and for an exploiter in a league without a main agent.
    """

    def __init__(self, league: League, settings: LeagueConfig) -> None:
        self.league, self.settings = league, settings
        check_name(f"{settings.name}-{_MOST_SNAPSHOTS}")  # now, and not when the first snapshot is due
        self.next_victim()
        self.state = LearnerState()
        self._weights: dict[str, float] = {}
        self._last = self._newest_own()

    def refresh(self, results: Mapping[str, Results]) -> None:
        """Read the members of the league, and weigh them by the learner's results against them.

        Raises as `League` does, and `ConfigError` if there is no opponent.
        """
        self._last = self._newest_own()
        if self.settings.role == "exploiter":
            self._weights = {name: 1.0 for name in (self.state.victim or self.next_victim(),) if name}
            return
        members = [each for each in self.league.members() if each.state == "active"]
        policies = [each.name for each in members if each.weights_sha256 is not None]
        levels = [each.name for each in members if each.name in LEVELS]
        self._weights = main_agents_opponents(policies, levels, self.settings.scripted, results)

    def draw(self) -> dict[str, float]:
        """The probabilities of the opponents by name, as of the last `refresh`."""
        return self._weights

    def load(self, name: str) -> BattlePolicy:
        """The policy of a member. Raises LeagueError or CheckpointError, with the reason."""
        return load_checkpoint(self.league.member_policy(name)).policy

    def next_victim(self) -> str | None:
        """The victim of an exploiter's next stage; None for a main agent.

        Raises LeagueError if the league has no active snapshot of a main agent.
        """
        if self.settings.role == "main":
            return None
        members = self.league.members()
        mains = [each.name for each in members if each.kind == "main" and each.state == "active"]
        if not mains:
            raise LeagueError(f"{self.league.path}: an exploiter needs a main agent: the league has no snapshot of one")
        exploited = {each.parent for each in members if each.kind == "exploiter"}
        return ([name for name in mains if name not in exploited] or mains)[-1]

    def begin_stage(self, samples: int, victim: str | None) -> BattlePolicy | None:
        """Begin a stage; returns the policy whose weights the learner starts from, None for its own.

        `victim` is that of `next_victim`. Raises LeagueError or CheckpointError, with the reason, for a victim that
        cannot be used.
        """
        start = None if victim is None else self.load(victim)
        self.state.since, self.state.victim = samples, victim
        return start

    def stage_left(self, samples: int) -> float:
        """The share of the stage that is left, from 1 to 0."""
        return min(max(1.0 - (samples - self.state.since) / self.settings.stage, 0.0), 1.0)

    def publish(self, checkpoint: Path) -> str:
        """Add a checkpoint to the league as a member, and return its name.

        If a member has the same weights already, nothing is added: a run that was killed after it had published a
        snapshot publishes it again. Raises as `League.add_checkpoint` does.
        """
        sha256 = read_candidate(checkpoint).weights_sha256
        known = next((each.name for each in self.league.members() if each.weights_sha256 == sha256), None)
        if known is not None:
            return known
        parent = self.state.victim if self.settings.role == "exploiter" else self._newest_own()
        return self.league.add_checkpoint(
            checkpoint, self.settings.role, self.settings.name, parent, numbered=True
        ).name

    def metrics(self, results: Mapping[str, Results]) -> dict[str, float]:
        """The mean and the lowest score, and those against the last snapshot, an exploiter's victim and the levels."""
        scores = {name: each.score for name, each in results.items() if each.last}
        found = (
            {"mean_score": float(np.mean([*scores.values()])), "worst_score": min(scores.values())} if scores else {}
        )
        named = {"last": self._last, "victim": self.state.victim} | {level: level for level in KNOWN}
        return found | {f"{key}_score": scores[name] for key, name in named.items() if name in scores}

    def restore(self, state: LearnerState) -> None:
        """Continue from another state. Raises `ConfigError` if it is not of this league."""
        if state.victim is not None and state.victim not in {each.name for each in self.league.members()}:
            raise ConfigError(f"league: {self.league.path} has no member {state.victim!r}, which this run names")
        self.state = state

    def _newest_own(self) -> str | None:
        """The learner's newest snapshot."""
        return next((each.name for each in reversed(self.league.members()) if self._is_own(each)), None)

    def _is_own(self, member: Member) -> bool:
        return (member.kind, member.name.rpartition("-")[0]) == (self.settings.role, self.settings.name)
