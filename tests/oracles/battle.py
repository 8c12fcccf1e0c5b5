"""One whole decision: commands, ticks, outcome, rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.state import (
    BLUE,
    BY_DISTANCE,
    DRAW,
    ECCM,
    ECM,
    ELIMINATION,
    NO_MECH,
    RED,
    RUNNING,
    SILENT,
    TIME_LIMIT,
    ZONE_CONTROL,
)
from echelon_env.layout.actions import COMM_DIM, TARGET_CHOICES, Action
from oracles.body import update_bodies
from oracles.combat import fire
from oracles.electronics import carries_electronics
from oracles.flights import fly
from oracles.movement import move_all
from oracles.rng import movement_order
from oracles.sensing import look_around
from oracles.settlement import settle
from oracles.world import Mech, World
from oracles.zone import score_zone


@dataclass
class Result:
    """The outputs of a decision, per mech."""

    seen: dict[tuple[int, int], int]
    components: NDArray[np.float32]  # (M, len(REWARD_COMPONENTS)), weighted
    rewards: NDArray[np.float32]  # (M,)
    terminated: list[bool]
    truncated: list[bool]


def decide(world: World, actions: NDArray[np.float32]) -> Result:
    """Play one decision of a battle that is not over. `actions` (M, ACTION_DIM) float32."""
    world.log.clear()
    world.cases.clear()
    alive_before = [mech.alive for mech in world.mechs]
    for mech, action in zip(world.mechs, actions, strict=True):
        command(world, mech, action)
    for _ in range(world.config.decision_repeat):
        play_tick(world, [world.by_place[position].index for position in movement_order(world)])
    world.step_count += 1
    score_zone(world)
    end_battle(world)
    components = reward_components(world, alive_before)
    rewards = np.zeros(len(world.mechs), np.float32)
    for column in range(len(REWARD_COMPONENTS)):
        rewards += components[:, column]
    seen = look_around(world)
    terminated, truncated = endings(world, alive_before)
    return Result(seen, components, rewards, terminated, truncated)


def command(world: World, mech: Mech, action: NDArray[np.float32]) -> None:
    """Convert a mech's action to commands and clear the counters of the last decision."""
    mech.hurt_x = mech.hurt_y = 0.0
    mech.damage_dealt = mech.friendly_damage = mech.kills = mech.assists = mech.loss = 0.0
    mech.shutdown_ticks, mech.died = 0, False
    mech.bad_actions = sum(not math.isfinite(entry) for entry in action)
    mech.statistics["bad_actions"] += mech.bad_actions
    entries = [min(1.0, max(-1.0, float(entry))) if math.isfinite(entry) else 0.0 for entry in action]
    mech.throttle, mech.strafe, mech.turn = entries[Action.THROTTLE], entries[Action.STRAFE], entries[Action.TURN]
    mech.jet = max(0.0, entries[Action.JET]) if mech.kind.jet_acceleration > 0 else 0.0
    triggers = (Action.PRIMARY, Action.SECONDARY, Action.TERTIARY, Action.SPECIAL)
    mech.trigger = [entries[entry] > 0 for entry in triggers]
    mech.vent = entries[Action.VENT] > 0
    mech.radiates = SILENT
    abilities = world.config.abilities
    if carries_electronics(world, mech):
        world.cases["commanded to radiate both"] += entries[Action.ECM] > 0 and entries[Action.ECCM] > 0
        mech.radiates = ECCM if entries[Action.ECCM] > 0 else ECM if entries[Action.ECM] > 0 else SILENT
    display = entries[Action.DISPLAY_NEAREST : Action.DISPLAY_DAMAGED + 1]
    mech.display = display.index(max(display)) if abilities.display else BY_DISTANCE
    mech.message = entries[Action.COMM_0 : Action.COMM_0 + COMM_DIM] if abilities.messages else [0.0] * COMM_DIM
    mech.transmits = mech.alive and not mech.shutdown and abilities.messages
    wishes = entries[Action.TARGET_0 : Action.TARGET_0 + TARGET_CHOICES]
    world.cases["kept its target"] += abilities.target_choice and max(wishes) <= 0 and mech.target != NO_MECH
    named = mech.contacts[wishes.index(max(wishes))] if abilities.target_choice and max(wishes) > 0 else NO_MECH
    if named != NO_MECH or not mech.alive:
        mech.target = named
    world.cases["ineffective choice of a target"] += not abilities.target_choice and max(wishes) > 0


def play_tick(world: World, order: Sequence[int]) -> None:
    hits = update_bodies(world)
    move_all(world, order)
    hits += fire(world)
    struck, bursts = fly(world)
    settle(world, hits + struck, bursts)
    world.tick += 1


