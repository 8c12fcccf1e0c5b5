"""Assessment of the situation: nearby mechs, relative strength, and imminent victories."""

from __future__ import annotations

from typing import Any

from echelon_env.engine.kernels import Row, kernel
from echelon_env.layout.observations import CONTACT_ROWS, INTEL_ROWS, SQUAD_ROWS, Contact, Intel, Objective, Self, Squad
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.senses import (
    contact,
    contact_class,
    contact_distance,
    intel,
    intel_class,
    is_contact,
    is_intel,
    is_mate,
    mate_class,
    objective,
    own,
    own_class,
    squad,
)

NEAR_METRES = 15.0  # team-mates within this distance count
SUPERIOR = 1.2  # a team stronger than all known enemies by this factor does not retreat
MARCH_METRES = 6.0  # enemies up to this much farther away count too, as they approach
SLOWEST = 0.5  # m/s, the speed assumed for a mech that cannot walk
SPARE_SECONDS = 10.0  # margin for arriving in the zone before the enemy wins by it


@kernel
def strength(knowledge: Knowledge, mech_class: int, armour: float) -> float:
    """Strength of a mech with a share of its armour: damage rate times remaining armour."""
    return float(knowledge.styles[mech_class].threat * knowledge.classes[mech_class].armour * armour)


@kernel
def enemy_strength(knowledge: Knowledge, observation: Any, within: float) -> float:
    """Total strength of the visible and remembered enemies within a distance in metres."""
    total = 0.0
    for row in range(CONTACT_ROWS):
        if is_contact(observation, row) and contact_distance(knowledge, observation, row) < within:
            total += strength(knowledge, contact_class(observation, row), contact(observation, row, Contact.ARMOUR))
    for row in range(INTEL_ROWS):
        near = intel(observation, row, Intel.DISTANCE) * knowledge.rules[0].map_diagonal < within
        if is_intel(observation, row) and near:
            total += strength(knowledge, intel_class(observation, row), intel(observation, row, Intel.ARMOUR))
    return total


@kernel
def friendly_strength(knowledge: Knowledge, observation: Any, within: float) -> float:
    """Total strength of the mech and its team-mates within a distance in metres."""
    total = strength(knowledge, own_class(observation), own(observation, Self.ARMOUR))
    for row in range(SQUAD_ROWS):
        near = squad(observation, row, Squad.DISTANCE) * knowledge.rules[0].map_diagonal < within
        if is_mate(observation, row) and near:
            total += strength(knowledge, mate_class(observation, row), squad(observation, row, Squad.ARMOUR))
    return total


@kernel
def is_outmatched(knowledge: Knowledge, observation: Any) -> bool:
    """Whether nearby enemies are stronger than nearby team-mates, and all known enemies stronger than the team."""
    everywhere = 2.0 * knowledge.rules[0].map_diagonal
    if friendly_strength(knowledge, observation, NEAR_METRES) >= enemy_strength(
        knowledge, observation, NEAR_METRES + MARCH_METRES
    ):
        return False
    return bool(
        friendly_strength(knowledge, observation, everywhere)
        < SUPERIOR * enemy_strength(knowledge, observation, everywhere)
    )


@kernel
def nearest_enemy(knowledge: Knowledge, observation: Any) -> tuple[float, float, float]:
    """Distance in metres (inf if none) and direction of the nearest armed enemy, visible or remembered."""
    nearest, forward, left = float("inf"), 1.0, 0.0
    for row in range(CONTACT_ROWS):
        if is_contact(observation, row) and knowledge.styles[contact_class(observation, row)].threat > 0.0:
            distance = contact_distance(knowledge, observation, row)
            if distance < nearest:
                nearest = distance
                forward = contact(observation, row, Contact.DIRECTION_FORWARD)
                left = contact(observation, row, Contact.DIRECTION_LEFT)
    for row in range(INTEL_ROWS):
        if is_intel(observation, row) and knowledge.styles[intel_class(observation, row)].threat > 0.0:
            distance = intel(observation, row, Intel.DISTANCE) * knowledge.rules[0].map_diagonal
            if distance < nearest:
                nearest = distance
                forward = intel(observation, row, Intel.DIRECTION_FORWARD)
                left = intel(observation, row, Intel.DIRECTION_LEFT)
    return nearest, forward, left


@kernel
def is_alone(observation: Any) -> bool:
    """Whether all team-mates are dead."""
    mates = 0
    for row in range(SQUAD_ROWS):
        mates += is_mate(observation, row)
    return mates == 0


@kernel
def zone_loss_imminent(knowledge: Knowledge, observation: Any, plan: Row) -> bool:
    """Whether the enemy could win by the zone, by score or at the time limit, before the mech is there."""
    rules = knowledge.rules[0]
    ahead = objective(observation, Objective.ENEMY_SCORE) - objective(observation, Objective.OWN_SCORE)
    lead = objective(observation, Objective.ENEMY_SHARE) - objective(observation, Objective.OWN_SHARE)
    left = (1.0 - objective(observation, Objective.ENEMY_SCORE)) * rules.score_to_win
    if ahead > 0.0 or lead > 0.0:
        seconds = rules.max_steps * rules.decision_seconds * objective(observation, Objective.TIME_LEFT)
        left = min(left, seconds - max(0.0, ahead) * rules.score_to_win)
    speed = max(SLOWEST, knowledge.classes[plan.mech_class].top_speed)
    return bool(objective(observation, Objective.DISTANCE) * rules.map_diagonal / speed + SPARE_SECONDS > left)
