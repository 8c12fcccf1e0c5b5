"""Cross-play: the scores of all players against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.evaluate.estimates import match_outcomes, score_interval
from echelon_env.evaluate.matches import LOSS, TIE, WIN, Match

__all__ = ["cross_play"]

Panel = dict[str, list[list[Any]]]
"""Results of P players (rows) against P players (columns), lists (P, P) with None for pairs that have not played.

``wins``, ``draws`` and ``losses`` are numbers of battles of the row's player, ``score`` its mean map score from 0 to 1,
``low`` and ``high`` the ends of the `score_interval`. Cell (b, a) mirrors cell (a, b).
"""


def cross_play(matches: Iterable[Match]) -> dict[str, Any]:
    """The results of all pairs, as the entry `cross_play` of a report.

    Matches of the same pair in a scenario, in either order, are pooled. The entry has the names of the ``players`` and
    a `Panel` for each of the ``scenarios``, both in the order of their first match. Its panel ``pooled`` has the mean
    of the scenarios' scores, for pairs that played in all scenarios.

    Raises ValueError if there are no matches, if a pair played twice on a map of a scenario, or if `map_scores` refuses
    a match.
    """
    matches = tuple(matches)
    if not matches:
        raise ValueError("expected at least one match")
    players = list(dict.fromkeys(name for match in matches for name in (match.first, match.second)))
    cells = {scenario: _cells(matches, scenario) for scenario in dict.fromkeys(match.scenario for match in matches)}
    scenarios = {
        scenario: _panel(players, {pair: {scenario: outcomes} for pair, outcomes in played.items()})
        for scenario, played in cells.items()
    }
    in_all = set.intersection(*(set(played) for played in cells.values()))
    pooled = {pair: {scenario: played[pair] for scenario, played in cells.items()} for pair in in_all}
    return {"players": players, "scenarios": scenarios, "pooled": _panel(players, pooled)}


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


def _panel(players: Sequence[str], cells: Mapping[_Pair, Mapping[str, _Outcomes]]) -> Panel:
    """The panel of every pair's outcomes by scenario."""
    names = ("wins", "draws", "losses", "score", "low", "high")
    panel: Panel = {name: [[None] * len(players) for _ in players] for name in names}
    for (first, second), strata in cells.items():
        outcomes = np.concatenate([maps for each in strata.values() for maps in each.values()])
        scores = {name: (1 + np.mean([*each.values()], axis=1)) / 2 for name, each in strata.items()}
        interval = score_interval(scores, maps={name: tuple(each) for name, each in strata.items()})
        counts = [int(np.count_nonzero(outcomes == outcome)) for outcome in (WIN, TIE, LOSS)]
        for name, value in zip(names, (*counts, interval.estimate, interval.low, interval.high), strict=True):
            panel[name][players.index(first)][players.index(second)] = value
    return panel
