"""The zone: which mechs are inside, which team holds it, and the scores."""

from __future__ import annotations

import math

from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.engine.state import BLUE, RED, State
from echelon_env.engine.tables import Tables


@kernel
def distance_to_centre(battle: Row, mech: Row) -> float:
    """Distance in metres, in the plane, from a mech to the zone's centre."""
    return math.sqrt((mech.x - battle.zone_x) ** 2 + (mech.y - battle.zone_y) ** 2)


@kernel
def is_inside(rules: Row, battle: Row, mech: Row) -> bool:
    """Whether a mech counts as inside the zone: it lives and stands, and is low enough."""
    able, low = mech.alive and mech.fallen == 0, mech.z < rules.max_feet_height
    return bool(able and low and distance_to_centre(battle, mech) <= battle.zone_radius)


@kernel
def is_shown(tables: Tables, battle: Row, mech: Row) -> bool:
    """Whether a mech observes now where the zone is, who is inside, and the scores."""
    shown = tables.rules[0].shown_decisions
    return bool(tables.classes[mech.mech_class].observes_zone and (shown == 0 or battle.step_count < shown))


@kernel
def is_contested(rules: Row, state: State, b: int) -> bool:
    """Whether mechs of both teams count as inside the zone now."""
    battle, mechs = state.battles[b], state.mechs[b]
    inside = 0
    for m in range(mechs.shape[0]):
        if is_inside(rules, battle, mechs[m]):
            inside |= 1 << int(mechs[m].team)
    return bool(inside == (1 << BLUE | 1 << RED))


@kernel
def share_of(own: int, enemy: int) -> float:
    """A team's share of the zone, from the numbers of mechs that each team has inside."""
    return (own - enemy) / (own + enemy) if own > enemy else 0.0


@kernel
def score_all(tables: Tables, state: State, b: int) -> None:
    """Update the teams' mechs inside the zone, their shares and their scores for one decision."""
    rules, battle, teams, mechs = tables.rules[0], state.battles[b], state.teams[b], state.mechs[b]
    teams[BLUE].inside = teams[RED].inside = 0
    for m in range(mechs.shape[0]):
        mech = mechs[m]
        if is_inside(rules, battle, mech):
            teams[mech.team].inside += 1
    for team in range(2):
        teams[team].share = share_of(integer(teams[team].inside), integer(teams[1 - team].inside))
        teams[team].score += teams[team].share * rules.decision_seconds
