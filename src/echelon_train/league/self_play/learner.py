"""A learner in a league: its opponents, its win rates against them, and its snapshots."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from echelon_env.config.opponent import AUTO, HandicapConfig, Opponent
from echelon_env.config.schema import ConfigError, measure
from echelon_env.opponents import LEVELS
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.config.league import LeagueConfig
from echelon_train.league.errors import LeagueError
from echelon_train.league.matchmaking.opponents import Candidate, Learner, Relation
from echelon_train.league.matchmaking.roles import choose_opponents, should_reset, snapshot_due
from echelon_train.league.ratings.glicko2 import Rating
from echelon_train.league.store.members import Member, check_name, read_candidate
from echelon_train.league.store.registry import League
from echelon_train.opponents.auto_handicap import AutoHandicap
from echelon_train.policy import BattlePolicy

_MOST_SNAPSHOTS = 999_999

DECAY = 0.98
"""Factor of the weights of earlier battles, at every battle against the same opponent.

The last 34 battles have half of the weight, so that a win rate follows the learner from one snapshot to the next. Its
standard error is at most 0.05, that of 99 battles of equal weight. With 0.99 it would be 0.035, after twice the time.
"""

_MOST_GAMES = 1 / (1 - DECAY) + 1e-6  # what the weights of all battles sum up to, and rounding


@dataclass(frozen=True)
class Score:
    """The games against an opponent, and the learner's points in them, both with weights that decay by `DECAY`."""

    games: float = measure("", 1, _MOST_GAMES)
    points: float = measure("", 0, _MOST_GAMES)


_NONE = Score(0.0, 0.0)  # before the first battle


@dataclass
class LearnerState:
    """What, with the league and the weights, determines all that a `LeagueLearner` does."""

    draws: int = 0
    since: int = 0
    """Samples at the last snapshot or reset."""
    last: str | None = None
    """Name of the last snapshot since the start or the last reset."""
    announced: int | None = None
    """Samples of the checkpoint that is to become a snapshot; None if there is none."""
    scores: dict[str, Score] = field(default_factory=dict)
    handicaps: dict[str, AutoHandicap] = field(default_factory=dict)


