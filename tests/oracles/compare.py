"""Run the same decision in the engine and in the oracle, and list every difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import EVENT_KINDS, STATISTIC_NAMES, State
from echelon_env.layout.observations import feature_names
from oracles.battle import Result, decide
from oracles.observation import observe
from oracles.world import GRAZING, Mech, Projectile, World, columns_of, count_bits, load

STATE_TOLERANCE = 1e-9
OUTPUT_TOLERANCE = 1e-5
FEATURES = feature_names()

_ALWAYS = (
    *("alive", "died", "bad_actions", "armour", "damage_dealt", "friendly_damage", "kills", "assists", "loss"),
    "wreck_ticks",
)
_WHILE_WRECKED = ("wreck_low", "wreck_high")
_WHILE_ALIVE = (
    *("x", "y", "z", "yaw", "vx", "vy", "vz", "heat", "legs", "stability", "speed_factor", "potential", "quality"),
    *("jam", "hurt_x", "hurt_y", "shutdown", "on_ground", "shutdown_ticks", "radiates", "vent", "contacts"),
    *("cooldown", "charges", "anti_missile_cooldown", "suppressed", "fallen"),
    *("target", "display", "message", "transmits", "intel"),
)


@dataclass
class Decision:
    """A decision of a battle: the oracle's world after it."""

    battle: int
    after: World
    result: Result


def play(
    engine: BattleEngine, actions: NDArray[np.float32], worlds: Mapping[int, World] | None = None
) -> tuple[list[Decision], list[str]]:
    """Step the engine, and its unfinished battles in the oracle; returns the decisions and the differences.

    The oracle continues from `worlds` by battle, or else from the engine's state. Decisions in which rounding may
    matter are run but not compared.
    """
    running = np.flatnonzero(~engine.battle_over).tolist()
    before = {battle: load(engine.state, battle, engine.config) for battle in running} if worlds is None else worlds
    engine.step(actions)
    decisions = [Decision(battle, before[battle], decide(before[battle], actions[battle])) for battle in running]
    found = [
        f"battle {decision.battle}: {text}"
        for decision in decisions
        if not decision.after.cases[GRAZING]
        for text in all_differences(engine, decision)
    ]
    return decisions, found


