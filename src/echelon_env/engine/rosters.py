"""Ranges of a team's mechs. The mechs of a team are contiguous, both by index and by spawn place."""

from __future__ import annotations

from echelon_env.config.battle import PACK
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import BLUE

PACK_SIZE = len(PACK)


@kernel
def places_of(rules: Row, battle: Row, count: int, team: int) -> tuple[int, int]:
    """The spawn places of a team in a battle of `count` mechs: the first, and the one after the last."""
    mechs = integer(rules.num_blue) if team == BLUE else count - integer(rules.num_blue)
    if team == battle.first_team:
        return integer(0), mechs
    return count - mechs, count


@kernel
def enemies_of(rules: Row, count: int, pack: int) -> tuple[int, int]:
    """The enemies of a pack in a battle of `count` mechs, by index: the first, and the one after the last."""
    num_blue = integer(rules.num_blue)
    if pack * PACK_SIZE < num_blue:  # blue's packs come first
        return num_blue, count
    return integer(0), num_blue
