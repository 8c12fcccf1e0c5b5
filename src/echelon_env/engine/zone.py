"""The zone: which mechs are inside, which team holds it, and the scores."""

from __future__ import annotations

import math

from echelon_env.engine.kernels import Row, kernel
from echelon_env.engine.state import BLUE, RED, State
from echelon_env.engine.tables import Tables


@kernel
def distance_to_centre(battle: Row, mech: Row) -> float:
    """Distance in metres, in the plane, from a mech to the zone's centre."""
    return math.sqrt((mech.x - battle.zone_x) ** 2 + (mech.y - battle.zone_y) ** 2)


@kernel
def is_inside(rules: Row, battle: Row, mech: Row) -> bool:
    """Whether a mech counts as inside the zone."""
    low = mech.z < rules.max_feet_height
    return bool(mech.alive and low and distance_to_centre(battle, mech) <= battle.zone_radius)


@kernel
def is_contested(rules: Row, state: State, b: int) -> bool:
    """Whether living mechs of both teams are inside the zone now."""
    battle, mechs = state.battles[b], state.mechs[b]
    inside = 0
    for m in range(mechs.shape[0]):
        if is_inside(rules, battle, mechs[m]):
            inside |= 1 << int(mechs[m].team)
    return bool(inside == (1 << BLUE | 1 << RED))


@kernel
def share_of(own: float, enemy: float, contested_share: float) -> float:
    """A team's share of the zone, from the tonnage that each team has inside."""
    if own == 0.0:
        return 0.0
    if enemy == 0.0:
        return 1.0
    margin = (own - enemy) / (own + enemy)
    return contested_share + (1.0 - contested_share) * max(0.0, margin)


@kernel
def score_all(tables: Tables, state: State, b: int) -> None:
    """Update the teams' tonnage inside the zone, their shares and their scores for one decision."""
    rules, battle, teams, mechs = tables.rules[0], state.battles[b], state.teams[b], state.mechs[b]
    teams[BLUE].tonnage = teams[RED].tonnage = 0.0
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        if is_inside(rules, battle, mech):
            teams[mech.team].tonnage += tables.classes[mech.mech_class].tonnage
    for team in range(2):
        teams[team].share = share_of(teams[team].tonnage, teams[1 - team].tonnage, rules.contested_share)
        teams[team].score += teams[team].share * rules.decision_seconds
