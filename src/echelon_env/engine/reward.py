"""The reward: one function per component, summed in the order of `RewardConfig`."""

from __future__ import annotations

from typing import Any

import numpy as np

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.outcome import is_terminal
from echelon_env.engine.state import DRAW, State
from echelon_env.engine.tables import Tables
from echelon_env.engine.zone import distance_to_centre

NUM_COMPONENTS = len(REWARD_COMPONENTS)


@kernel
def potential(rules: Row, battle: Row, mech: Row) -> float:
    """Approach potential: 1 inside the zone, less with distance to its edge; 0 when dead or terminated."""
    if not mech.alive or is_terminal(rules, battle):
        return 0.0
    return float(1.0 - max(0.0, distance_to_centre(battle, mech) - battle.zone_radius) / rules.map_size)


@kernel
def approach(rules: Row, battle: Row, mech: Row) -> float:
    """Potential-based shaping towards the zone (Ng, Harada and Russell, ICML 1999); updates the stored potential.

    A death or a terminal end sets the potential to 0. The mech then keeps the share `approach_kept` of the last
    potential; only with a share of 0 is the shaping potential-based.
    """
    before = mech.potential
    mech.potential = potential(rules, battle, mech)
    if not mech.alive or is_terminal(rules, battle):
        return float(rules.approach_kept * before - before)
    return float(rules.gamma * mech.potential - before)


@kernel
def zone_control(rules: Row, own_share: float, enemy_share: float) -> float:
    """The seconds of the zone that its team won in this decision, less those that the enemy won.

    Every mech of a team earns it, inside or not: so it is zero-sum between teams of equal size, and to contest a zone
    that the enemy holds is worth the same as what it takes from the enemy.
    """
    return float((own_share - enemy_share) * rules.decision_seconds)


@kernel
def damage(mech: Row) -> float:
    """Hit points dealt to enemies in this decision, minus those dealt to team-mates and to itself."""
    return float(mech.damage_dealt - mech.friendly_damage)


@kernel
def kill(mech: Row) -> float:
    """Shares of this decision's kills; those made inside a contested zone count more."""
    return float(mech.kills)


@kernel
def assist(mech: Row) -> float:
    """Shares of kills of mechs that it had painted; those inside a contested zone count more."""
    return float(mech.assists)


@kernel
def death(mech: Row) -> float:
    """1 in the decision of its death, less inside a contested zone."""
    return float(mech.loss)


@kernel
def overheat(rules: Row, mech: Row) -> float:
    """Seconds shut down in this decision."""
    return float(mech.shutdown_ticks * rules.dt)


@kernel
def outcome(rules: Row, battle: Row, mech: Row) -> float:
    """1 for a win, -1 for a loss, 0 for a draw, when the battle terminates."""
    if not is_terminal(rules, battle) or battle.winner == DRAW:
        return 0.0
    return 1.0 if battle.winner == mech.team else -1.0


@kernel
def takes_part(rules: Row, mech: Row) -> bool:
    """Whether a mech is an agent of the environment in this decision. Afterwards it gets no rewards."""
    return bool(mech.alive or mech.died or rules.dead_persist)


@kernel
def write_components(rules: Row, battle: Row, teams: Any, mech: Row, row: Any) -> None:
    """Write the weighted components (K,) of a mech that takes part, in the order of `RewardConfig`."""
    own, enemy = teams[mech.team], teams[1 - mech.team]
    components = (
        rules.weight_approach * approach(rules, battle, mech),
        rules.weight_zone * zone_control(rules, own.share, enemy.share),
        rules.weight_damage * damage(mech),
        rules.weight_kill * kill(mech),
        rules.weight_assist * assist(mech),
        rules.weight_death * death(mech),
        rules.weight_outcome * outcome(rules, battle, mech),
        rules.weight_overheat * overheat(rules, mech),
    )
    for k in range(NUM_COMPONENTS):
        row[k] = components[k]


@kernel
def apply_team_spirit(rules: Row, mechs: Any, components: Any) -> None:
    """Blend each component (M, K) of the mechs that take part with its mean over the team, dead mechs included."""
    for team in range(2):
        for k in range(NUM_COMPONENTS):
            total, count = 0.0, 0
            for m in range(mechs.shape[0]):
                if mechs[m].team == team:
                    total += np.float64(components[m, k])
                    count += 1
            for m in range(mechs.shape[0]):
                if mechs[m].team == team and takes_part(rules, mechs[m]):
                    own = (1.0 - rules.team_spirit) * np.float64(components[m, k])
                    components[m, k] = own + rules.team_spirit * total / count


@kernel
def reward_all(tables: Tables, state: State, b: int, components: Any, rewards: Any) -> None:
    """Write the components (M, K) and their sums (M,), float32, of a battle's mechs for this decision."""
    rules, mechs = tables.rules[0], state.mechs[b]
    components[:, :] = 0.0
    for m in range(mechs.shape[0]):
        if takes_part(rules, mechs[m]):
            write_components(rules, state.battles[b], state.teams[b], mechs[m], components[m])
    if rules.team_spirit > 0.0:
        apply_team_spirit(rules, mechs, components)
    for m in range(mechs.shape[0]):
        total = components[m, 0]
        for k in range(1, NUM_COMPONENTS):
            total += components[m, k]
        rewards[m] = total
