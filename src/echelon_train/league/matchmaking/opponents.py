"""Opponents of a learner: past snapshots, other members and scripted levels, mixed as configured.

Prioritised fictitious self-play (PFSP), verification and a main agent's mixture follow AlphaStar: Vinyals et al.,
"Grandmaster level in StarCraft II using multi-agent reinforcement learning", 2019, with its pseudocode. `scheduling`
plans rating runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import OpponentMixture, Source

NEWCOMER_GAMES: Final = 20
"""A member with fewer games is a newcomer, which plays against neighbours only."""

NEIGHBOURHOOD: Final = 200.0
"""Largest difference between the ratings of neighbours, points."""

MIN_GAMES: Final = 20
"""Games against an opponent from which on its win rate is meaningful."""

EXPLOITED: Final = 0.5
"""Win probability against an exploiter below which verification sends a learner back to it."""

FORGOTTEN: Final = 0.7
"""Win probability against a past self below which verification sends a learner back to it."""

Relation = Literal["past", "exploiter", "other", "scripted"]

_OFFERED: Final[dict[Source, tuple[Relation, ...]]] = {
    "pfsp": ("past", "exploiter", "other"),
    "scripted": ("scripted",),
}

_WEIGHTINGS: Final[dict[Source, Literal["hard", "var"]]] = {"scripted": "var", "verification": "hard"}
"""The weightings of the sources that have one of their own."""


@dataclass(frozen=True)
class Learner:
    """The member that opponents are chosen for."""

    name: str
    rating: float = 1500.0  # points
    games: float = 0.0  # against all opponents
    last: str | None = None  # name of its last snapshot


@dataclass(frozen=True)
class Candidate:
    """A possible opponent, with the learner's results against it."""

    name: str
    relation: Relation  # "past" for the learner's own past selves
    rating: float = 1500.0  # points
    games: float = 0.0  # of the learner against it
    score: float = 0.0  # of the learner in these games, at most 1 a game

    @property
    def win_probability(self) -> float:
        """Of the learner against it, by the rule of succession: 1/2 without games, never 0 or 1.

        So a single lucky win does not exclude an opponent for good.
        """
        return (self.score + 1) / (self.games + 2)


class Opponent(NamedTuple):
    """An opponent and the source that it was drawn from."""

    name: str
    source: Source


def pfsp_weights(win_probabilities: Sequence[float], weighting: Literal["hard", "var"] = "hard") -> NDArray[np.float64]:
    """Probabilities (N,) of opponents by prioritised fictitious self-play; uniform if all weights are 0.

    The weighting "hard", (1 - x)^2 of the learner's win probability x, prefers opponents that it loses to; "var",
    x (1 - x), prefers its equals.
    """
    chances = np.asarray(win_probabilities, dtype=np.float64)
    weights = (1 - chances) ** 2 if weighting == "hard" else chances * (1 - chances)
    total = weights.sum()
    return np.asarray(weights / total if total > 0 else np.full(len(weights), 1 / max(1, len(weights))))


def neighbours(learner: Learner, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that a learner may play against: all; for a newcomer its neighbours, or else the nearest."""
    if learner.games >= NEWCOMER_GAMES or not candidates:
        return list(candidates)
    distances = [abs(candidate.rating - learner.rating) for candidate in candidates]
    reach = max(NEIGHBOURHOOD, min(distances))
    return [candidate for candidate, distance in zip(candidates, distances, strict=True) if distance <= reach]


def failing(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The opponents to play against again: exploiters that beat the learner, or else past selves that beat it again.

    An exploiter has joined because it beat a main agent: it counts as one that beats the learner until `MIN_GAMES`
    games show that it does not.

    `candidates` are in order of age, oldest first. The win probability normally falls towards the present, because
    newer past selves are stronger. The falling end of the sequence is therefore not forgetting, and is left out.
    """
    exploiters = [
        each
        for each in candidates
        if each.relation == "exploiter" and (each.games < MIN_GAMES or each.win_probability < EXPLOITED)
    ]
    if exploiters:
        return exploiters
    past = [each for each in candidates if each.relation == "past"]
    chances = [each.win_probability for each in past]
    rises = (index for index in range(len(past) - 1, 0, -1) if chances[index - 1] < chances[index])
    return [each for each in past[: next(rises, -1) + 1] if each.win_probability < FORGOTTEN]


def opponent_probabilities(
    mixture: OpponentMixture, learner: Learner, candidates: Sequence[Candidate]
) -> dict[Opponent, float]:
    """The probability of each opponent, by source. The candidates are in order of age, oldest first.

    The probabilities are above 0 and sum to 1. A member that several sources offer has one entry for each. Raises
    ConfigError if there is neither a candidate of a source with a weight nor a scripted one.
    """
    offers = {
        source: _offer(source, mixture, learner, candidates) for source, share in mixture.weights.items() if share
    }
    found = {source: mixture.weights[source] for source, offer in offers.items() if offer}
    if not found:  # no member has been trained yet
        found, offers = {"scripted": 1.0}, {"scripted": _offer("scripted", mixture, learner, candidates)}
    if not any(offers.values()):
        raise ConfigError(
            f"the opponent mixture offers {learner.name!r} no opponent, and no scripted level is a member"
        )
    return {
        Opponent(name, source): share / sum(found.values()) * chance
        for source, share in found.items()
        for name, chance in offers[source].items()
        if chance > 0
    }


def _offer(
    source: Source, mixture: OpponentMixture, learner: Learner, candidates: Sequence[Candidate]
) -> dict[str, float]:
    """The members that a source offers, with their probabilities; empty if there are none."""
    if source == "verification":
        pool = failing(candidates)
    elif source == "last":
        pool = [candidate for candidate in candidates if candidate.name == learner.last]
    else:
        pool = [candidate for candidate in candidates if candidate.relation in _OFFERED[source]]
    pool = neighbours(learner, pool)
    weighting = _WEIGHTINGS.get(source, mixture.pfsp_weighting)
    shares = pfsp_weights([each.win_probability for each in pool], weighting)
    return dict(zip((each.name for each in pool), shares.tolist(), strict=True))
