"""Cross-play: the scores of all players against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.statistics import match_outcomes, score_interval

__all__ = ["CrossPlay", "PayoffMatrix", "cross_play"]


@dataclass(frozen=True)
class PayoffMatrix:
    """Results of P players (rows) against P players (columns), arrays (P, P).

    For pairs that have not played against each other, counts are 0 and scores are NaN. Cell (b, a) mirrors cell (a, b).
    """

    wins: NDArray[np.int64]  # battles that the row's player won
    draws: NDArray[np.int64]
    losses: NDArray[np.int64]
    score: NDArray[np.float64]  # mean map score of the row's player, 0 to 1
    low: NDArray[np.float64]  # lower end of the `score_interval`
    high: NDArray[np.float64]


@dataclass(frozen=True)
class CrossPlay:
    """The payoff matrices of all pairs of players that have played."""

    players: tuple[str, ...]  # rows and columns of the matrices
    scenarios: Mapping[str, PayoffMatrix]  # by scenario
    pooled: PayoffMatrix  # mean of the scenarios' scores, for pairs that played in all scenarios


def cross_play(matches: Iterable[Match]) -> CrossPlay:
    """Compute the payoff matrices of matches, per scenario and pooled.

    Parameters
    ----------
    matches
        Matches of any players and scenarios, in any order. Matches of the same pair in a scenario, in either order, are
        pooled.

    Returns
    -------
    The matrices, with players and scenarios in the order of their first match.

    Raises
    ------
    ValueError
        If there are no matches, if a pair played twice on a map of a scenario, or if `map_scores` refuses a match.
    """
    matches = tuple(matches)
    if not matches:
        raise ValueError("expected at least one match")
    players = tuple(dict.fromkeys(name for match in matches for name in (match.first, match.second)))
    cells = {scenario: _cells(matches, scenario) for scenario in dict.fromkeys(match.scenario for match in matches)}
    scenarios = {
        scenario: _matrix(players, {pair: {scenario: outcomes} for pair, outcomes in played.items()})
        for scenario, played in cells.items()
    }
    in_all = set.intersection(*(set(played) for played in cells.values()))
    pooled = {pair: {scenario: played[pair] for scenario, played in cells.items()} for pair in in_all}
    return CrossPlay(players, scenarios, _matrix(players, pooled))


_Pair = tuple[str, str]
_Outcomes = dict[int, NDArray[np.int64]]  # seed of a map -> (2 sides,) of 1, 0 and -1


def _cells(matches: Sequence[Match], scenario: str) -> dict[_Pair, _Outcomes]:
    """The outcomes of every pair in a scenario, for the pair's first player. Both orders of a pair are included."""
    cells: dict[_Pair, _Outcomes] = {}
    for match in (match for match in matches if match.scenario == scenario):
        first, second = match.first, match.second
        for pair, sign in {(second, first): -1, (first, second): 1}.items():  # one item if first is second
            cell = cells.setdefault(pair, {})
            for battle, outcomes in zip(match.battles[::2], match_outcomes(match), strict=True):
                if battle.seed in cell:
                    raise ValueError(f"{first!r} and {second!r} played more than once on a map of {scenario!r}")
                cell[battle.seed] = sign * outcomes
    return cells


def _matrix(players: Sequence[str], cells: Mapping[_Pair, Mapping[str, _Outcomes]]) -> PayoffMatrix:
    """The payoff matrix from every pair's outcomes by scenario."""
    wins, draws, losses = np.zeros((3, len(players), len(players)), dtype=np.int64)
    score, low, high = np.full((3, len(players), len(players)), np.nan)
    for (first, second), strata in cells.items():
        cell = players.index(first), players.index(second)
        outcomes = np.concatenate([maps for each in strata.values() for maps in each.values()])
        for counts, outcome in ((wins, 1), (draws, 0), (losses, -1)):
            counts[cell] = np.count_nonzero(outcomes == outcome)
        scores = {name: (1 + np.mean([*each.values()], axis=1)) / 2 for name, each in strata.items()}
        interval = score_interval(scores, maps={name: tuple(each) for name, each in strata.items()})
        score[cell], low[cell], high[cell] = interval.estimate, interval.low, interval.high
    return PayoffMatrix(wins, draws, losses, score, low, high)
