"""Play the same decision with the engine and with the oracle, and list every difference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config import REWARD_COMPONENTS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import IMPACT, State
from echelon_env.observations import feature_names
from oracles.battle import Result, decide
from oracles.observation import observe
from oracles.sensing import GRAZING
from oracles.world import World, load

STATE_TOLERANCE = 1e-9
HURT_TOLERANCE = 1e-5  # the engine takes the direction from an event, which keeps it in float32
OUTPUT_TOLERANCE = 1e-5

_ALWAYS = ("alive", "died", "bad_actions", "armour", "damage_dealt", "kills", "total_damage", "total_kills")
_WHILE_ALIVE = (
    *("x", "y", "z", "yaw", "vx", "vy", "vz", "heat", "potential"),
    *("shutdown", "on_ground", "shutdown_ticks", "contacts", "cooldown"),
)


@dataclass
class Decision:
    """One decision of one battle: the world before it, and after it as the oracle played it."""

    battle: int
    before: World
    after: World
    result: Result


def play(engine: BattleEngine, actions: NDArray[np.float32]) -> tuple[list[Decision], list[str]]:
    """Step the engine, and its battles that are not over in the oracle; returns what was played and what differs.

    Decisions with a grazing line of sight are played but not compared.
    """
    running = np.flatnonzero(~engine.battle_over).tolist()
    before = [load(engine.state, battle, engine.config) for battle in running]
    after = [load(engine.state, battle, engine.config) for battle in running]
    engine.step(actions)
    decisions = [
        Decision(battle, *worlds, decide(worlds[1], actions[battle]))
        for battle, *worlds in zip(running, before, after, strict=True)
    ]
    found = [
        f"battle {decision.battle}: {text}"
        for decision in decisions
        if not decision.after.cases[GRAZING]
        for text in all_differences(engine, decision)
    ]
    return decisions, found


def all_differences(engine: BattleEngine, decision: Decision) -> Iterator[str]:
    """Differences of the state and of what the engine hands out."""
    world, battle, result = decision.after, decision.battle, decision.result
    yield from differences(world, engine.state, battle)
    for name in ("terminated", "truncated"):
        if getattr(result, name) != getattr(engine.out, name)[battle].tolist():
            yield f"{name}: expected {getattr(result, name)}, got {getattr(engine.out, name)[battle].tolist()}"
    for mech in world.mechs:
        sight = [result.seen.get((mech.index, other.index), 0) for other in world.mechs]
        if sight != engine.state.visible[battle, mech.index].tolist():
            yield f"visible to {mech.index}: expected {sight}, got {engine.state.visible[battle, mech.index].tolist()}"
        expected = observe(world, mech, result.seen, engine.state.battle_maps[battle, mech.team].tolist())
        yield from _array_differences(
            f"observation {mech.index}", feature_names(), expected, engine.out.observations[battle, mech.index]
        )
        yield from _array_differences(
            f"reward {mech.index}",
            list(REWARD_COMPONENTS),
            result.components[mech.index],
            engine.out.components[battle, mech.index],
        )
    if not np.allclose(result.rewards, engine.out.rewards[battle], rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE):
        yield f"rewards: expected {result.rewards}, got {engine.out.rewards[battle]}"


def _array_differences(what: str, names: list[str], expected: NDArray[Any], got: NDArray[Any]) -> Iterator[str]:
    agree = np.isclose(expected, got, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE)
    for index in np.flatnonzero(~agree):
        yield f"{what} {names[index]}: expected {expected[index]}, got {got[index]}"


def close(one: Any, two: Any, tolerance: float = STATE_TOLERANCE) -> bool:
    """Whether two numbers, or two sequences of them, agree."""
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(close(a, b, tolerance) for a, b in zip(one, two, strict=True))
    return math.isclose(one, two, rel_tol=tolerance, abs_tol=tolerance)


def differences(world: World, state: State, battle: int) -> Iterator[str]:
    """Every field in which the state differs from the world, as text."""
    engine = load(state, battle, world.config)
    row = state.mechs[battle]
    for expected, got in zip(world.mechs, engine.mechs, strict=True):
        for name in (*_ALWAYS, *(_WHILE_ALIVE if expected.alive and got.alive else ())):
            wanted = getattr(expected, name)
            found = row[name][got.index].tolist()
            if not close(wanted, found):
                yield f"mech {expected.index} ({expected.kind.name}) {name}: expected {wanted}, got {found}"
        if expected.alive and got.alive:
            for name in ("hurt_x", "hurt_y"):
                wanted, found = getattr(expected, name), float(row[name][got.index])
                if not close(wanted, found, HURT_TOLERANCE):
                    yield f"mech {expected.index} {name}: expected {wanted}, got {found}"
            for name, wanted in (("facing_x", math.cos(expected.yaw)), ("facing_y", math.sin(expected.yaw))):
                if not close(wanted, float(row[name][got.index])):
                    yield f"mech {expected.index} {name}: expected {wanted}, got {row[name][got.index]}"
    for name in ("score", "share", "tonnage"):
        wanted, found = [getattr(team, name) for team in world.teams], state.teams[name][battle].tolist()
        if not close(wanted, found):
            yield f"teams {name}: expected {wanted}, got {found}"
    living = [sum(mech.alive for mech in world.mechs if mech.team == team) for team in (0, 1)]
    if living != state.teams["mechs_alive"][battle].tolist():
        yield f"mechs_alive: expected {living}, got {state.teams['mechs_alive'][battle]}"
    for name in ("tick", "step_count", "over", *(("winner", "reason") if world.over else ())):
        if getattr(world, name) != getattr(engine, name):
            yield f"{name}: expected {getattr(world, name)}, got {getattr(engine, name)}"
    yield from _projectile_differences(world, engine)
    yield from _event_differences(world, state, battle)


def _projectile_differences(world: World, engine: World) -> Iterator[str]:
    wanted, found = (
        sorted((shot.owner, shot.weapon.name, shot.reach, *shot.position, *shot.direction) for shot in shots)
        for shots in (world.projectiles, engine.projectiles)
    )
    if len(wanted) != len(found):
        yield f"projectiles: {len(wanted)} expected, {len(found)} found"
        yield from (f"missing: {shot}" for shot in wanted if not any(close(shot[2:], other[2:]) for other in found))
        yield from (f"unexpected: {shot}" for shot in found if not any(close(shot[2:], other[2:]) for other in wanted))
        return
    for one, two in zip(wanted, found, strict=True):
        if one[:2] != two[:2] or not close(one[2:], two[2:]):
            yield f"projectile: expected {one}, got {two}"


def _event_differences(world: World, state: State, battle: int) -> Iterator[str]:
    events = state.events[battle][: int(state.battles["num_events"][battle])]
    names = ("kind", "tick", "actor", "target", "weapon", "amount")
    found = sorted(tuple(event[name].item() for name in names) for event in events if event["kind"] != IMPACT)
    wanted = sorted(world.log)
    if len(wanted) != len(found) or not all(close(one, two) for one, two in zip(wanted, found, strict=True)):
        yield f"events: expected {wanted}, got {found}"
