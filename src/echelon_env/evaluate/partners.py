"""Ad hoc team play: how well a player does beside team-mates that it has not trained with.

References
----------
P. Stone, G. A. Kaminka, S. Kraus, J. S. Rosenschein (2010), Ad hoc autonomous agent teams: collaboration without
pre-coordination. AAAI.
J. Z. Leibo et al. (2021), Scalable evaluation of multi-agent reinforcement learning with Melting Pot. ICML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.evaluate.estimates import difference_interval, map_scores, score_interval
from echelon_env.evaluate.matches import Match
from echelon_env.evaluate.players import Player
from echelon_env.evaluate.teams import mixed, teams_beside


def partner_rows(matches: Iterable[Match], player: Player, partners: Sequence[Player]) -> list[dict[str, Any]]:
    """The entry `partners` of a report: a row for each scenario, opponent and partner, from matches of `teams_beside`.

    A row has the names of ``scenario``, ``opponent`` and ``partner``, and estimates with intervals over maps, see
    `score_interval`: ``mixed`` of the two teams of both, ``self_play`` of the player's copies, ``partner_self_play`` of
    the partner's copies, and ``gain``, the score of the mixed teams minus that of the partner's copies.
    """
    by_opponent: dict[tuple[str, str], dict[str, NDArray[np.float64]]] = {}
    for match in matches:
        scores = map_scores(match)
        by_opponent.setdefault((match.scenario, match.first), {})[match.second] = 1.0 - scores
        by_opponent.setdefault((match.scenario, match.second), {})[match.first] = scores
    teams = {team.name for team in teams_beside(player, partners)}
    rows = []
    for (scenario, opponent), scores_of in by_opponent.items():
        for partner in partners if teams <= scores_of.keys() else ():
            both = np.mean([scores_of[team.name] for team in mixed(player, partner)], axis=0)
            of_copies = scores_of[partner.name]
            row: dict[str, Any] = {"scenario": scenario, "opponent": opponent, "partner": partner.name}
            for name, each in (
                ("mixed", both),
                ("self_play", scores_of[player.name]),
                ("partner_self_play", of_copies),
            ):
                row[name] = asdict(score_interval({scenario: each}))
            rows.append({**row, "gain": asdict(difference_interval(both, of_copies))})
    return rows
