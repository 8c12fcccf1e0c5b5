"""A learner in a league: its opponents, and its snapshots."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echelon_env.config.opponent import Opponent
from echelon_env.config.schema import ConfigError
from echelon_env.opponents import LEVELS
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.league import LeagueConfig
from echelon_train.league.matchmaking.opponents import Candidate, Learner, Relation
from echelon_train.league.matchmaking.roles import role_probabilities, should_reset, snapshot_due
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import Member, check_name, read_candidate
from echelon_train.league.store.registry import League
from echelon_train.opponents.results import Results
from echelon_train.policy import BattlePolicy

_MOST_SNAPSHOTS = 999_999

KNOWN = tuple(str(Opponent(level, auto=True)) for level in LEVELS)
"""The names of a main agent's scripted opponents, whose handicaps follow it."""


@dataclass
class LearnerState:
    """What, with the league, the weights and the results, determines all that a `LeagueLearner` does."""

    since: int = 0
    """Samples at the last snapshot or reset."""
    last: str | None = None
    """Name of the last snapshot since the start or the last reset."""
    announced: int | None = None
    """Samples of the checkpoint that is to become a snapshot; None if there is none."""


class LeagueLearner:
    """A learner in a league: how it draws opponents for an `OpponentPool`, and its snapshots.

    It sees the league as of the last `refresh`. Its results are those of its battles in training, not of matches,
    which determine the ratings.

    Parameters
    ----------
    league
        The league.
    settings
        The learner's role.
    seed
        Seed of the resets.

    Raises
    ------
    LeagueError
        For an agent name that is no valid member name.
    """

    def __init__(self, league: League, settings: LeagueConfig, seed: int) -> None:
        self.league, self.settings = league, settings
        check_name(f"{settings.name}-{_MOST_SNAPSHOTS}")  # now, and not when the first snapshot is due
        self._seed = seed
        self.state = LearnerState()
        self._parents: dict[str, str | None] = {}
        self._members: list[Member] = []
        self._ratings: dict[str, Rating] = {}
        self._weights: dict[str, float] = {}

    def refresh(self, results: Mapping[str, Results]) -> None:
        """Read the members of the league, and weigh them by the learner's results against them.

        Raises as `League` does, and `ConfigError` if the role has no opponent.
        """
        members = self.league.members()
        self._parents = {member.name: member.parent for member in members}
        self._members = [each for each in members if each.state == "active" and _plays_in_training(each)]
        self._ratings = self.league.ratings()
        main = [member.name for member in self._members if member.kind == "main"]
        last = self.state.last
        rating = self._ratings[last].rating if last in self._ratings else Rating().rating
        learner = Learner("(learner)", rating, sum(each.battles for each in results.values()), last)
        self._weights = role_probabilities(self.settings, learner, self.candidates(results), main)

    def draw(self) -> dict[str, float]:
        """The probabilities of the opponents by name, as of the last `refresh`."""
        return self._weights

    def load(self, name: str) -> BattlePolicy:
        """The policy of a member. Raises LeagueError or CheckpointError, with the reason."""
        return load_checkpoint(self.league.member_policy(name)).policy

    def snapshot_due(self, samples: int, results: Mapping[str, Results]) -> bool:
        """Whether a snapshot is due, given the number of samples that the learner has trained on."""
        opponents = [each for each in self.candidates(results) if each.games]
        return snapshot_due(self.settings, samples - self.state.since, opponents, self.state.last)

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
        return self.league.add_checkpoint(
            checkpoint, self.settings.role, self.settings.name, self.state.last, numbered=True
        ).name

    def published(self, name: str) -> None:
        """Note that the announced checkpoint is the member `name` of the league."""
        state = self.state
        if state.announced is not None:
            state.since, state.announced, state.last = state.announced, None, name

    def should_reset(self) -> bool:
        """Whether the learner resets after its latest snapshot."""
        return should_reset(self.settings, np.random.default_rng([self._seed, self.state.since]))

    def metrics(self, results: Mapping[str, Results]) -> dict[str, float]:
        """The mean and the lowest score, and those against the last snapshot and the levels."""
        scores = {name: each.score for name, each in results.items() if each.last}
        found = (
            {"mean_score": float(np.mean([*scores.values()])), "worst_score": min(scores.values())} if scores else {}
        )
        if self.state.last in scores:
            found["last_score"] = scores[self.state.last]
        return found | {f"{name}/score": scores[name] for name in KNOWN if name in scores}

    def restore(self, state: LearnerState) -> None:
        """Continue from another state. Raises `ConfigError` if it is not of this league."""
        if state.last is not None and state.last not in {each.name for each in self.league.members()}:
            raise ConfigError(f"league: {self.league.path} has no member {state.last!r}, which this run has added")
        self.state = state

    def candidates(self, results: Mapping[str, Results]) -> list[Candidate]:
        """The possible opponents, oldest first, with the results against them."""
        ancestors, ancestor = set(), self.state.last
        while ancestor is not None:
            ancestors.add(ancestor)
            ancestor = self._parents.get(ancestor)
        found = []
        for member in self._members:
            handicapped = member.kind == "scripted" and self.settings.role == "main"
            name = str(Opponent(member.name, auto=True)) if handicapped else member.name
            rating, own = self._ratings[member.name].rating, results.get(name, Results())
            found.append(Candidate(name, _relation(member, ancestors), rating, len(own.last), own.points))
        return found


def _plays_in_training(member: Member) -> bool:
    """Whether a member is an opponent in training: policies and scripted levels, not `idle` and `random`."""
    return member.kind != "scripted" or member.name in LEVELS


def _relation(member: Member, ancestors: Container[str]) -> Relation:
    if member.kind == "scripted":
        return "scripted"
    if member.name in ancestors:
        return "past"
    return "exploiter" if member.kind.endswith("exploiter") else "other"