def end_battle(world: World) -> None:
    """Set over, winner and reason."""
    score = [team.score for team in world.teams]
    living = [sum(mech.alive for mech in world.mechs if mech.team == team) for team in (BLUE, RED)]
    armour = [armour_share(world, team) for team in (BLUE, RED)]
    if max(score) >= world.config.zone.score_to_win:
        world.reason, world.winner = ZONE_CONTROL, better(score)
    elif min(living) == 0:
        world.reason, world.winner = ELIMINATION, better(living)
    elif world.step_count >= world.config.max_steps:
        world.reason = TIME_LIMIT
        world.winner = better(score) if score[BLUE] != score[RED] else better(armour)
    world.over = world.reason != RUNNING


def better(values: Sequence[float]) -> int:
    """The team with the higher value; DRAW if they are equal."""
    if values[BLUE] == values[RED]:
        return DRAW
    return BLUE if values[BLUE] > values[RED] else RED


def armour_share(world: World, team: int) -> float:
    """Share of the team's full armour that is left."""
    mechs = [mech for mech in world.mechs if mech.team == team]
    return sum(mech.armour for mech in mechs) / sum(mech.kind.armour for mech in mechs)


def is_terminated(world: World) -> bool:
    """Whether the battle ended by the rules of the game; a time limit that truncates does not count."""
    return world.over and (world.reason != TIME_LIMIT or world.config.time_limit == "terminate")


def potential(world: World, mech: Mech) -> float:
    distance = math.hypot(mech.x - world.zone_x, mech.y - world.zone_y) - world.zone_radius
    return 1 - max(0.0, distance) / world.config.terrain.size


def reward_components(world: World, alive_before: list[bool]) -> NDArray[np.float32]:
    """Weighted components (M, len(REWARD_COMPONENTS)) float32; also updates every mech's potential."""
    config = world.config
    components = np.zeros((len(world.mechs), len(REWARD_COMPONENTS)), np.float32)
    for mech in world.mechs:
        was_alive, persists = alive_before[mech.index], config.dead_agents == "persist"
        values = dict.fromkeys(REWARD_COMPONENTS, 0.0)
        if was_alive:
            continues = mech.alive and not is_terminated(world)
            after = potential(world, mech) if continues else 0.0
            kept = config.rewards.gamma * after if continues else config.rewards.approach_kept * mech.potential
            values["approach"] = kept - mech.potential
            mech.potential = after
            values["death"] = mech.loss
            values["overheat"] = mech.shutdown_ticks * config.dt
        if was_alive or persists:
            own, enemy = world.teams[mech.team].share, world.teams[1 - mech.team].share
            values["zone"] = (own - enemy) * config.decision_seconds
            values["damage"] = mech.damage_dealt - mech.friendly_damage
            values["kill"] = mech.kills
            values["assist"] = mech.assists
            if is_terminated(world) and world.winner != DRAW:
                values["outcome"] = 1.0 if mech.team == world.winner else -1.0
        components[mech.index] = [getattr(config.rewards, name) * values[name] for name in REWARD_COMPONENTS]
    return blend(world, components, alive_before)


def blend(world: World, components: NDArray[np.float32], alive_before: list[bool]) -> NDArray[np.float32]:
    """Blend each component with the team's mean.

    With `dead_agents` "terminate", mechs that were dead before the decision get nothing.
    """
    spirit = world.config.rewards.team_spirit
    blended = np.zeros_like(components)
    for mech in world.mechs:
        if alive_before[mech.index] or world.config.dead_agents == "persist":
            mates = [mate.index for mate in world.mechs if mate.team == mech.team]
            mean = components[mates].mean(axis=0, dtype=np.float64)
            blended[mech.index] = (1 - spirit) * components[mech.index] + spirit * mean
            world.cases["team spirit"] += not np.allclose(blended[mech.index], components[mech.index])
        else:
            world.cases["dead mechs get nothing of the team's mean"] += bool(spirit)
    return blended


def endings(world: World, alive_before: list[bool]) -> tuple[list[bool], list[bool]]:
    """Which mechs are terminated and which truncated by this decision."""
    terminated, truncated = [], []
    for mech in world.mechs:
        takes_part = alive_before[mech.index] or world.config.dead_agents == "persist"
        dies = mech.died and world.config.dead_agents == "terminate"
        terminated.append(takes_part and (dies or is_terminated(world)))
        truncated.append(takes_part and not dies and world.over and not is_terminated(world))
    return terminated, truncated
