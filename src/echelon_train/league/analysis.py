"""Analysis of all games of a league: strengths, mispredicted pairs and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from echelon_env.evaluate.tables import percent, plural
from echelon_train.league.ratings.bradley_terry import Strengths, bradley_terry
from echelon_train.league.ratings.cycles import CycleScore, cycle_score
from echelon_train.league.ratings.glicko2 import RATINGS, Rating
from echelon_train.league.ratings.payoffs import Misprediction, Payoffs, mispredictions, payoffs
from echelon_train.league.store.registry import League

_MOST_PAIRS = 3  # that a warning names


@dataclass(frozen=True)
class Analysis:
    """Analysis of the games of all members, also retired ones, because the ratings come from all games."""

    ratings: Mapping[str, Rating]
    payoffs: Payoffs
    strengths: Strengths  # on the scale of the league's anchor
    mispredictions: list[Misprediction]  # of the ratings
    unexplained: list[Misprediction]  # of the strengths, too
    cycle: CycleScore

    def strength(self, name: str) -> tuple[float, float, float] | None:
        """A member's Bradley-Terry strength and the ends of its interval; None if it has not played."""
        place = self.payoffs.members.index(name)
        if not self.payoffs.games[place].any():
            return None
        strengths = self.strengths
        return float(strengths.strength[place]), float(strengths.low[place]), float(strengths.high[place])


def analyse(league: League) -> Analysis:
    """Analyse a league's games. Raises LeagueError for a damaged league."""
    scores = league.pair_scores()
    ratings = league.ratings()  # now, as it has all members of the games
    games = payoffs([*ratings], scores)
    anchor = league.settings.anchor
    strengths = bradley_terry(games, anchor=anchor, anchor_strength=ratings[anchor].rating)
    wrong = mispredictions(games, ratings)
    fits = np.clip(strengths.strength, *RATINGS).tolist()
    fitted = {name: Rating(fit, 0.0) for name, fit in zip(games.members, fits, strict=True)}
    contradicted = {frozenset((pair.first, pair.second)) for pair in mispredictions(games, fitted)}
    unexplained = [pair for pair in wrong if frozenset((pair.first, pair.second)) in contradicted]
    return Analysis(ratings, games, strengths, wrong, unexplained, cycle_score(games, strengths))


def warnings(analysis: Analysis, more: str) -> list[str]:
    """Sentences about ratings that the games contradict; empty if there are none.

    `more` says where the pairs are that a long list leaves out.
    """
    sentences = []
    pairs = analysis.mispredictions
    if pairs:
        why = "the ratings have not caught up with the games, whose Bradley-Terry strengths explain all of them."
        if analysis.unexplained:
            why = "no strengths explain these results."
        sentences.append(f"The ratings mispredict {plural(len(pairs), 'pair')}: {why}")
        sentences += [
            f"- {pair.first} scores {percent(pair.score)} % against {pair.second} ({plural(pair.games, 'map')}), "
            f"{percent(pair.predicted)} % predicted"
            for pair in pairs[:_MOST_PAIRS]
        ]
        if len(pairs) > _MOST_PAIRS:
            sentences.append(f"- and {len(pairs) - _MOST_PAIRS} more, see {more}")
    cycle = analysis.cycle
    if cycle.significant:
        found = f"No ratings explain {percent(cycle.score)} % of the results (p = {cycle.p_value:.3f})."
        sentences.append(f"{found} {_describe_triangle(cycle)}")
    return sentences


def _describe_triangle(cycle: CycleScore) -> str:
    if cycle.triangle is None:
        return "No cycle of three members is certain by itself."
    first, second, third = cycle.triangle
    return f"{first} beats {second}, {second} beats {third}, and {third} beats {first}."
