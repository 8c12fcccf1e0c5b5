"""What is going on around: who is near, who is stronger, who is about to win."""

from __future__ import annotations

from typing import Any

from echelon_env.engine._jit import Row, kernel
from echelon_env.observations import CONTACT_ROWS, INTEL_ROWS, SQUAD_ROWS, Contact, Intel, Objective, Self, Squad
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
    squad,
)

NEAR_METRES = 15.0  # team-mates that near help
MARCH_METRES = 6.0  # enemies that much farther away will be here soon
SLOWEST = 0.5  # m/s, taken for the speed of who cannot walk
SPARE_SECONDS = 10.0  # in which one wants to be in the zone before the enemy wins by it


@kernel
def force(knowledge: Knowledge, mech_class: int, armour: float) -> float:
    """What a mech with a share of its armour is worth in a fight: what it does times what it takes."""
    return float(knowledge.styles[mech_class].threat * knowledge.classes[mech_class].armour * armour)


@kernel
def outmatched(knowledge: Knowledge, observation: Any, plan: Row) -> bool:
    """Whether the enemies near are stronger than the mech and its team-mates near."""
    diagonal = knowledge.rules[0].map_diagonal
    ours, theirs = force(knowledge, plan.mech_class, own(observation, Self.ARMOUR)), 0.0
    for row in range(SQUAD_ROWS):
        if is_mate(observation, row) and squad(observation, row, Squad.DISTANCE) * diagonal < NEAR_METRES:
            ours += force(knowledge, mate_class(observation, row), squad(observation, row, Squad.ARMOUR))
    for row in range(CONTACT_ROWS):
        if is_contact(observation, row) and contact_distance(knowledge, observation, row) < NEAR_METRES + MARCH_METRES:
            theirs += force(knowledge, contact_class(observation, row), contact(observation, row, Contact.ARMOUR))
    for row in range(INTEL_ROWS):
        if (
            is_intel(observation, row)
            and intel(observation, row, Intel.DISTANCE) * diagonal < NEAR_METRES + MARCH_METRES
        ):
            theirs += force(knowledge, intel_class(observation, row), intel(observation, row, Intel.ARMOUR))
    return bool(ours < theirs)


@kernel
def nearest_enemy(knowledge: Knowledge, observation: Any) -> tuple[float, float, float]:
    """Distance in metres (inf for nobody) and direction (forward, left) of the nearest enemy that is seen or known."""
    nearest, forward, left = float("inf"), 1.0, 0.0
    for row in range(CONTACT_ROWS):
        if is_contact(observation, row):
            distance = contact_distance(knowledge, observation, row)
            if distance < nearest:
                nearest = distance
                forward = contact(observation, row, Contact.DIRECTION_FORWARD)
                left = contact(observation, row, Contact.DIRECTION_LEFT)
    for row in range(INTEL_ROWS):
        if is_intel(observation, row):
            distance = intel(observation, row, Intel.DISTANCE) * knowledge.rules[0].map_diagonal
            if distance < nearest:
                nearest = distance
                forward = intel(observation, row, Intel.DIRECTION_FORWARD)
                left = intel(observation, row, Intel.DIRECTION_LEFT)
    return nearest, forward, left


@kernel
def is_alone(observation: Any) -> bool:
    """Whether no team-mate lives."""
    mates = 0
    for row in range(SQUAD_ROWS):
        mates += is_mate(observation, row)
    return mates == 0


@kernel
def zone_slips_away(knowledge: Knowledge, observation: Any, plan: Row) -> bool:
    """Whether the enemy holds the zone and wins by it unless one goes there now."""
    if objective(observation, Objective.ENEMY_SHARE) <= objective(observation, Objective.OWN_SHARE):
        return False
    rules = knowledge.rules[0]
    left = (1.0 - objective(observation, Objective.ENEMY_SCORE)) * rules.score_to_win
    speed = max(SLOWEST, knowledge.classes[plan.mech_class].top_speed)
    return bool(objective(observation, Objective.DISTANCE) * rules.map_diagonal / speed + SPARE_SECONDS > left)
