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
    last: str | None = None
    """Name of the last snapshot."""
    victim: str | None = None
    """Member that an exploiter trains against in this stage."""
    announced: int | None = None
    """Samples of the checkpoint that is to become a snapshot; None if there is none."""


class LeagueLearner:
    """A learner in a league: how it draws opponents for an `OpponentPool`, and its snapshots.

    It trains in stages, and leaves a snapshot at the end of each. A main agent plays against all members, and goes on
    from its own weights. An exploiter plays against the newest snapshot of a main agent alone, its victim, and starts
    every stage from the victim's weights.

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
        if settings.role == "exploiter":
            self._newest_main()
        self.state = LearnerState()
        self._weights: dict[str, float] = {}

    def refresh(self, results: Mapping[str, Results]) -> None:
        """Read the members of the league, and weigh them by the learner's results against them.

        Raises as `League` does, and `ConfigError` if there is no opponent.
        """
        if self.settings.role == "exploiter":
            self._weights = {self.state.victim or self._newest_main(): 1.0}
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
        """The newest snapshot of a main agent for an exploiter; None for a main agent."""
        return self._newest_main() if self.settings.role == "exploiter" else None

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

    def announce(self, samples: int) -> None:
        """Note that the checkpoint about to be saved, at `samples`, is to become a snapshot.

        If the run is killed before it publishes the snapshot, the resumed run publishes it.
        """
        self.state.announced = samples

    def publish(self, checkpoint: Path) -> str:
        """Add the announced checkpoint to the league as a member, and return its name.

        If a member has the same weights already, nothing is added. Raises as `League.add_checkpoint` does.
        """
        sha256 = read_candidate(checkpoint).weights_sha256
        known = next((each.name for each in self.league.members() if each.weights_sha256 == sha256), None)
        if known is not None:
            return known
        parent = self.state.victim if self.settings.role == "exploiter" else self.state.last
        return self.league.add_checkpoint(
            checkpoint, self.settings.role, self.settings.name, parent, numbered=True
        ).name

    def published(self, name: str) -> None:
        """Note that the announced checkpoint is the member `name` of the league."""
        self.state.announced, self.state.last = None, name

    def metrics(self, results: Mapping[str, Results]) -> dict[str, float]:
        """The mean and the lowest score, and those against the last snapshot, an exploiter's victim and the levels."""
        scores = {name: each.score for name, each in results.items() if each.last}
        found = (
            {"mean_score": float(np.mean([*scores.values()])), "worst_score": min(scores.values())} if scores else {}
        )
        named = {"last": self.state.last, "victim": self.state.victim} | {level: level for level in KNOWN}
        return found | {f"{key}_score": scores[name] for key, name in named.items() if name in scores}

    def restore(self, state: LearnerState) -> None:
        """Continue from another state. Raises `ConfigError` if it is not of this league."""
        names = {each.name for each in self.league.members()}
        for name in (state.last, state.victim):
            if name is not None and name not in names:
                raise ConfigError(f"league: {self.league.path} has no member {name!r}, which this run names")
        self.state = state

    def _newest_main(self) -> str:
        mains: list[Member] = [each for each in self.league.members() if each.kind == "main"]
        if not mains:
            raise LeagueError(f"{self.league.path}: an exploiter needs a main agent: the league has no snapshot of one")
        return mains[-1].name
