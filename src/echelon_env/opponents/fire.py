"""The choice of triggers, venting, electronics and messages."""

from __future__ import annotations

import math
from typing import Any

from echelon_env.engine import rng
from echelon_env.engine.geometry import clip
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.layout.actions import Action
from echelon_env.layout.observations import Contact, Self
from echelon_env.opponents.appraisal import is_alone
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.senses import contact, contact_place, is_contact, on_map, own
from echelon_env.opponents.targets import MOUNT_COUNT, NO_TARGET, reaches

BURST_SECONDS, BURST_PERIOD = 0.5, 8.0  # s, duration and period of the trivial level's fire
PHASE = 2  # stream of the random numbers
HOTTEST = 0.98  # share of the heat capacity that own shots may reach
COOL, FAR_METRES = 0.5, 15.0  # share of the heat capacity below which jets are used, and distance of a far goal
WARM = 0.3  # share of the heat capacity above which a mech that does not fire vents
SAVING_SECONDS = 1.0  # heat is reserved for a better weapon that is ready within this time


@kernel
def fight(knowledge: Knowledge, skill: Row, observation: Any, memory: Row, plan: Row, action: Any) -> None:
    """Write target, triggers, vent, electronics, display and message."""
    sees = is_contact(observation, 0)
    if not skill.aims:
        phase = BURST_PERIOD * rng.random_unit(memory.seed, 0, 0, PHASE)
        if sees and (memory.clock + phase) % BURST_PERIOD < BURST_SECONDS:
            pull_all(knowledge, plan, action)
        return
    in_sight = False
    if plan.target != NO_TARGET:
        action[integer(Action.TARGET_0) + plan.target] = 1.0
        in_sight = contact(observation, plan.target, Contact.LINE_OF_SIGHT) > 0.0
    spent = screen(knowledge, observation, plan, action) if skill.screens and plan.target != NO_TARGET else 0.0
    fire(knowledge, skill, observation, memory, plan, action, spent)
    if skill.jams:
        if own(observation, Self.JAMMED) > 0.0 and not is_alone(observation):
            action[Action.ECCM] = 1.0
        elif sees:
            action[Action.ECM] = 1.0
    if skill.talks:
        action[Action.DISPLAY_DANGEROUS] = 1.0
        if in_sight:
            send_target(knowledge, observation, plan, action)


@kernel
def pull_all(knowledge: Knowledge, plan: Row, action: Any) -> None:
    """Pull all triggers except that of the smoke."""
    for mount in range(MOUNT_COUNT):
        if mount != knowledge.styles[plan.mech_class].smoke:
            action[integer(Action.PRIMARY) + mount] = 1.0


@kernel
def send_target(knowledge: Knowledge, observation: Any, plan: Row, action: Any) -> None:
    """Send the target's position to the pack, in half map sizes from the map's centre, with a flag that it is valid."""
    forward, left = contact_place(knowledge, observation, plan.target)
    x, y = on_map(knowledge, observation, forward, left)
    half = 0.5 * knowledge.rules[0].map_size
    action[Action.COMM_0], action[Action.COMM_1] = clip(x / half, -1.0, 1.0), clip(y / half, -1.0, 1.0)
    action[Action.COMM_2] = 1.0


@kernel
def wait_of(knowledge: Knowledge, observation: Any, weapon: Row, mount: int) -> float:
    """Seconds until a mount's weapon is ready."""
    return float(own(observation, integer(Self.COOLDOWN_PRIMARY) + mount) * weapon.cooldown * knowledge.rules[0].dt)


@kernel
def screen(knowledge: Knowledge, observation: Any, plan: Row, action: Any) -> float:
    """Fire smoke at the target if the mech was hit, a shell is ready and its heat fits. Returns that heat, or 0."""
    mech_class, mount = knowledge.classes[plan.mech_class], integer(knowledge.styles[plan.mech_class].smoke)
    hit = own(observation, Self.HURT_FORWARD) != 0.0 or own(observation, Self.HURT_LEFT) != 0.0
    if mount < 0 or not hit or not reaches(knowledge, observation, plan, mount, plan.target):
        return 0.0
    weapon = knowledge.weapons[integer(mech_class.weapon[mount])]
    hot = own(observation, Self.HEAT) * mech_class.heat_capacity + weapon.heat > HOTTEST * mech_class.heat_capacity
    if hot or own(observation, integer(Self.HAS_PRIMARY) + mount) <= 0.0:
        return 0.0
    if wait_of(knowledge, observation, weapon, mount) > 0.0:
        return 0.0
    action[integer(Action.PRIMARY) + mount] = 1.0
    return float(weapon.heat)


@kernel
def fire(
    knowledge: Knowledge, skill: Row, observation: Any, memory: Row, plan: Row, action: Any, spent: float
) -> None:  # fmt: skip
    """Fire weapons that reach the target, most effect per heat first, within the heat limit; vent if none fires.

    `spent`: heat of what the mech fires already.
    """
    rules, mech_class, style = knowledge.rules[0], knowledge.classes[plan.mech_class], knowledge.styles[plan.mech_class]
    seconds = rules.decision_seconds
    heat = own(observation, Self.HEAT) * mech_class.heat_capacity
    budget = HOTTEST * mech_class.heat_capacity - heat - spent + mech_class.heat_dissipation * seconds
    fires = spent > 0.0
    for i in range(MOUNT_COUNT):
        mount = integer(style.order[i])
        if mount < 0 or plan.target == NO_TARGET or not reaches(knowledge, observation, plan, mount, plan.target):
            continue
        trigger = integer(Action.PRIMARY) + mount
        if not skill.cools:
            action[trigger] = 1.0
            continue
        weapon = knowledge.weapons[integer(mech_class.weapon[mount])]
        painted = contact(observation, plan.target, Contact.PAINTED) > 0.0
        if weapon.damage <= 0.0 and (painted or not skill.paints):
            continue
        cooldown = weapon.cooldown * rules.dt
        wait = wait_of(knowledge, observation, weapon, mount)
        if wait > seconds - 0.5 * rules.dt:
            if wait < SAVING_SECONDS:
                budget -= weapon.heat
            continue
        cost = weapon.heat * (1.0 + math.floor((seconds - 0.5 * rules.dt - wait) / cooldown))
        if cost <= budget:
            budget -= cost
            action[trigger] = 1.0
            fires = True
    if fires:
        return
    hurries = memory.leaving or memory.yielding or plan.goal_forward**2 + plan.goal_left**2 > FAR_METRES**2
    can_jet = mech_class.jet_acceleration > 0.0 and heat < COOL * mech_class.heat_capacity
    if skill.jets and can_jet and hurries and plan.speed > 0.9:
        action[Action.JET] = 1.0
    elif skill.cools and heat > WARM * mech_class.heat_capacity:
        action[Action.VENT] = 1.0
