"""Reads an observation row (D,) float32 in metres and plain numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from echelon_env.engine.kernels import integer, kernel
from echelon_env.engine.observe import (
    COMM_AT,
    COMM_MASK_AT,
    COMM_WIDTH,
    CONTACT_WIDTH,
    CONTACTS_AT,
    CONTACTS_MASK_AT,
    INTEL_AT,
    INTEL_MASK_AT,
    INTEL_WIDTH,
    OBJECTIVE_AT,
    SQUAD_AT,
    SQUAD_MASK_AT,
    SQUAD_WIDTH,
)
from echelon_env.layout.observations import (
    CLASS_NAMES,
    CONTACT_CLASS,
    INTEL_CLASS,
    SELF_CLASS,
    SQUAD_CLASS,
    Contact,
    Objective,
    Self,
    Squad,
)
from echelon_env.opponents.knowledge import UNKNOWN, Knowledge

CLASSES = len(CLASS_NAMES)


@kernel
def value(observation: Any, index: int) -> float:
    """An entry as float64: all computations are in float64."""
    return float(np.float64(observation[index]))


@kernel
def own(observation: Any, feature: int) -> float:
    """A feature of the mech itself."""
    return value(observation, integer(feature))


@kernel
def objective(observation: Any, feature: int) -> float:
    """A feature of the zone and the score."""
    return value(observation, OBJECTIVE_AT + integer(feature))


@kernel
def contact(observation: Any, row: int, feature: int) -> float:
    """A feature of an enemy in the contact table."""
    return value(observation, CONTACTS_AT + row * CONTACT_WIDTH + integer(feature))


@kernel
def squad(observation: Any, row: int, feature: int) -> float:
    """A feature of a team-mate."""
    return value(observation, SQUAD_AT + row * SQUAD_WIDTH + integer(feature))


@kernel
def intel(observation: Any, row: int, feature: int) -> float:
    """A feature of an enemy that the pack remembers."""
    return value(observation, INTEL_AT + row * INTEL_WIDTH + integer(feature))


@kernel
def is_contact(observation: Any, row: int) -> bool:
    """Whether a contact row is filled."""
    return bool(observation[CONTACTS_MASK_AT + row] > 0)


@kernel
def is_mate(observation: Any, row: int) -> bool:
    """Whether a squad row is filled."""
    return bool(observation[SQUAD_MASK_AT + row] > 0)


@kernel
def is_intel(observation: Any, row: int) -> bool:
    """Whether an intel row is filled."""
    return bool(observation[INTEL_MASK_AT + row] > 0)


@kernel
def is_message(observation: Any, row: int) -> bool:
    """Whether a comm row is filled."""
    return bool(observation[COMM_MASK_AT + row] > 0)


@kernel
def class_at(observation: Any, index: int) -> int:
    """The class of the one-hot at an index."""
    for c in range(CLASSES):
        if observation[index + c] > 0:
            return int(c)
    return UNKNOWN


@kernel
def own_class(observation: Any) -> int:
    """The mech's own class."""
    return class_at(observation, integer(SELF_CLASS))


@kernel
def contact_class(observation: Any, row: int) -> int:
    """The class of an enemy in the contact table."""
    return class_at(observation, CONTACTS_AT + row * CONTACT_WIDTH + integer(CONTACT_CLASS))


@kernel
def contact_distance(knowledge: Knowledge, observation: Any, row: int) -> float:
    """Distance in metres to an enemy in the contact table, between the centres."""
    return float(contact(observation, row, Contact.DISTANCE) * knowledge.rules[0].map_diagonal)


@kernel
def _planar(knowledge: Knowledge, distance: float, elevation: float) -> float:
    """Distance in the plane, in metres, of something at an observed elevation."""
    up = elevation * knowledge.rules[0].map_height
    return math.sqrt(max(0.0, distance * distance - up * up))


@kernel
def contact_place(knowledge: Knowledge, observation: Any, row: int) -> tuple[float, float]:
    """Position of an enemy in the contact table, metres forward and left in the plane."""
    planar = _planar(
        knowledge, contact_distance(knowledge, observation, row), contact(observation, row, Contact.ELEVATION)
    )
    return (
        planar * contact(observation, row, Contact.DIRECTION_FORWARD),
        planar * contact(observation, row, Contact.DIRECTION_LEFT),
    )


@kernel
def mate_class(observation: Any, row: int) -> int:
    """The class of a team-mate."""
    return class_at(observation, SQUAD_AT + row * SQUAD_WIDTH + integer(SQUAD_CLASS))


@kernel
def intel_class(observation: Any, row: int) -> int:
    """The class of an enemy that the pack remembers."""
    return class_at(observation, INTEL_AT + row * INTEL_WIDTH + integer(INTEL_CLASS))


@kernel
def comm(observation: Any, row: int, feature: int) -> float:
    """A feature of a message."""
    return value(observation, COMM_AT + row * COMM_WIDTH + integer(feature))


@kernel
def on_map(knowledge: Knowledge, observation: Any, forward: float, left: float) -> tuple[float, float]:
    """Position of a point of the own frame, in metres from the centre of the map rotated to the own spawn."""
    half = 0.5 * knowledge.rules[0].map_size
    c, s = own(observation, Self.HEADING_COS), own(observation, Self.HEADING_SIN)
    return (
        own(observation, Self.POSITION_X) * half + forward * c - left * s,
        own(observation, Self.POSITION_Y) * half + forward * s + left * c,
    )


@kernel
def mate_place(knowledge: Knowledge, observation: Any, row: int) -> tuple[float, float]:
    """Position of a team-mate, metres forward and left in the plane."""
    distance = squad(observation, row, Squad.DISTANCE) * knowledge.rules[0].map_diagonal
    planar = _planar(knowledge, distance, squad(observation, row, Squad.ELEVATION))
    return (
        planar * squad(observation, row, Squad.DIRECTION_FORWARD),
        planar * squad(observation, row, Squad.DIRECTION_LEFT),
    )


@kernel
def zone_place(knowledge: Knowledge, observation: Any) -> tuple[float, float, float]:
    """Position of the zone's centre, metres forward and left, and the zone's radius."""
    rules = knowledge.rules[0]
    radius = objective(observation, Objective.RADIUS) * rules.zone_scale
    edge = objective(observation, Objective.DISTANCE) * rules.map_diagonal
    distance = edge + radius if edge > 0.0 else objective(observation, Objective.DISTANCE_NEAR) * rules.zone_scale
    return (
        distance * objective(observation, Objective.DIRECTION_FORWARD),
        distance * objective(observation, Objective.DIRECTION_LEFT),
        radius,
    )


@kernel
def arc_covers(arc_cos: float, forward: float, left: float) -> bool:
    """Whether a direction lies in an arc around the facing, by the engine's rule."""
    return bool(forward >= arc_cos * math.sqrt(forward * forward + left * left))
