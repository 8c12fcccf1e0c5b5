"""The roles of learners in a league: their opponents, snapshots and resets.

The roles are AlphaStar's: Vinyals et al., "Grandmaster level in StarCraft II using multi-agent reinforcement learning",
2019, with its pseudocode. A main agent learns to beat all members. A main exploiter looks for weaknesses of
the main agent, a league exploiter for those of the whole league. Both reset once they have found one, because they need
no other skill. A best response trains against one member and leaves no snapshot: its score measures how exploitable
that member is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from echelon_env.config.schema import ConfigError
from echelon_train.config.league import LeagueConfig, OpponentMixture
from echelon_train.league.matchmaking.opponents import MIN_GAMES, Candidate, Learner, draw

HOPELESS: Final = 0.1
"""Win probability below which a main exploiter plays against the main agent's past selves, which are easier."""


def choose_opponents(
    settings: LeagueConfig,
    learner: Learner,
    candidates: Sequence[Candidate],
    main: Sequence[str],
    generator: np.random.Generator,
    count: int,
) -> list[str]:
    """The opponents of a learner in `count` new battles, drawn independently.

    Parameters
    ----------
    settings
        The role, and a main agent's opponent mixture.
    learner
        The member that opponents are chosen for.
    candidates
        Possible opponents, oldest first.
    main
        Names of the candidates that are snapshots of the main agent, oldest first.
    generator
        Random generator of the draws.
    count
        Number of battles that begin.

    Raises
    ------
    ConfigError
        If there is no candidate: a main exploiter needs a main agent, a league exploiter trained members.
    """
    if settings.role == "best_response":
        return [settings.target] * count
    if settings.role == "main":
        return [each.name for each in draw(settings.mixture, learner, candidates, generator, count)]
    if settings.role == "main_exploiter":
        if not main:
            raise ConfigError("a main exploiter needs a main agent to exploit: the league has no snapshot of one")
        snapshots = [each for each in candidates if each.name in main]
        newest = snapshots[-1]
        if newest.games < MIN_GAMES or newest.win_probability >= HOPELESS or len(snapshots) == 1:
            return [newest.name] * count
        past = [dataclasses.replace(each, relation="past") for each in snapshots[:-1]]
        mixture = OpponentMixture(last=0, pfsp=1, verification=0, pfsp_weighting="var")
        return [each.name for each in draw(mixture, learner, past, generator, count)]
    learned = [dataclasses.replace(each, relation="other") for each in candidates if each.relation != "scripted"]
    if not learned:
        raise ConfigError("a league exploiter needs trained members: the league has none")
    mixture = OpponentMixture(last=0, pfsp=1, verification=0)
    return [each.name for each in draw(mixture, learner, learned, generator, count)]


def snapshot_due(settings: LeagueConfig, samples: int, opponents: Sequence[Candidate], last: str | None = None) -> bool:
    """Whether a learner adds a snapshot to the league now: it beats its opponents, a main agent its last snapshot.

    Parameters
    ----------
    settings
        The role and its settings.
    samples
        Samples that it has trained on since its last snapshot, or since it started.
    opponents
        Its opponents since it started or was reset, with its results.
    last
        Name of its last snapshot. A main agent without one leaves a snapshot as soon as it has the samples.
    """
    if samples < settings.snapshot_every or settings.role == "best_response":
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
