"""The reward: one function per component, summed in the order of `RewardConfig`."""

from __future__ import annotations

from typing import Any

from echelon_env.config import REWARD_COMPONENTS
from echelon_env.engine._jit import Row, kernel
from echelon_env.engine.outcome import is_terminal
from echelon_env.engine.state import DRAW, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.zone import distance_to_centre, is_inside

NUM_COMPONENTS = len(REWARD_COMPONENTS)


@kernel
def potential(rules: Row, battle: Row, mech: Row) -> float:
    """Approach potential: 1 inside the zone, falling with the distance to its edge; 0 once dead or terminated."""
    if not mech.alive or is_terminal(rules, battle):
        return 0.0
    return float(1.0 - max(0.0, distance_to_centre(battle, mech) - battle.zone_radius) / rules.map_size)


@kernel
def approach(rules: Row, battle: Row, mech: Row) -> float:
    """Potential-based shaping towards the zone (Ng, Harada and Russell, ICML 1999); moves the potential on."""
    before = mech.potential
    mech.potential = potential(rules, battle, mech)
    return float(rules.gamma * mech.potential - before)


@kernel
def zone_control(rules: Row, battle: Row, mech: Row, own_share: float, enemy_share: float) -> float:
    """Seconds of the zone that a mech inside it won for its team in this decision."""
    if not is_inside(rules, battle, mech):
        return 0.0
    return float((own_share - enemy_share) * rules.decision_seconds)


@kernel
def battle_outcome(rules: Row, battle: Row, mech: Row) -> float:
    """1 for a win, -1 for a loss, 0 for a draw, at a terminated end."""
    if not is_terminal(rules, battle) or battle.winner == DRAW:
        return 0.0
    return 1.0 if battle.winner == mech.team else -1.0


@kernel
def reward_all(tables: Tables, state: State, b: int, components: Any, rewards: Any) -> None:
    """Write the components (M, K) and their sums (M,), float32, of a battle's mechs for this decision."""
    rules, battle, teams, mechs = tables.rules[0], state.battles[b], state.teams[b], state.mechs[b]
    for m in range(mechs.shape[0]):
        mech, row = mechs[m], components[m]
        if not (mech.alive or mech.died or rules.dead_persist):
            row[:] = 0.0
            rewards[m] = 0.0
            continue
        own, enemy = teams[mech.team], teams[1 - mech.team]
        row[0] = rules.weight_approach * approach(rules, battle, mech)
        row[1] = rules.weight_zone * zone_control(rules, battle, mech, own.share, enemy.share)
        row[2] = rules.weight_damage * (mech.damage_dealt - mech.friendly_damage)
        row[3] = rules.weight_kill * mech.kills
        row[4] = rules.weight_assist * mech.assists
        row[5] = rules.weight_death * mech.died
        row[6] = rules.weight_outcome * battle_outcome(rules, battle, mech)
        row[7] = rules.weight_overheat * mech.shutdown_ticks * rules.dt
        total = row[0]
        for k in range(1, NUM_COMPONENTS):
            total += row[k]
        rewards[m] = total