class LeagueLearner:
    """A learner in a league.

    It sees the league as of the last `refresh`. Its win rates come from its battles in training, not from matches,
    which determine the ratings.

    Parameters
    ----------
    league
        The league.
    settings
        The learner's role.
    seed
        Seed of the draws of opponents and of the resets.
    win_rate
        The main agent's win rate that the handicaps of the scripted levels aim at.

    Raises
    ------
    LeagueError
        If the target of a best response is no member, or no opponent in training; for an agent name that is no valid
        member name.
    """

    def __init__(self, league: League, settings: LeagueConfig, seed: int, win_rate: float = 0.5) -> None:
        self.league, self.settings = league, settings
        check_name(f"{settings.name}-{_MOST_SNAPSHOTS}")  # now, and not when the first snapshot is due
        if settings.target and not _plays_in_training(league.member(settings.target)):
            raise LeagueError(f"{settings.target!r}: no opponent in training; expected a policy or one of {[*LEVELS]}")
        self._seed = seed
        self.state = LearnerState(handicaps={_automatic(level): AutoHandicap(win_rate) for level in LEVELS})
        self._parents: dict[str, str | None] = {}
        self._members: list[Member] = []
        self._ratings: dict[str, Rating] = {}
        self._candidates: list[Candidate] = []

    def refresh(self) -> None:
        """Read the members of the league. Raises as `League` does."""
        members = self.league.members()
        self._parents = {member.name: member.parent for member in members}
        self._members = [each for each in members if each.state == "active" and _plays_in_training(each)]
        self._ratings = self.league.ratings()
        self._update_candidates()

    def draw(self, count: int) -> Sequence[str]:
        """The opponents of the next `count` battles. Raises `ConfigError` if there is no candidate."""
        generator = np.random.default_rng([self._seed, self.state.draws])
        self.state.draws += count
        main = [member.name for member in self._members if member.kind == "main"]
        return choose_opponents(self.settings, self._learner(), self._candidates, main, generator, count)

    def player(self, name: str) -> tuple[str, HandicapConfig | None]:
        """The player of an opponent's name, and its present handicap: that of a level against a main agent."""
        if name in self.state.handicaps:
            return name.removesuffix(f"@{AUTO}"), self.state.handicaps[name].handicap
        return name, None

    def load(self, name: str) -> BattlePolicy:
        """The policy of a member. Raises LeagueError or CheckpointError, with the reason."""
        return load_checkpoint(self.league.member_policy(name)).policy

    def record(self, opponent: str, outcome: int) -> bool:
        """Record the outcome of a battle for the learner: 1 (win), 0 (draw) or -1 (loss).

        Returns whether a handicap has changed.
        """
        scores, handicaps = self.state.scores, self.state.handicaps
        before = scores.get(opponent, _NONE)
        scores[opponent] = Score(DECAY * before.games + 1, DECAY * before.points + (outcome + 1) / 2)
        return opponent in handicaps and handicaps[opponent].record(outcome > 0)

    def snapshot_due(self, samples: int) -> bool:
        """Whether a snapshot is due, given the number of samples that the learner has trained on."""
        self._update_candidates()
        opponents = [each for each in self._candidates if each.games]
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

    def reset(self) -> None:
        """Clear the win rates and the parent of the next snapshot."""
        self.state.last = None
        self.state.scores.clear()

    def win_rates(self) -> dict[str, float]:
        """Opponent -> the learner's mean score against it, 0 to 1, with a weight of battles that decays by `DECAY`."""
        return {name: each.points / each.games for name, each in self.state.scores.items()}

    def metrics(self) -> dict[str, float]:
        """The mean and the lowest win rate, those against the last snapshot and the levels, and the handicaps."""
        rates = self.win_rates()
        found = {"mean_score": float(np.mean([*rates.values()])), "worst_score": min(rates.values())} if rates else {}
        if self.state.last in rates:
            found["last_score"] = rates[self.state.last]
        for name in (each for each in self.state.handicaps if each in rates):
            handicap = self.state.handicaps[name].handicap
            found[f"{name}/score"] = rates[name]
            found[f"{name}/handicap/fire_rate"] = handicap.fire_rate
            found[f"{name}/handicap/reaction_delay"] = handicap.reaction_delay
        return found

    def restore(self, state: LearnerState) -> None:
        """Continue from another state. Raises `ConfigError` if it is not of this league."""
        if state.last is not None and state.last not in {each.name for each in self.league.members()}:
            raise ConfigError(f"league: {self.league.path} has no member {state.last!r}, which this run has added")
        own = self.state.handicaps
        if state.handicaps.keys() != own.keys():
            raise ConfigError(f"league: handicaps: expected {[*own]}, got {[*state.handicaps]}")
        self.state = state

    def _learner(self) -> Learner:
        last = self.state.last
        rating = self._ratings[last].rating if last in self._ratings else Rating().rating
        return Learner("(learner)", rating, sum(each.games for each in self.state.scores.values()), last)

    def _update_candidates(self) -> None:
        """Recompute the candidates from the battles so far."""
        ancestors, ancestor = set(), self.state.last
        while ancestor is not None:
            ancestors.add(ancestor)
            ancestor = self._parents.get(ancestor)
        self._candidates = []
        for member in self._members:
            handicapped = member.kind == "scripted" and self.settings.role == "main"
            name, rating = _automatic(member.name) if handicapped else member.name, self._ratings[member.name].rating
            score = self.state.scores.get(name, _NONE)
            self._candidates.append(Candidate(name, _relation(member, ancestors), rating, score.games, score.points))


def _automatic(level: str) -> str:
    """The name of a level with the handicap ``auto``."""
    return str(Opponent(level, auto=True))


def _plays_in_training(member: Member) -> bool:
    """Whether a member is an opponent in training: policies and scripted levels, not `idle` and `random`."""
    return member.kind != "scripted" or member.name in LEVELS


def _relation(member: Member, ancestors: Container[str]) -> Relation:
    if member.kind == "scripted":
        return "scripted"
    if member.name in ancestors:
        return "past"
    return "exploiter" if member.kind.endswith("exploiter") else "other"
