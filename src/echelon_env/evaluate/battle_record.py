"""The sums of one battle, as `BattleObserver` measures them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.engine.state import DRAW
from echelon_env.evaluate.battle_totals import BattleTotals, OpponentTotals, Sums, add_sums

__all__ = ["BattleRecord"]


@dataclass(frozen=True)
class BattleRecord:
    """The sums of a battle that is over."""

    names: tuple[str, ...]  # of the sums, see `battle_totals`
    sums: NDArray[np.float64]  # (M, names), of every mech
    teams: NDArray[np.int64]  # (M,) 0 blue, 1 red
    classes: tuple[str, ...]  # (M,) mech classes
    heat: NDArray[np.float64]  # (2, 4, HEAT_CELLS, HEAT_CELLS): by team, HEAT_MAPS, y and x, on the map as it is
    quarter_turns: tuple[int, int]  # of the map, counter-clockwise, that bring blue's, red's spawn to the corner (0, 0)
    map_size: int  # m
    winner: int  # 0 blue, 1 red, -1 none
    seconds: float  # s of battle time
    scores: tuple[float, float]  # s of zone control of blue and red
    first_kills: tuple[float, float]  # s until blue's, red's first kill if it was the battle's first, else 0

    def by_class(self, team: int) -> dict[str, Sums]:
        """The sums over a team's mechs of each class, without those that are 0."""
        sums: dict[str, Sums] = {}
        for mech in np.flatnonzero(self.teams == team).tolist():
            row = self.sums[mech]
            given = np.flatnonzero(row)
            values = zip(given.tolist(), row[given].tolist(), strict=True)
            add_sums(sums.setdefault(self.classes[mech], {}), {self.names[index]: value for index, value in values})
        return sums

    def totals(self, opponent: str, team: int) -> BattleTotals:
        """The battle as seen by a team, against an opponent of that name."""
        outcome = "draws" if self.winner == DRAW else "wins" if self.winner == team else "losses"
        results = {"battles": 1.0, outcome: 1.0, "seconds": self.seconds}
        results |= {"own_score": self.scores[team], "enemy_score": self.scores[1 - team]}
        for killer, seconds in enumerate(self.first_kills):
            if seconds:
                results |= {"first_kills": 1.0, "first_kill_seconds": seconds}
                results["first_kill_wins"] = float(self.winner == killer)
        turned = np.rot90(self.heat[[team, 1 - team]], -self.quarter_turns[team], axes=(2, 3))
        sides = OpponentTotals(results, self.by_class(team), self.by_class(1 - team))
        return BattleTotals({opponent: sides}, {self.map_size: turned.copy()})
