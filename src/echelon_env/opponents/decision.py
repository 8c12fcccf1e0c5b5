"""A mech's decision: target, goal, heading, movement and fire."""

from __future__ import annotations

from typing import Any

from echelon_env.engine import rng
from echelon_env.engine.kernels import Row, integer, kernel
from echelon_env.opponents.fire import fight
from echelon_env.opponents.knowledge import Knowledge
from echelon_env.opponents.memory import Scratch
from echelon_env.opponents.navigation import steer
from echelon_env.opponents.senses import own_class, value
from echelon_env.opponents.tactics import choose_goal, face
from echelon_env.opponents.targets import choose_target

SIGHT, SIDE = 0, 1  # streams of the random numbers
PRECISION, LOW_BITS = 1048576.0, 0xFFFFFF  # resolution at which the first observation enters the seed


@kernel
def decide(
    knowledge: Knowledge, skill: Row, observation: Any, memory: Row, scratch: Scratch, plan: Row, action: Any
) -> None:
    """Write a living mech's action (A,), initially zeros, for its observation (D,)."""
    if not memory.started:
        memory.started = 1
        draw_seed(observation, memory)
    plan.mech_class = own_class(observation)
    choose_target(knowledge, skill, observation, plan)
    choose_goal(knowledge, skill, observation, memory, plan)
    face(knowledge, skill, observation, plan, action)
    steer(knowledge, observation, memory, scratch, plan, action)
    fight(knowledge, skill, observation, memory, plan, action)
    memory.clock += knowledge.rules[0].decision_seconds


@kernel
def draw_seed(observation: Any, memory: Row) -> None:
    """Draw the seed of a mech's choices in a battle from the player's seed and the mech's first observation."""
    bits = memory.seed
    for i in range(observation.shape[0]):
        entry = integer(value(observation, i) * PRECISION)
        if entry != 0:
            bits = rng.random_bits(bits, entry & LOW_BITS, i, SIGHT)
    memory.seed = bits
    memory.side = 1.0 if rng.random_unit(bits, 0, 0, SIDE) < 0.5 else -1.0
    memory.sidestep = memory.side
