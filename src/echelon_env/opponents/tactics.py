"""The choice of the goal position and of the heading."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine.geometry import arc_tangent2, clip
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import CONTACT_ROWS, Contact, Objective, Self
from echelon_env.opponents.appraisal import is_alone, is_outmatched, nearest_enemy, zone_loss_imminent
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.senses import (
    contact,
    contact_distance,
    contact_place,
    is_contact,
    objective,
    own,
    zone_place,
)
from echelon_env.opponents.targets import NO_TARGET

REST = 0.5  # share of the zone's radius within which a mech stands still
ALERT_METRES = 20.0  # m, distance within which a mech turns to its target
WATCH_METRES = 30.0  # m, the same for the nearest known enemy, without a target
TURN_GAIN = 3.0  # share of the full turn rate per radian
STEP_METRES = 3.0  # distance of the goal of sidesteps and steps back

CHASE_METRES = 4.0  # beyond the longest weapon range: targets up to this distance are engaged
CLOSING = 4.0  # weight of moving to the best range,
SIDESTEP = 1.5  # of sidesteps,
HOMING_IN = 0.15  # of moving to the zone,
HOLDING = 12.0  # and of staying in a zone that must be held; at its edge more than closing and sidestepping
SIDESTEP_SECONDS = 3.0
HOLDING_SECONDS = 0.75  # of a sidestep in a zone that must be held

CLOSE_METRES = 14.0  # a badly damaged mech retreats from enemies within this distance
SAFE_METRES = 25.0  # and returns when none is within this distance
SHADOW_METRES = 22.0  # mechs yield to stronger enemies within this distance

PAINT_SHARE = 0.93  # of the painter's range at which an unarmed mech paints
AVOID_METRES = 20.0  # its distance to enemies while its paint lasts
AVOID_SECONDS = 4.0
SCOUT_METRES = 40.0  # it does so when enemies are within this distance


@kernel
def choose_goal(knowledge: Knowledge, skill: Row, observation: Any, memory: Row, plan: Row) -> None:
    """Write the plan's goal and speed: the zone, unless range keeping, scouting or a retreat overrides it.

    A mech that must hold the zone does not leave it: it keeps its range only inside, and does not scout or retreat.
    """
    forward, left, radius = zone_place(knowledge, observation)
    inside = objective(observation, Objective.IN_ZONE) > 0.0  # not on top of a block
    rests = inside and math.sqrt(forward * forward + left * left) <= REST * radius
    go(plan, forward, left, 0.0 if rests else 1.0)
    plan.face_forward, plan.face_left = (1.0, 0.0) if rests else (forward, left)
    holds = skill.guards > 0.0 and radius > 0.0 and zone_loss_imminent(knowledge, observation, plan)
    if skill.range_share > 0.0 and plan.target != NO_TARGET and (inside or not holds):
        keep_range(knowledge, skill, observation, memory, plan, forward, left, radius, holds)
    if holds:
        memory.leaving = memory.yielding = 0
        return
    enemy, enemy_forward, enemy_left = nearest_enemy(knowledge, observation)
    if skill.scouts and knowledge.styles[plan.mech_class].threat <= 0.0 and enemy <= SCOUT_METRES:
        scout(knowledge, observation, memory, plan, enemy, enemy_forward, enemy_left)
    update_retreat(knowledge, skill, observation, memory, enemy)
    if memory.leaving or memory.yielding:
        go(plan, -STEP_METRES * enemy_forward, -STEP_METRES * enemy_left, 1.0)


@kernel
def update_retreat(knowledge: Knowledge, skill: Row, observation: Any, memory: Row, enemy: float) -> None:
    """Decide whether to retreat and whether to yield. `enemy` is the distance in metres of the nearest armed enemy."""
    stronger = skill.yields and is_outmatched(knowledge, observation)
    if is_alone(observation) or enemy > SAFE_METRES or (skill.yields and not stronger):
        memory.leaving = 0
    elif enemy < CLOSE_METRES and own(observation, Self.ARMOUR) < skill.leaves_at:
        memory.leaving = 1
    if not stronger or enemy > SAFE_METRES:
        memory.yielding = 0
    elif enemy < SHADOW_METRES:
        memory.yielding = 1


@kernel
def go(plan: Row, forward: float, left: float, speed: float) -> None:
    """Write the plan's goal (metres in the own frame) and its speed (share of the top speed)."""
    plan.goal_forward, plan.goal_left, plan.speed = forward, left, speed


