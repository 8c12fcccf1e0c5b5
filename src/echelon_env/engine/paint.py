"""Paint: which mechs each pack has painted, and which mech painted them."""

from __future__ import annotations

from echelon_env.engine.kernels import kernel
from echelon_env.engine.rosters import enemies_of
from echelon_env.engine.state import State
from echelon_env.engine.tables import Tables


@kernel
def is_painted(state: State, b: int, pack: int, o: int) -> bool:
    """Whether a pack has painted a mech."""
    return bool(state.paint[b, pack, o].ticks > 0)


@kernel
def is_painted_by_enemies(state: State, b: int, m: int) -> bool:
    """Whether any pack has painted a mech; packs paint enemies only."""
    painted = False
    for pack in range(state.paint.shape[1]):
        painted |= is_painted(state, b, pack, m)
    return painted


@kernel
def age_paint(tables: Tables, state: State, b: int) -> None:
    """One tick of all marks of a battle."""
    paint = state.paint[b]
    for pack in range(paint.shape[0]):
        first, stop = enemies_of(tables.rules[0], paint.shape[1], pack)
        for m in range(first, stop):
            paint[pack, m].ticks = max(0, paint[pack, m].ticks - 1)
