"""A learner in a league: its opponents, its win rates against them, and its snapshots."""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from echelon_env.config.opponent import AUTO, HandicapConfig, Opponent
from echelon_env.config.schema import ConfigError
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
        self._draws = 0
        self._since = 0  # samples at the last snapshot or reset
        self._last: str | None = None  # name of the last snapshot since the start or the last reset
        self._announced: int | None = None  # samples of the checkpoint that is to become a snapshot
        self._results: dict[str, tuple[float, float]] = {}  # decayed numbers of games and of points, by opponent
        self._handicaps = {_automatic(level): AutoHandicap(win_rate) for level in LEVELS}
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
        generator = np.random.default_rng([self._seed, self._draws])
        self._draws += count
        main = [member.name for member in self._members if member.kind == "main"]
        return choose_opponents(self.settings, self._learner(), self._candidates, main, generator, count)

    def player(self, name: str) -> tuple[str, HandicapConfig | None]:
        """The player of an opponent's name, and its present handicap: that of a level against a main agent."""
        if name in self._handicaps:
            return name.removesuffix(f"@{AUTO}"), self._handicaps[name].handicap
        return name, None

    def load(self, name: str) -> BattlePolicy:
        """The policy of a member. Raises LeagueError or CheckpointError, with the reason."""
        return load_checkpoint(self.league.member_policy(name)).policy

    def record(self, opponent: str, outcome: int) -> bool:
        """Record the outcome of a battle for the learner: 1 (win), 0 (draw) or -1 (loss).

        Returns whether a handicap has changed.
        """
        games, score = self._results.get(opponent, (0.0, 0.0))
        self._results[opponent] = DECAY * games + 1, DECAY * score + (outcome + 1) / 2
        return opponent in self._handicaps and self._handicaps[opponent].record(outcome > 0)

    def snapshot_due(self, samples: int) -> bool:
        """Whether a snapshot is due, given the number of samples that the learner has trained on."""
        self._update_candidates()
        opponents = [each for each in self._candidates if each.games]
        return snapshot_due(self.settings, samples - self._since, opponents, self._last)

    @property
    def since(self) -> int:
        """Samples at the last snapshot or reset."""
        return self._since

    @property
    def announced(self) -> int | None:
        """Samples of the checkpoint that is to become a snapshot; None if there is none."""
        return self._announced

    def announce(self, samples: int) -> None:
        """Note that the checkpoint about to be saved, at `samples`, is to become a snapshot.

        If the run is killed before it publishes the snapshot, the resumed run publishes it.
        """
        self._announced = samples

    def publish(self, checkpoint: Path) -> str:
        """Add the announced checkpoint to the league as a member, and return its name.

        If a member has the same weights already, nothing is added. Raises as `League.add_checkpoint` does.
        """
        sha256 = read_candidate(checkpoint).weights_sha256
        known = next((each.name for each in self.league.members() if each.weights_sha256 == sha256), None)
        if known is not None:
            return known
        return self.league.add_checkpoint(
            checkpoint, self.settings.role, self.settings.name, self._last, numbered=True
        ).name

    def published(self, name: str) -> None:
        """Note that the announced checkpoint is the member `name` of the league."""
        if self._announced is not None:
            self._since, self._announced, self._last = self._announced, None, name

    def should_reset(self) -> bool:
        """Whether the learner resets after its latest snapshot."""
        return should_reset(self.settings, np.random.default_rng([self._seed, self._since]))

    def reset(self) -> None:
        """Clear the win rates and the parent of the next snapshot."""
        self._last = None
        self._results.clear()

    def win_rates(self) -> dict[str, float]:
        """Opponent -> the learner's mean score against it, 0 to 1, with a weight of battles that decays by `DECAY`."""
        return {name: score / games for name, (games, score) in self._results.items()}

    def metrics(self) -> dict[str, float]:
        """The mean and the lowest win rate, those against the last snapshot and the levels, and the handicaps."""
        rates = self.win_rates()
        found = {"mean_score": float(np.mean([*rates.values()])), "worst_score": min(rates.values())} if rates else {}
        if self._last in rates:
            found["last_score"] = rates[self._last]
        for name in (each for each in self._handicaps if each in rates):
            handicap = self._handicaps[name].handicap
            found[f"{name}/score"] = rates[name]
            found[f"{name}/handicap/fire_rate"] = handicap.fire_rate
            found[f"{name}/handicap/reaction_delay"] = handicap.reaction_delay
        return found

    def state_dict(self) -> dict[str, Any]:
        """The state that, with the league and the weights, determines all that follows, as plain values for JSON."""
        return {
            "draws": self._draws,
            "since": self._since,
            "last": self._last,
            "announced": self._announced,
            "results": {name: list(result) for name, result in self._results.items()},
            "handicaps": {name: each.state_dict() for name, each in self._handicaps.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict`. Raises `ConfigError`, with nothing changed, for an invalid one."""
        if not isinstance(state, Mapping) or state.keys() != self.state_dict().keys():
            raise ConfigError(f"league: expected a mapping with the keys {list(self.state_dict())}, got {state!r}")
        for name, optional in (("draws", False), ("since", False), ("announced", True)):
            value = state[name]
            if not (optional and value is None) and (type(value) is not int or value < 0):
                raise ConfigError(f"league: {name}: expected an integer of at least 0, got {value!r}")
        if not isinstance(state["last"], (str, type(None))):
            raise ConfigError(f"league: last: expected the name of a member or None, got {state['last']!r}")
        if state["last"] is not None and state["last"] not in {each.name for each in self.league.members()}:
            raise ConfigError(f"league: {self.league.path} has no member {state['last']!r}, which this run has added")
        results = state["results"]
        if not isinstance(results, Mapping) or not all(map(_valid_result, results.values())):
            raise ConfigError(f"league: results: expected decayed games and score by opponent, got {results!r}")
        if not isinstance(state["handicaps"], Mapping) or state["handicaps"].keys() != self._handicaps.keys():
            raise ConfigError(f"league: handicaps: expected {[*self._handicaps]}, got {state['handicaps']!r}")
        handicaps = copy.deepcopy(self._handicaps)
        for name, each in handicaps.items():
            each.load_state_dict(state["handicaps"][name])
        self._handicaps = handicaps
        self._draws, self._since, self._last = state["draws"], state["since"], state["last"]
        self._announced = state["announced"]
        self._results = {str(name): (games, score) for name, (games, score) in results.items()}

    def _learner(self) -> Learner:
        rating = self._ratings[self._last].rating if self._last in self._ratings else Rating().rating
        return Learner("(learner)", rating, sum(games for games, _ in self._results.values()), self._last)

    def _update_candidates(self) -> None:
        """Recompute the candidates from the battles so far."""
        ancestors, ancestor = set(), self._last
        while ancestor is not None:
            ancestors.add(ancestor)
            ancestor = self._parents.get(ancestor)
        self._candidates = []
        for member in self._members:
            handicapped = member.kind == "scripted" and self.settings.role == "main"
            name, rating = _automatic(member.name) if handicapped else member.name, self._ratings[member.name].rating
            result = self._results.get(name, (0.0, 0.0))
            self._candidates.append(Candidate(name, _relation(member, ancestors), rating, *result))


def _automatic(level: str) -> str:
    """The name of a level with the handicap ``auto``."""
    return str(Opponent(level, auto=True))


def _valid_result(result: Any) -> bool:
    """Whether a result is a list of games and score."""
    if not isinstance(result, list) or [type(each) for each in result] != [float, float]:
        return False
    games, score = result
    return bool(0.0 <= score <= games <= _MOST_GAMES and games > 0.0)


def _plays_in_training(member: Member) -> bool:
    """Whether a member is an opponent in training: policies and scripted levels, not `idle` and `random`."""
    return member.kind != "scripted" or member.name in LEVELS


def _relation(member: Member, ancestors: Container[str]) -> Relation:
    if member.kind == "scripted":
        return "scripted"
    if member.name in ancestors:
        return "past"
    return "exploiter" if member.kind.endswith("exploiter") else "other"