@kernel
def keep_range(
    knowledge: Knowledge,
    skill: Row,
    observation: Any,
    memory: Row,
    plan: Row,
    zone_forward: float,
    zone_left: float,
    radius: float,
    holds: bool,
) -> None:
    """Keep the best range to a visible target, with sidesteps if the skill dodges, and a pull to the zone."""
    style = knowledge.styles[plan.mech_class]
    forward, left = contact_place(knowledge, observation, plan.target)
    distance = math.sqrt(forward * forward + left * left)
    near = distance < 0.5 * skill.range_share * style.best_range
    hidden = contact(observation, plan.target, Contact.LINE_OF_SIGHT) <= 0.0
    if (hidden and not near) or distance > style.reach + CHASE_METRES or distance < 0.1:
        return
    ahead, aside = forward / distance, left / distance
    step = CLOSING * clip((distance - skill.range_share * style.best_range) / STEP_METRES, -1.0, 1.0)
    to_forward, to_left = step * ahead, step * aside
    if skill.dodges:
        if memory.clock >= memory.sidestep_until:
            memory.sidestep_until = memory.clock + (HOLDING_SECONDS if holds else SIDESTEP_SECONDS)
            memory.sidestep = -memory.sidestep
        to_forward -= SIDESTEP * memory.sidestep * aside
        to_left += SIDESTEP * memory.sidestep * ahead
    zone = math.sqrt(zone_forward**2 + zone_left**2)
    if zone > REST * radius:
        pull = (HOLDING if holds else HOMING_IN) * min(1.0, zone / radius - REST) / zone
        to_forward += pull * zone_forward
        to_left += pull * zone_left
    go(plan, STEP_METRES * to_forward, STEP_METRES * to_left, min(1.0, math.sqrt(to_forward**2 + to_left**2)))


@kernel
def scout(
    knowledge: Knowledge,
    observation: Any,
    memory: Row,
    plan: Row,
    enemy: float,
    enemy_forward: float,
    enemy_left: float,
) -> None:
    """Approach and paint the nearest unpainted enemy; keep away from the nearest enemy while the paint lasts."""
    painter = integer(knowledge.styles[plan.mech_class].painter)
    prey, distance = NO_TARGET, float("inf")
    for row in range(CONTACT_ROWS):
        if is_contact(observation, row) and contact(observation, row, Contact.PAINTED) <= 0.0:
            away = contact_distance(knowledge, observation, row)
            if away < distance:
                prey, distance = row, away
    keep, hunting = AVOID_METRES, False
    if painter >= 0 and prey != NO_TARGET and memory.clock >= memory.avoiding_until:
        keep, hunting = PAINT_SHARE * knowledge.styles[plan.mech_class].best_range, True
        if own(observation, integer(Self.COOLDOWN_PRIMARY) + painter) > 0.0:
            memory.avoiding_until = memory.clock + AVOID_SECONDS
    if enemy < keep - 1.0:
        go(plan, -STEP_METRES * enemy_forward, -STEP_METRES * enemy_left, 1.0)
    elif hunting and (distance > keep or contact(observation, prey, Contact.LINE_OF_SIGHT) <= 0.0):
        forward, left = contact_place(knowledge, observation, prey)
        go(plan, forward, left, 1.0)
    elif not hunting and enemy < keep + STEP_METRES:
        go(plan, -STEP_METRES * memory.sidestep * enemy_left, STEP_METRES * memory.sidestep * enemy_forward, 1.0)


@kernel
def face(knowledge: Knowledge, skill: Row, observation: Any, plan: Row, action: Any) -> None:
    """Write the turn: to the target, else to the nearest known enemy, else to the goal."""
    forward, left = plan.face_forward, plan.face_left
    if skill.aims and plan.target != NO_TARGET and contact_distance(knowledge, observation, plan.target) < ALERT_METRES:
        forward = contact(observation, plan.target, Contact.DIRECTION_FORWARD)
        left = contact(observation, plan.target, Contact.DIRECTION_LEFT)
    elif skill.range_share > 0.0:
        enemy, enemy_forward, enemy_left = nearest_enemy(knowledge, observation)
        if enemy < WATCH_METRES:
            forward, left = enemy_forward, enemy_left
    action[Action.TURN] = clip(TURN_GAIN * arc_tangent2(left, forward), -1.0, 1.0)