def all_differences(engine: BattleEngine, decision: Decision) -> Iterator[str]:
    """Differences of the state and of the engine's outputs."""
    world, battle, result = decision.after, decision.battle, decision.result
    yield from differences(world, engine.state, battle)
    for name in ("terminated", "truncated"):
        if getattr(result, name) != getattr(engine.out, name)[battle].tolist():
            yield f"{name}: expected {getattr(result, name)}, got {getattr(engine.out, name)[battle].tolist()}"
    for mech in world.mechs:
        sight = [result.seen.get((mech.index, other.index), 0) for other in world.mechs]
        if sight != engine.state.visible[battle, mech.index].tolist():
            yield f"visible to {mech.index}: expected {sight}, got {engine.state.visible[battle, mech.index].tolist()}"
        expected = observe(world, mech, result.seen)
        yield from _array_differences(
            f"observation {mech.index}", FEATURES, expected, engine.observations[battle, mech.index]
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


def close(one: Any, two: Any) -> bool:
    """Whether two numbers, or two sequences of them, agree; names must be equal."""
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(close(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, str) or isinstance(two, str):
        return bool(one == two)
    return math.isclose(one, two, rel_tol=STATE_TOLERANCE, abs_tol=STATE_TOLERANCE)


def differences(world: World, state: State, battle: int) -> Iterator[str]:
    """Differences between the oracle's state and the engine's, without the engine's outputs."""
    engine = load(state, battle, world.config)
    for expected, got in zip(world.mechs, engine.mechs, strict=True):
        yield from _mech_differences(expected, got, state.mechs[battle, got.index])
    for name in ("score", "share", "inside"):
        wanted, found = [getattr(team, name) for team in world.teams], state.teams[name][battle].tolist()
        if not close(wanted, found):
            yield f"teams {name}: expected {wanted}, got {found}"
    living = [sum(mech.alive for mech in world.mechs if mech.team == team) for team in (0, 1)]
    if living != state.teams["mechs_alive"][battle].tolist():
        yield f"mechs_alive: expected {living}, got {state.teams['mechs_alive'][battle]}"
    for name in ("tick", "step_count", "over", *(("winner", "reason") if world.over else ())):
        if getattr(world, name) != getattr(engine, name):
            yield f"{name}: expected {getattr(world, name)}, got {getattr(engine, name)}"
    wanted_paint, found_paint = ({k: (m.ticks, m.painter) for k, m in w.paint.items()} for w in (world, engine))
    if wanted_paint != found_paint:
        yield f"paint: expected {wanted_paint}, got {found_paint}"
    yield from _sighting_differences(world, engine)
    yield from _list_differences("projectile", *([_flight(shot) for shot in w.projectiles] for w in (world, engine)))
    yield from _list_differences(
        "cloud", *([(*c.centre, c.radius, c.ticks, c.team) for c in w.clouds] for w in (world, engine))
    )
    yield from _voxel_differences(world, state, battle)
    yield from _event_differences(world, state, battle)


def _sighting_differences(world: World, engine: World) -> Iterator[str]:
    if set(world.sightings) != set(engine.sightings):
        yield f"sightings of (pack, mech): expected {sorted(world.sightings)}, got {sorted(engine.sightings)}"
    for key in set(world.sightings) & set(engine.sightings):
        wanted, found = (astuple(w.sightings[key]) for w in (world, engine))
        if not close(wanted, found):
            yield f"sighting of (pack, mech) {key}: expected {wanted}, got {found}"


def _mech_differences(expected: Mech, got: Mech, row: Any) -> Iterator[str]:
    who = f"mech {expected.index} ({expected.kind.name})"
    names = _ALWAYS + (_WHILE_ALIVE if expected.alive and got.alive else ())
    names += _WHILE_WRECKED if expected.wreck_ticks > 0 else ()
    for name in names:
        wanted, found = getattr(expected, name), row[name].tolist()
        if not close(wanted, found):
            yield f"{who} {name}: expected {wanted}, got {found}"
    for name in ("shots", "hits"):
        if getattr(expected, name) != getattr(got, name):
            yield f"{who} {name}: expected {getattr(expected, name)}, got {getattr(got, name)}"
    for name in STATISTIC_NAMES:
        if not close(expected.statistics[name], got.statistics[name]):
            yield f"{who} statistics {name}: expected {expected.statistics[name]}, got {got.statistics[name]}"
    if expected.alive and got.alive:
        for name, wanted in (("facing_x", math.cos(expected.yaw)), ("facing_y", math.sin(expected.yaw))):
            if not close(wanted, float(row[name])):
                yield f"{who} {name}: expected {wanted}, got {row[name]}"


def _flight(shot: Projectile) -> tuple[Any, ...]:
    course: tuple[float, ...] = (shot.target, shot.aim, shot.phase) if shot.weapon.flight == "homing" else ()
    return (shot.owner, shot.weapon.name, shot.reach, *shot.position, *shot.velocity, *course)


def _list_differences(what: str, wanted: list[tuple[Any, ...]], found: list[tuple[Any, ...]]) -> Iterator[str]:
    if len(wanted) != len(found):
        yield f"{what}s: {len(wanted)} expected, {len(found)} found"
        yield from (f"missing {what}: {one}" for one in wanted if not any(close(one, other) for other in found))
        yield from (f"unexpected {what}: {one}" for one in found if not any(close(one, other) for other in wanted))
        return
    for one, two in zip(wanted, found, strict=True):
        if not close(one, two):
            yield f"{what}: expected {one}, got {two}"


def _voxel_differences(world: World, state: State, battle: int) -> Iterator[str]:
    """Differences of voxels and their damage, which must be equal, and of the columns."""
    for name in ("voxels", "voxel_damage"):
        wanted, found = getattr(world, name), getattr(state, name)[battle]
        for z, y, x in np.argwhere(wanted != found):
            yield f"{name} at {(int(x), int(y), int(z))}: expected {wanted[z, y, x]}, got {found[z, y, x]}"
    columns = columns_of(world.voxels, world.config.catalog.materials)
    for name in ("opaque", "solid", "hazard"):
        for y, x in np.argwhere(columns[name] != getattr(state, name)[battle]):
            found = getattr(state, name)[battle, y, x]
            yield f"column {(int(x), int(y))} {name}: expected {columns[name][y, x]}, got {found}"

    if state.battles["num_hazards"][battle] != count_bits(columns["hazard"]):
        yield f"num_hazards: expected {count_bits(columns['hazard'])}, got {state.battles['num_hazards'][battle]}"


def _event_differences(world: World, state: State, battle: int) -> Iterator[str]:
    """Differences of the lists of events; within a tick any order is accepted."""
    events = state.events[battle][: int(state.battles["num_events"][battle])]
    if (np.diff(events["tick"]) < 0).any():
        yield f"events out of order: {events['tick']}"
    names = ("kind", "tick", "actor", "target", "weapon", "amount", "x", "y", "z", "dx", "dy")
    left = [tuple(event[name].item() for name in names) for event in events]
    for event in world.log:
        *head, place, direction = event
        wanted = (*head, *(place or (math.nan,) * 3), *direction)
        same = [other for other in left if _same_event(wanted, other)]
        if same:
            left.remove(same[0])
        else:
            yield f"missing event: {_named(wanted)}"
    yield from (f"unexpected event: {_named(event)}" for event in left)


def _same_event(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return all((isinstance(a, float) and math.isnan(a)) or close(a, b) for a, b in zip(one, two, strict=True))


def _named(event: tuple[Any, ...]) -> tuple[Any, ...]:
    return (EVENT_KINDS[event[0]], *event[1:])
