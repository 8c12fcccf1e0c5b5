"""The end of a battle, and the mechs that it terminates or truncates."""

from __future__ import annotations

from typing import Any

from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.state import BLUE, DRAW, ELIMINATION, RED, TIME_LIMIT, ZONE_CONTROL, State
from echelon_env.engine.tables import Tables


@kernel
def _higher(blue: float, red: float) -> int:
    if blue == red:
        return DRAW
    return BLUE if blue > red else RED


@kernel
def armour_share(tables: Tables, state: State, b: int, team: int) -> float:
    """A team's remaining armour as a share of its initial armour."""
    left, full = 0.0, 0.0
    mechs, order = state.mechs[b], state.order[b]
    for place in range(order.shape[0]):
        mech = mechs[order[place]]
        if mech.team == team:
            left += mech.armour
            full += tables.classes[mech.mech_class].armour
    return left / full


@kernel
def _finish(battle: Row, reason: int, winner: int) -> None:
    battle.over, battle.reason, battle.winner = 1, reason, winner


@kernel
def decide_outcome(tables: Tables, state: State, b: int) -> None:
    """End the battle by zone control, elimination or the time limit, checked in this order."""
    rules, battle = tables.rules[0], state.battles[b]
    blue, red = state.teams[b, BLUE], state.teams[b, RED]
    if blue.score >= rules.score_to_win or red.score >= rules.score_to_win:
        _finish(battle, ZONE_CONTROL, _higher(blue.score, red.score))
    elif blue.mechs_alive == 0 or red.mechs_alive == 0:
        _finish(battle, ELIMINATION, _higher(blue.mechs_alive, red.mechs_alive))
    elif battle.step_count >= rules.max_steps:
        winner = _higher(blue.score, red.score)
        if winner == DRAW:
            winner = _higher(armour_share(tables, state, b, BLUE), armour_share(tables, state, b, RED))
        _finish(battle, TIME_LIMIT, winner)


@kernel
def is_terminal(rules: Row, battle: Row) -> bool:
    """Whether the battle ended by the game's rules; a time limit that only truncates does not count."""
    return bool(battle.over and (battle.reason != TIME_LIMIT or rules.clock_terminates))


@kernel
def flag_rows(tables: Tables, state: State, b: int, terminated: Any, truncated: Any) -> None:
    """Write the (M,) bool flags of mechs whose episodes end in this decision; never both for one mech."""
    rules, battle, mechs = tables.rules[0], state.battles[b], state.mechs[b]
    terminal = is_terminal(rules, battle)
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        present = bool(mech.alive or mech.died or rules.dead_persist)
        left = bool(mech.died and not rules.dead_persist)
        terminated[m] = present and (terminal or left)
        truncated[m] = present and battle.over and not terminated[m]
