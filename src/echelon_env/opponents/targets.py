"""The choice of targets, and the weapons that reach them."""

from __future__ import annotations

from typing import Any

from echelon_env.config.catalog import MOUNTS
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.layout.actions import TARGET_CHOICES
from echelon_env.layout.observations import COMM_ROWS, CONTACT_ROWS, Comm, Contact, Self
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.senses import (
    arc_covers,
    comm,
    contact,
    contact_class,
    contact_distance,
    contact_place,
    is_contact,
    is_message,
    on_map,
    own,
)

NO_TARGET = -1
MOUNT_COUNT = len(MOUNTS)

# The value of an enemy: 1 at distance 0, half of that at the best range, and
IN_SIGHT = 1.0  # more in line of sight,
STAY = 0.05  # more for the last target, to avoid switching back and forth,
VOTE = 0.05  # more for each pack-mate that shoots at it,
PAINTED = 0.5  # less, for an unarmed mech, if it is painted already
KILL = 1.0  # more if the weapons that reach it kill it in `KILL_SECONDS`, and in proportion to their damage if not
KILL_SECONDS = 5.0
SAME_METRES = 2.5  # positions within this distance count as the same mech


@kernel
def reaches(knowledge: Knowledge, observation: Any, plan: Row, mount: int, row: int) -> bool:
    """Whether a mount's weapon can be fired at the enemy of a contact row, by the engine's rule."""
    weapon = knowledge.weapons[integer(knowledge.classes[plan.mech_class].weapon[mount])]
    distance = contact_distance(knowledge, observation, row)
    forward = contact(observation, row, Contact.DIRECTION_FORWARD)
    left = contact(observation, row, Contact.DIRECTION_LEFT)
    if distance > weapon.range or not arc_covers(weapon.arc_cos, forward, left):
        return False
    if weapon.guided and contact(observation, row, Contact.PAINTED) > 0.0:
        rules = knowledge.rules[0]
        if own(observation, Self.SENSOR_QUALITY) * rules.max_quality >= rules.link_quality:
            return True
    return bool(distance <= weapon.unaided_range and contact(observation, row, Contact.LINE_OF_SIGHT) > 0.0)


@kernel
def votes(knowledge: Knowledge, observation: Any, row: int) -> int:
    """Number of pack-mates whose messages name the enemy of a contact row as their target."""
    forward, left = contact_place(knowledge, observation, row)
    x, y = on_map(knowledge, observation, forward, left)
    half = 0.5 * knowledge.rules[0].map_size
    count = 0
    for mate in range(COMM_ROWS):
        if not is_message(observation, mate) or comm(observation, mate, Comm.IS_OWN) > 0.0:
            continue
        dx = comm(observation, mate, Comm.MESSAGE_0) * half - x
        dy = comm(observation, mate, Comm.MESSAGE_1) * half - y
        if comm(observation, mate, Comm.MESSAGE_2) > 0.5 and dx * dx + dy * dy < SAME_METRES**2:
            count += 1
    return count


@kernel
def share_killed(knowledge: Knowledge, observation: Any, plan: Row, row: int) -> float:
    """Share of the hit points of a contact row's enemy that the weapons that reach it take in `KILL_SECONDS`."""
    enemy = knowledge.classes[contact_class(observation, row)]
    rate = 0.0
    for mount in range(MOUNT_COUNT):
        w = integer(knowledge.classes[plan.mech_class].weapon[mount])
        if w >= 0 and reaches(knowledge, observation, plan, mount, row):
            weapon = knowledge.weapons[w]
            rate += max(0.0, weapon.damage - enemy.plating) / (weapon.cooldown * knowledge.rules[0].dt)
    left = contact(observation, row, Contact.ARMOUR) * enemy.armour
    return min(1.0, rate * KILL_SECONDS / left) if left > 0.0 else 1.0


@kernel
def worth(knowledge: Knowledge, skill: Row, observation: Any, plan: Row, row: int) -> float:
    """Value of the enemy of a contact row as a target."""
    style = knowledge.styles[plan.mech_class]
    score = 1.0 / (1.0 + contact_distance(knowledge, observation, row) / max(1.0, style.best_range))
    if contact(observation, row, Contact.LINE_OF_SIGHT) > 0.0:
        score += IN_SIGHT
    if contact(observation, row, Contact.IS_TARGET) > 0.0:
        score += STAY
    if skill.focuses:
        score += KILL * share_killed(knowledge, observation, plan, row)
    if skill.talks:
        score += VOTE * votes(knowledge, observation, row)
    if skill.scouts and style.threat <= 0.0 and contact(observation, row, Contact.PAINTED) > 0.0:
        score -= PAINTED
    return float(score)


@kernel
def choose_target(knowledge: Knowledge, skill: Row, observation: Any, plan: Row) -> None:
    """Write the plan's target: the most valuable contact row that an action can name, or none."""
    plan.target = NO_TARGET
    best = -1.0
    for row in range(min(CONTACT_ROWS, TARGET_CHOICES)):
        if is_contact(observation, row):
            score = worth(knowledge, skill, observation, plan, row)
            if score > best:
                best = score
                plan.target = row
            if skill.range_share <= 0.0:
                break  # without range keeping: the nearest enemy
