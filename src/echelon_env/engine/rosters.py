"""Where a team's mechs are: those of either are next to each other, by index and by spawn place."""

from __future__ import annotations

from echelon_env.engine._jit import Row, integer, kernel
from echelon_env.engine.state import BLUE


@kernel
def places_of(rules: Row, battle: Row, count: int, team: int) -> tuple[int, int]:
    """First spawn place of a team, in a battle of `count` mechs, and the one after its last."""
    mechs = integer(rules.num_blue) if team == BLUE else count - integer(rules.num_blue)
    if team == battle.first_team:
        return integer(0), mechs
    return count - mechs, count
