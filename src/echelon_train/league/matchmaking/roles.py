"""The roles of learners in a league: their opponents, snapshots and resets.

The roles are AlphaStar's: Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement learning",
2019, with its pseudocode. A main agent learns to beat all members. A main exploiter looks for weaknesses of
the main agent, a league exploiter for those of the whole league. Both reset once they have found one, because they need
no other skill.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import LeagueConfig, OpponentMixture
from echelon_train.league.matchmaking.opponents import MIN_GAMES, Candidate, Learner, opponent_probabilities

HOPELESS: Final = 0.1
"""Win probability below which a main exploiter plays against the main agent's past selves, which are easier."""


def role_probabilities(
    settings: LeagueConfig, learner: Learner, candidates: Sequence[Candidate], main: Sequence[str]
) -> dict[str, float]:
    """The probability of each opponent of a learner in a new battle, by its role.

    The candidates are in order of age, oldest first; `main` names those that are snapshots of the main agent. Raises
    ConfigError if there is no candidate: a main exploiter needs a main agent, a league exploiter trained members.
    """
    mixture = OpponentMixture(last=0, pfsp=1, verification=0)
    if settings.role == "main":
        mixture = settings.mixture
    elif settings.role == "main_exploiter":
        snapshots = [each for each in candidates if each.name in main]
        if not snapshots:
            raise ConfigError("a main exploiter needs a main agent to exploit: the league has no snapshot of one")
        newest = snapshots[-1]
        if newest.games < MIN_GAMES or newest.win_probability >= HOPELESS or len(snapshots) == 1:
            return {newest.name: 1.0}
        candidates = [dataclasses.replace(each, relation="past") for each in snapshots[:-1]]
        mixture = dataclasses.replace(mixture, pfsp_weighting="var")
    else:
        candidates = [dataclasses.replace(each, relation="other") for each in candidates if each.relation != "scripted"]
        if not candidates:
            raise ConfigError("a league exploiter needs trained members: the league has none")
    found: dict[str, float] = {}
    for opponent, chance in opponent_probabilities(mixture, learner, candidates).items():
        found[opponent.name] = found.get(opponent.name, 0.0) + chance
    return found


def snapshot_due(settings: LeagueConfig, samples: int, opponents: Sequence[Candidate], last: str | None = None) -> bool:
    """Whether a learner adds a snapshot to the league now: it beats its opponents, a main agent its last snapshot.

    `samples` are those since its last snapshot, or since it started; `opponents` those since it started or was reset.
    A main agent without a `last` snapshot leaves one as soon as it has the samples.
    """
    if samples < settings.snapshot_every:
        return False
    if samples >= settings.patience * settings.snapshot_every or (settings.role == "main" and last is None):
        return True
    if settings.role == "main":
        opponents = [each for each in opponents if each.name == last]
    rated = [each for each in opponents if each.games >= MIN_GAMES]
    return bool(rated) and all(each.win_probability >= settings.beaten for each in rated)


def should_reset(settings: LeagueConfig, generator: np.random.Generator) -> bool:
    """Whether a learner resets after a snapshot."""
    chances = {"main_exploiter": 1.0, "league_exploiter": settings.restart}
    return bool(generator.random() < chances.get(settings.role, 0.0))
